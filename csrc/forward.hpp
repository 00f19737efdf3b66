// The recurrence forward. A step is one or two products with the packed weights; what a cell does
// with the sums follows at once, while they are in the cache.
#pragma once

#include "schedule.hpp"

namespace UNROLLED_ISA {

template <class T>
inline Vec<T> activate(int activation, Vec<T> x) {
    switch (activation) {
        case TANH: return tanh<T>(x);
        case SIGMOID: return sigmoid<T>(x);
        case RELU: return x > T(0) ? x : (x != x ? x : Vec<T>{});
        case LEAKY_RELU: return x > T(0) ? x : T(0.01) * x;
        default: return x;
    }
}

// The state of a group of rows while it runs: (rows, H) each.
template <class T>
struct Running {
    T *h, *next, *c, *reset;  // before and after the step; reset: r ⊙ h
};

template <class T>
class ForwardRun {
   public:
    ForwardRun(Cell cell, const Shape& shape, const Forward<T>& at, const T* packed,
               const Rows& rows, Running<T> state, Part part)
        : cell_(cell), shape_(shape), at_(at), packed_(packed), rows_(rows), state_(state),
          part_(part), H_(shape.H), G_(cell.gates()) {}

    void operator()() {
        if (at_.input) project();
        begin();
        int64_t steps = rows_.count() ? shape_.lengths[rows_.rows[0]] : 0;
        int running = rows_.count();
        for (int64_t step = 0; step < steps; ++step) {
            while (shape_.lengths[rows_.rows[running - 1]] <= step) --running;
            now_ = step;
            if (cell_.kind == RNN) rnn(running);
            if (cell_.kind == LSTM) lstm(running);
            if (cell_.kind == GRU) gru(running);
            finish(running);
            part_.meeting->wait();
            std::swap(state_.h, state_.next);
        }
    }

   private:
    static constexpr int L = Lanes<T>::count;

    // The lanes of vector v that are real units, and where they begin.
    int lanes(int v) const { return std::min(L, H_ - v * L); }

    int64_t token(int row) const {
        int64_t last = shape_.lengths[row] - 1;
        return shape_.offsets[row] + (at_.reverse ? last - now_ : now_);
    }

    T* output(int row) const {
        int64_t last = shape_.lengths[row] - 1;
        return at_.y + row * at_.y_row + (at_.reverse ? last - now_ : now_) * at_.y_step;
    }

    // The gates of this part's units: W x + b, with every bias but the one inside r ⊙ (U_n h + b).
    void project() {
        alignas(64) T sums[dot_rows * L];
        for (int i = 0, R; i < rows_.count(); i += R) {
            R = std::min(dot_rows, rows_.count() - i);
            const T* rows[dot_rows];
            for (int r = 0; r < R; ++r)
                rows[r] = at_.input + shape_.offsets[rows_.rows[i + r]] * at_.E;
            for (int gate = 0; gate < G_; ++gate) {
                bool inside = cell_.kind == GRU && cell_.first == RESET_AFTER && gate == 2;
                for (int u = part_.first * L; u < std::min(H_, part_.last * L); ++u) {
                    size_t unit = size_t(gate) * H_ + u;
                    const T* weights = at_.input_weights + unit * at_.E;
                    T bias = at_.input_bias ? at_.input_bias[unit] : T(0);
                    if (at_.state_bias && !inside) bias += at_.state_bias[unit];
                    dots<T, 1>(rows, R, &weights, int(at_.E), sums, 0);
                    for (int r = 0; r < R; ++r)
                        at_.gates[shape_.offsets[rows_.rows[i + r]] * G_ * H_ + unit] =
                            sums[r * L] + bias;
                }
            }
        }
    }

    void begin() {
        for (int i = 0; i < rows_.count(); ++i) {
            copy_part(at_.first_h + size_t(rows_.rows[i]) * H_, state_.h + size_t(i) * H_);
            if (cell_.kind == LSTM)
                copy_part(at_.first_c + size_t(rows_.rows[i]) * H_, state_.c + size_t(i) * H_);
        }
        part_.meeting->wait();
    }

    // A row that has made its last step leaves its state behind.
    void finish(int running) {
        for (int i = running - 1; i >= 0; --i) {
            int row = rows_.rows[i];
            if (shape_.lengths[row] != now_ + 1) return;
            copy_part(state_.next + size_t(i) * H_, at_.last_h + size_t(row) * H_);
            if (cell_.kind == LSTM)
                copy_part(state_.c + size_t(i) * H_, at_.last_c + size_t(row) * H_);
        }
    }

    void copy_part(const T* from, T* to) const {
        int first = part_.first * L, last = std::min(H_, part_.last * L);
        if (last > first) std::memcpy(to + first, from + first, (last - first) * sizeof(T));
    }

