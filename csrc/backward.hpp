// The recurrence backward: the gradients of all gates, from the last step to the first.
//
// The gradients of the weights and of the inputs are sums over all tokens; they need no order in time
// and follow when all steps are done: gradients.hpp.
#pragma once

#include "schedule.hpp"

namespace UNROLLED_ISA {

constexpr int fetched_columns = 3;  // taller tiles: weights from afar are read less often

// φ' by what φ gave.
template <class T>
inline Vec<T> slope(int activation, Vec<T> y) {
    switch (activation) {
        case TANH: return T(1) - y * y;
        case SIGMOID: return y * (T(1) - y);
        case RELU: return y > T(0) ? splat<T>(1) : Vec<T>{};
        case LEAKY_RELU: return y > T(0) ? splat<T>(1) : splat<T>(T(0.01));
        default: return splat<T>(1);
    }
}

// The gradients of a group's states while it runs: (rows, H) each.
template <class T>
struct Returning {
    T *dh, *dc;
};

template <class T>
class BackwardRun {
   public:
    BackwardRun(Cell cell, const Shape& shape, const Backward<T>& at, const T* packed,
                const Rows& rows, Returning<T> state, Part part)
        : cell_(cell), shape_(shape), at_(at), packed_(packed), rows_(rows), state_(state),
          part_(part), H_(shape.H), G_(cell.gates()) {}

    UNROLLED_FLAT void operator()() {
        begin();
        int running = 0;
        int64_t steps = rows_.count() ? shape_.lengths[rows_.rows[0]] : 0;
        for (now_ = steps - 1; now_ >= 0; --now_) {
            while (running < rows_.count() && shape_.lengths[rows_.rows[running]] > now_) ++running;
            if (cell_.kind == RNN) rnn(running);
            if (cell_.kind == LSTM) lstm(running);
            if (cell_.kind == GRU) gru(running);
        }
        end();
    }

   private:
    static constexpr int L = Lanes<T>::count;

    int lanes(int v) const { return std::min(L, H_ - v * L); }

    int64_t time(int row) const { return at_.reverse ? shape_.lengths[row] - 1 - now_ : now_; }

    int64_t token(int row) const { return shape_.offsets[row] + time(row); }

    T* dgate(int64_t token, int v) const { return at_.dgates + token * at_.gate_step + v * L; }

    void begin() {
        for (int i = 0; i < rows_.count(); ++i) {
            int row = rows_.rows[i];
            part_.copy(row_of(at_.dlast_h, row, H_), row_of(state_.dh, i, H_), H_);
            if (cell_.kind == LSTM)
                part_.copy(row_of(at_.dlast_c, row, H_), row_of(state_.dc, i, H_), H_);
        }
    }

    void end() {
        for (int i = 0; i < rows_.count(); ++i) {
            int row = rows_.rows[i];
            part_.copy(row_of(state_.dh, i, H_), row_of(at_.dfirst_h, row, H_), H_);
            if (cell_.kind == LSTM)
                part_.copy(row_of(state_.dc, i, H_), row_of(at_.dfirst_c, row, H_), H_);
        }
    }

    // For each running row and vector of this part: each(i, v, lanes, ∂L/∂h after the step).
    template <class Each>
    void each_unit(int running, Each each) {
        for (int i = 0; i < running; ++i) {
            int row = rows_.rows[i];
            const T* dy = at_.dy ? at_.dy + row * at_.y_row + time(row) * at_.y_step : nullptr;
            for (int v = part_.first; v < part_.last; ++v) {
                int n = lanes(v);
                Vec<T> dh = load(state_.dh + size_t(i) * H_ + v * L, n);
                if (dy) dh += load(dy + v * L, n);
                each(i, v, n, dh);
            }
        }
    }

    // For each running row and vector: each(i, v, lanes, Σ_k from[token][k] · U[first + k]).
    template <class Each>
    void products(const T* from, int64_t stride, int first, int K, int running, Each each) {
        alignas(64) T sums[most_rows * most_columns * L];
        int together = part_.fetch_ahead ? fetched_columns : most_columns;
        part_.sweep(now_, together, [&](int v, int width, int next) {
            Columns<T> columns{{}, width, nullptr};
            for (int j = 0; j < width; ++j)
                columns.at[j] = packed_ + (size_t(v + j) * G_ * H_ + first) * L;
            int tile = 0;
            for (int i = 0, R; i < running; i += R, ++tile) {
                R = next_tile(running - i, width);
                Left<T> left{{}, R};
                for (int r = 0; r < R; ++r) left.at[r] = from + token(rows_.rows[i + r]) * stride;
                columns.ahead = columns.at[tile % width] + ptrdiff_t(next - v) * G_ * H_ * L;
                product(left, columns, K, zeros<T>(), sums, width * L);
                for (int r = 0; r < R; ++r)
                    for (int j = 0; j < width; ++j)
                        each(i + r, v + j, lanes(v + j), load(sums + (r * width + j) * L));
            }
        });
    }

    void set_dh(int i, int v, int n, Vec<T> value) {
        store(state_.dh + size_t(i) * H_ + v * L, value, n);
    }

    void add_dh(int i, int v, int n, Vec<T> value) {
        set_dh(i, v, n, load(state_.dh + size_t(i) * H_ + v * L, n) + value);
    }

