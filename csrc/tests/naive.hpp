// The recurrence as the papers write it, one number at a time: what the kernels are held against.
#pragma once

#include <cmath>
#include <random>
#include <string>
#include <variant>
#include <vector>

#include "../recurrent.hpp"

namespace naive {

using unrolled::Activation;
using unrolled::GruCell;
using unrolled::LstmCell;
using unrolled::Output;
using unrolled::Peephole;
using unrolled::Reset;
using unrolled::RnnCell;
using unrolled::Update;
using AnyCell = std::variant<RnnCell, LstmCell, GruCell>;
using Array = std::vector<double>;

inline int gates_of(const AnyCell& cell) {
    return std::visit([](auto own) { return own.gates(); }, cell);
}

// One direction's weights, first states and inputs.
struct Direction {
    Array weights, bias, peephole, first_h, first_c;
    Array gates;           // (N, G·H)  W x + b
    Array dlast_h, dlast_c;  // (B, H)  upstream gradients
};

// A layer and a batch, drawn at random.
struct Problem {
    AnyCell cell;
    int H, B, D;
    std::vector<int64_t> lengths, offsets;
    int64_t N = 0, steps = 0;
    std::vector<Direction> directions;
    Array dy;  // (B, steps, D·H)  upstream gradients
    bool from_zero;  // the first states, which the kernels then get none of

    Problem(AnyCell cell, int H, int D, std::vector<int64_t> lengths_, unsigned seed)
        : cell(cell), H(H), B(int(lengths_.size())), D(D), lengths(std::move(lengths_)),
          from_zero(seed % 3 == 0) {
        for (int64_t length : lengths) {
            offsets.push_back(N);
            N += length;
            steps = std::max(steps, length);
        }
        std::mt19937 random(seed);
        std::uniform_real_distribution<double> uniform(-1, 1);
        auto draw = [&](int64_t size, double scale) {
            Array values(size);
            for (double& value : values) value = scale * uniform(random);
            return values;
        };
        int64_t G = gates_of(cell), state = int64_t(B) * H;
        for (int d = 0; d < D; ++d)
            directions.push_back({draw(G * H * H, 1.5 / std::sqrt(H)), draw(H, 1), draw(3 * H, 1),
                                  draw(state, !from_zero), draw(state, !from_zero), draw(N * G * H, 2),
                                  draw(state, 1), draw(state, 1)});
        dy = draw(B * steps * D * H, 1);
    }

    int gates() const { return gates_of(cell); }

    bool has_bias() const {
        return std::visit([](auto own) { return own.resets_after(); }, cell);
    }

    bool is_lstm() const { return std::holds_alternative<LstmCell>(cell); }

    int peepholes() const {
        const LstmCell* lstm = std::get_if<LstmCell>(&cell);
        if (!lstm || !lstm->has_peephole()) return 0;
        return lstm->peephole == Peephole::full ? 3 : 1;
    }