    // For each running row i and vector v of this part: each(i, v, sums), where sums holds the
    // products of `input` with `gates` gates from `gate` on, `stride` apart.
    template <class Each>
    void products(const T* input, int running, int gate, int gates, Each each) {
        if (!packed_) return unpacked_products(input, running, gate, gates, each);
        int V = vectors(H_, L);
        alignas(64) T sums[most_rows * most_columns * L];
        part_.sweep(now_, most_columns / gates, [&](int v, int width, int next) {
            const T* columns[most_columns];
            for (int g = 0; g < gates; ++g)
                for (int j = 0; j < width; ++j)
                    columns[g * width + j] = packed_ + (size_t(gate + g) * V + v + j) * H_ * L;
            int C = gates * width, tile = 0;
            for (int i = 0, R; i < running; i += R, ++tile) {
                R = next_tile(running - i, C);
                const T* rows[most_rows];
                for (int r = 0; r < R; ++r) rows[r] = input + size_t(i + r) * H_;
                const T* ahead = columns[tile % C] + ptrdiff_t(next - v) * H_ * L;
                product(rows, R, columns, C, H_, sums, ahead);
                for (int r = 0; r < R; ++r)
                    for (int j = 0; j < width; ++j)
                        each(i + r, v + j, sums + (r * C + j) * L, width * L);
            }
        });
    }

    template <class Each>
    void unpacked_products(const T* input, int running, int gate, int gates, Each each) {
        alignas(64) T sums[dot_rows * most_columns * L] = {};
        for (int v = part_.first; v < part_.last; ++v)
            for (int i = 0, R; i < running; i += R) {
                R = std::min(dot_rows, running - i);
                const T* rows[dot_rows];
                for (int r = 0; r < R; ++r) rows[r] = input + size_t(i + r) * H_;
                for (int lane = 0; lane < lanes(v); ++lane) {
                    const T* weights[most_columns];
                    for (int g = 0; g < gates; ++g)
                        weights[g] = at_.weights + (size_t(gate + g) * H_ + v * L + lane) * H_;
                    dots(rows, R, weights, gates, H_, sums, lane);
                }
                for (int r = 0; r < R; ++r) each(i + r, v, sums + r * gates * L, L);
            }
    }

    // h after the step, wherever it is wanted; before: what it was.
    void put(int i, int v, Vec<T> h, Vec<T> before, int n) {
        int row = rows_.rows[i];
        store(state_.next + size_t(i) * H_ + v * L, h, n);
        store(output(row) + v * L, h, n);
        if (at_.before) store(at_.before + token(row) * H_ + v * L, before, n);
    }

    // h' = φ(a)
    void rnn(int running) {
        products(state_.h, running, 0, 1, [&](int i, int v, const T* sums, int) {
            int n = lanes(v);
            T* gate = at_.gates + token(rows_.rows[i]) * H_ + v * L;
            Vec<T> h = activate<T>(cell_.first, load(gate, n) + load(sums));
            store(gate, h, n);
            put(i, v, h, load(state_.h + size_t(i) * H_ + v * L, n), n);
        });
    }

    // c' = f ⊙ c + i ⊙ g,  h' = o ⊙ tanh(c')
    void lstm(int running) {
        bool full = cell_.second == PEEPHOLE_FULL, peeks = cell_.second != NO_PEEPHOLE;
        const T* out = at_.peephole + (full ? 2 * H_ : 0);
        products(state_.h, running, 0, 4, [&](int r, int v, const T* sums, int stride) {
            int n = lanes(v), row = rows_.rows[r];
            T* gate = at_.gates + token(row) * 4 * H_ + v * L;
            Vec<T> c = load(state_.c + size_t(r) * H_ + v * L, n);
            Vec<T> i = load(gate, n) + load(sums);
            Vec<T> f = load(gate + H_, n) + load(sums + stride);
            Vec<T> g = tanh<T>(load(gate + 2 * H_, n) + load(sums + 2 * stride));
            Vec<T> o = load(gate + 3 * H_, n) + load(sums + 3 * stride);
            if (full) {
                i += load(at_.peephole + v * L, n) * c;
                f += load(at_.peephole + H_ + v * L, n) * c;
            }
            i = sigmoid<T>(i);
            f = sigmoid<T>(f);
            c = f * c + i * g;
            if (peeks) o += load(out + v * L, n) * c;
            o = sigmoid<T>(o);
            Vec<T> h = o * (cell_.first == OUTPUT_TANH ? tanh<T>(c) : c);
            store(gate, i, n);
            store(gate + H_, f, n);
            store(gate + 2 * H_, g, n);
            store(gate + 3 * H_, o, n);
            store(state_.c + size_t(r) * H_ + v * L, c, n);
            if (at_.cells) store(at_.cells + token(row) * H_ + v * L, c, n);
            put(r, v, h, load(state_.h + size_t(r) * H_ + v * L, n), n);
        });
    }