    void rnn(int running) {
        each_unit(running, [&](int i, int v, int n, Vec<T> dh) {
            int64_t at = token(rows_.rows[i]);
            Vec<T> h = load(at_.gates + at * H_ + v * L, n);
            store(dgate(at, v), dh * slope<T>(cell_.first, h), n);
        });
        part_.meeting->wait();
        products(at_.dgates, at_.gate_step, 0, H_, running,
                 [&](int i, int v, int n, Vec<T> sum) { set_dh(i, v, n, sum); });
    }

    void lstm(int running) {
        bool full = cell_.second == PEEPHOLE_FULL, peeks = cell_.second != NO_PEEPHOLE;
        const T* out = at_.peephole + (full ? 2 * H_ : 0);
        each_unit(running, [&](int r, int v, int lanes, Vec<T> dh) {
            int row = rows_.rows[r];
            int64_t at = token(row) * 4 * H_ + v * L;
            T* held = state_.dc + size_t(r) * H_ + v * L;
            Vec<T> i = load(at_.gates + at, lanes), f = load(at_.gates + at + H_, lanes),
                   g = load(at_.gates + at + 2 * H_, lanes),
                   o = load(at_.gates + at + 3 * H_, lanes);
            Vec<T> c = load(at_.cells + token(row) * H_ + v * L, lanes);
            const T* earlier = cells_before(row);
            Vec<T> c_before = earlier ? load(earlier + v * L, lanes) : Vec<T>{};
            bool squashed = cell_.first == OUTPUT_TANH;
            Vec<T> shown = squashed ? tanh<T>(c) : c;
            Vec<T> d_o = dh * shown * o * (T(1) - o);
            Vec<T> dc = load(held, lanes) + dh * o * (squashed ? T(1) - shown * shown : splat<T>(1));
            if (peeks) dc += d_o * load(out + v * L, lanes);
            Vec<T> d_i = dc * g * i * (T(1) - i);
            Vec<T> d_f = dc * c_before * f * (T(1) - f);
            Vec<T> dc_before = dc * f;
            if (full) {
                dc_before += d_i * load(at_.peephole + v * L, lanes);
                dc_before += d_f * load(at_.peephole + H_ + v * L, lanes);
            }
            T* to = dgate(token(row), v);
            store(to, d_i, lanes);
            store(to + H_, d_f, lanes);
            store(to + 2 * H_, dc * i * (T(1) - g * g), lanes);
            store(to + 3 * H_, d_o, lanes);
            store(held, dc_before, lanes);
        });
        part_.meeting->wait();
        products(at_.dgates, at_.gate_step, 0, 4 * H_, running,
                 [&](int i, int v, int n, Vec<T> sum) { set_dh(i, v, n, sum); });
    }

    // c before this step: that of the step before, or the first, null for zeros.
    const T* cells_before(int row) const {
        if (now_ == 0) return row_of(at_.first_c, row, H_);
        return at_.cells + (token(row) + (at_.reverse ? 1 : -1)) * H_;
    }

    void gru(int running) {
        int reset = cell_.first == RESET_NONE ? 0 : H_;  // where the gates z and n begin
        each_unit(running, [&](int i, int v, int n, Vec<T> dh) {
            int64_t at = token(rows_.rows[i]);
            const T* gate = at_.gates + at * G_ * H_ + reset + v * L;
            T* to = dgate(at, v);
            Vec<T> z = load(gate, n), candidate = load(gate + H_, n);
            Vec<T> away = load(at_.before + at * H_ + v * L, n) - candidate;
            Vec<T> kept = cell_.second == KEEP ? z : T(1) - z;
            Vec<T> dz = dh * away * z * (T(1) - z);
            Vec<T> dn = dh * (T(1) - kept) * (T(1) - candidate * candidate);
            store(to + reset, cell_.second == KEEP ? dz : -dz, n);
            store(to + reset + H_, dn, n);
            set_dh(i, v, n, dh * kept);
            if (cell_.first == RESET_AFTER) {
                Vec<T> r = load(gate - H_, n);
                Vec<T> inner = load(at_.inner + at * H_ + v * L, n);
                store(to, dn * inner * r * (T(1) - r), n);
                store(at_.dinner + at * at_.inner_step + v * L, dn * r, n);
            }
        });
        part_.meeting->wait();
        auto add = [&](int i, int v, int n, Vec<T> sum) { add_dh(i, v, n, sum); };
        if (cell_.first == RESET_AFTER)
            products(at_.dinner, at_.inner_step, 2 * H_, H_, running, add);
        if (cell_.first == RESET_BEFORE) {
            products(at_.dgates + 2 * H_, at_.gate_step, 2 * H_, H_, running,
                     [&](int i, int v, int n, Vec<T> sum) { reset_back(i, v, n, sum); });
            part_.meeting->wait();
        }
        products(at_.dgates, at_.gate_step, 0, 2 * H_, running, add);
    }

    // The gradient of r ⊙ h goes to both of its factors.
    void reset_back(int i, int v, int n, Vec<T> sum) {
        int64_t at = token(rows_.rows[i]);
        Vec<T> r = load(at_.gates + at * 3 * H_ + v * L, n);
        Vec<T> h = load(at_.before + at * H_ + v * L, n);
        store(dgate(at, v), sum * h * r * (T(1) - r), n);
        add_dh(i, v, n, sum * r);
    }

    Cell cell_;
    const Shape& shape_;
    const Backward<T>& at_;
    const T* packed_;
    const Rows& rows_;
    Returning<T> state_;
    Part part_;
    int H_, G_;
    int64_t now_ = 0;
};

}  // namespace UNROLLED_ISA