    int64_t time(int d, int row, int64_t step) const {
        return d ? lengths[row] - 1 - step : step;
    }
};

struct Results {
    Array y;                            // (B, steps, D·H), 0 in the padding
    std::vector<Array> last_h, last_c;  // (B, H) a direction
};

inline double sigmoid(double x) { return 1 / (1 + std::exp(-x)); }

inline double activate(Activation activation, double x) {
    switch (activation) {
        case Activation::tanh: return std::tanh(x);
        case Activation::sigmoid: return sigmoid(x);
        case Activation::relu: return x > 0 ? x : 0;
        case Activation::leaky_relu: return x > 0 ? x : 0.01 * x;
        default: return x;
    }
}

// One step of one row: a is W x + b (G·H); h and c are replaced.
inline void step(const Problem& p, const Direction& d, const double* a, Array& h, Array& c) {
    int H = p.H;
    auto product = [&](int gate, int unit, const Array& by) {
        double sum = 0;
        for (int k = 0; k < H; ++k) sum += d.weights[(size_t(gate) * H + unit) * H + k] * by[k];
        return sum;
    };
    auto whole = [&](int gate, int unit) { return a[gate * H + unit] + product(gate, unit, h); };
    Array next(H), reset(H);
    const GruCell* gru = std::get_if<GruCell>(&p.cell);
    if (gru && gru->reset == Reset::before)
        for (int j = 0; j < H; ++j) reset[j] = sigmoid(whole(0, j)) * h[j];
    for (int j = 0; j < H; ++j) {
        if (auto* rnn = std::get_if<RnnCell>(&p.cell)) next[j] = activate(rnn->activation, whole(0, j));
        if (auto* lstm = std::get_if<LstmCell>(&p.cell)) {
            const double* peephole = d.peephole.data() + j;
            bool full = lstm->peephole == Peephole::full;
            double i = sigmoid(whole(0, j) + (full ? peephole[0] * c[j] : 0));
            double f = sigmoid(whole(1, j) + (full ? peephole[H] * c[j] : 0));
            c[j] = f * c[j] + i * std::tanh(whole(2, j));
            double seen = p.peepholes() ? peephole[full ? 2 * H : 0] * c[j] : 0;
            double shown = lstm->output == Output::tanh ? std::tanh(c[j]) : c[j];
            next[j] = sigmoid(whole(3, j) + seen) * shown;
        }
        if (gru) {
            int z_gate = gru->reset == Reset::none ? 0 : 1;
            double z = sigmoid(whole(z_gate, j)), inner = a[(z_gate + 1) * H + j];
            if (gru->reset == Reset::after)
                inner += sigmoid(whole(0, j)) * (product(2, j, h) + d.bias[j]);
            if (gru->reset == Reset::before) inner += product(2, j, reset);
            if (gru->reset == Reset::none) inner += product(1, j, h);
            double n = std::tanh(inner);
            next[j] = gru->update == Update::keep ? z * h[j] + (1 - z) * n : (1 - z) * h[j] + z * n;
        }
    }
    h = next;
}

inline Results run(const Problem& p) {
    int H = p.H, D = p.D, G = p.gates();
    Results out{Array(p.dy.size()), {}, {}};
    for (int d = 0; d < D; ++d) {
        const Direction& own = p.directions[d];
        Array last_h, last_c;
        for (int row = 0; row < p.B; ++row) {
            Array h(&own.first_h[row * H], &own.first_h[row * H] + H);
            Array c(&own.first_c[row * H], &own.first_c[row * H] + H);
            for (int64_t s = 0; s < p.lengths[row]; ++s) {
                int64_t t = p.time(d, row, s);
                step(p, own, &own.gates[(p.offsets[row] + t) * G * H], h, c);
                for (int j = 0; j < H; ++j) out.y[((row * p.steps + t) * D + d) * H + j] = h[j];
            }
            last_h.insert(last_h.end(), h.begin(), h.end());
            last_c.insert(last_c.end(), c.begin(), c.end());
        }
        out.last_h.push_back(last_h);
        out.last_c.push_back(last_c);
    }
    return out;
}

// The upstream gradients times the outputs: a loss whose gradients the kernels are asked for.
inline double loss(const Problem& p) {
    Results out = run(p);
    double sum = 0;
    for (size_t i = 0; i < out.y.size(); ++i) sum += p.dy[i] * out.y[i];
    for (int d = 0; d < p.D; ++d)
        for (size_t i = 0; i < out.last_h[d].size(); ++i) {
            sum += p.directions[d].dlast_h[i] * out.last_h[d][i];
            if (p.is_lstm()) sum += p.directions[d].dlast_c[i] * out.last_c[d][i];
        }
    return sum;
}

// By central differences. The padding of y is 0 whatever happens: nothing of dy there counts.
inline double slope(Problem& p, double& value) {
    const double kept = value, h = 1e-5;
    value = kept + h;
    double above = loss(p);
    value = kept - h;
    double below = loss(p);
    value = kept;
    return (above - below) / (2 * h);
}

}  // namespace naive