    void gru(int running) {
        if (cell_.first == RESET_AFTER) gru_after(running);
        if (cell_.first == RESET_BEFORE) gru_before(running);
        if (cell_.first == RESET_NONE) gru_none(running);
    }

    // n = tanh(W_n x + r ⊙ (U_n h + b))
    void gru_after(int running) {
        products(state_.h, running, 0, 3, [&](int i, int v, const T* sums, int stride) {
            int n = lanes(v);
            int64_t at = token(rows_.rows[i]);
            T* gate = at_.gates + at * 3 * H_ + v * L;
            Vec<T> r = sigmoid<T>(load(gate, n) + load(sums));
            Vec<T> z = sigmoid<T>(load(gate + H_, n) + load(sums + stride));
            Vec<T> inner = load(sums + 2 * stride);
            if (at_.bias) inner += load(at_.bias + v * L, n);
            Vec<T> candidate = tanh<T>(load(gate + 2 * H_, n) + r * inner);
            store(gate, r, n);
            if (at_.inner) store(at_.inner + at * H_ + v * L, inner, n);
            gru_put(i, v, gate + H_, z, candidate);
        });
    }

    // n = tanh(W_n x + U_n (r ⊙ h))
    void gru_before(int running) {
        products(state_.h, running, 0, 2, [&](int i, int v, const T* sums, int stride) {
            int n = lanes(v);
            int64_t at = token(rows_.rows[i]);
            T* gate = at_.gates + at * 3 * H_ + v * L;
            Vec<T> r = sigmoid<T>(load(gate, n) + load(sums));
            Vec<T> reset = r * load(state_.h + size_t(i) * H_ + v * L, n);
            store(gate, r, n);
            store(gate + H_, sigmoid<T>(load(gate + H_, n) + load(sums + stride)), n);
            store(state_.reset + size_t(i) * H_ + v * L, reset, n);
            if (at_.inner) store(at_.inner + at * H_ + v * L, reset, n);
        });
        part_.meeting->wait();
        products(state_.reset, running, 2, 1, [&](int i, int v, const T* sums, int) {
            T* gate = at_.gates + token(rows_.rows[i]) * 3 * H_ + v * L;
            Vec<T> candidate = tanh<T>(load(gate + 2 * H_, lanes(v)) + load(sums));
            gru_put(i, v, gate + H_, load(gate + H_, lanes(v)), candidate);
        });
    }

    // n = tanh(W_n x + U_n h)
    void gru_none(int running) {
        products(state_.h, running, 0, 2, [&](int i, int v, const T* sums, int stride) {
            int n = lanes(v);
            T* gate = at_.gates + token(rows_.rows[i]) * 2 * H_ + v * L;
            Vec<T> z = sigmoid<T>(load(gate, n) + load(sums));
            gru_put(i, v, gate, z, tanh<T>(load(gate + H_, n) + load(sums + stride)));
        });
    }

    // h' = h + w ⊙ (n − h), where w is 1 − z ("keep") or z ("write"); gate: where z and n lie.
    void gru_put(int i, int v, T* gate, Vec<T> z, Vec<T> candidate) {
        int n = lanes(v);
        Vec<T> h = load(state_.h + size_t(i) * H_ + v * L, n);
        Vec<T> written = cell_.second == KEEP ? T(1) - z : z;
        store(gate, z, n);
        store(gate + H_, candidate, n);
        put(i, v, h + written * (candidate - h), h, n);
    }

    Cell cell_;
    const Shape& shape_;
    const Forward<T>& at_;
    const T* packed_;
    const Rows& rows_;
    Running<T> state_;
    Part part_;
    int H_, G_;
    int64_t now_ = 0;
};

template <class T>
void forward(Cell cell, Shape shape, const Plan& plan, const Forward<T>* at, int directions) {
    constexpr int L = Lanes<T>::count;
    int G = cell.gates(), H = shape.H, V = vectors(H, L);
    size_t matrix = size_t(V) * H * L, all = size_t(shape.B) * H;
    bool packs = plan.most_steps > 2;  // else packing would take longer than it saves
    Buffer<T> packed(packs ? directions * G * matrix : 0), states(directions * 4 * all);
    auto pack = [&](int i) {
        int direction = i / (G * V), gate = i / V % G, v = i % V;
        pack_transposed(at[direction].weights + size_t(gate) * H * H, H, H, v,
                        packed.data() + (direction * G + gate) * matrix);
    };
    auto run = [&](int direction, int group, Part part) {
        T* own = states.data() + direction * 4 * all + size_t(plan.starts[group]) * H;
        Running<T> state{own, own + all, own + 2 * all, own + 3 * all};
        const T* weights = packs ? packed.data() + direction * G * matrix : nullptr;
        ForwardRun<T>(cell, shape, at[direction], weights, plan.groups[group], state, part)();
    };
    run_plan(plan, shape, directions, packs ? directions * G * V : 0, V, pack, run);
}

}  // namespace UNROLLED_ISA
