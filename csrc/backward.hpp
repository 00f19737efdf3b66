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
inline Vec<T> slope(Activation activation, Vec<T> y) {
    switch (activation) {
        case Activation::tanh: return T(1) - y * y;
        case Activation::sigmoid: return y * (T(1) - y);
        case Activation::relu: return y <= T(0) ? Vec<T>{} : splat<T>(1);  // NaN passes, as with torch
        case Activation::leaky_relu: return y > T(0) ? splat<T>(1) : splat<T>(T(0.01));
        default: return splat<T>(1);
    }
}

// The gradients of a group's states while it runs: (rows, H) each.
template <class T>
struct BackwardState {
    T* dh;
    T* dc;
};

template <class T, class Cell>
class BackwardRun {
   public:
    BackwardRun(Cell cell, const Shape& shape, const Backward<T>& layer, const T* packed,
                const RowGroup& group, BackwardState<T> state, Part part)
        : cell_(cell), shape_(shape), layer_(layer), packed_(packed), group_(group), state_(state),
          part_(part), H_(shape.H), G_(cell.gates()) {}

    UNROLLED_FLAT void operator()() {
        begin();
        int running = 0;
        int64_t steps = group_.count() ? shape_.lengths[group_.rows[0]] : 0;
        for (now_ = steps - 1; now_ >= 0; --now_) {
            while (running < group_.count() && shape_.lengths[group_.rows[running]] > now_) ++running;
            step(cell_, running);
        }
        end();
    }

   private:
    static constexpr int L = Lanes<T>::count;

    int lanes(int v) const { return std::min(L, H_ - v * L); }

    int64_t time(int row) const { return layer_.reverse ? shape_.lengths[row] - 1 - now_ : now_; }

    int64_t token(int row) const { return shape_.offsets[row] + time(row); }

    T* dgate(int64_t token, int v) const { return layer_.dgates + token * layer_.gate_step + v * L; }

    void begin() {
        for (int i = 0; i < group_.count(); ++i) {
            int row = group_.rows[i];
            part_.copy(row_of(layer_.dlast_h, row, H_), row_of(state_.dh, i, H_), H_);
            if (Cell::has_memory)
                part_.copy(row_of(layer_.dlast_c, row, H_), row_of(state_.dc, i, H_), H_);
        }
    }

    void end() {
        for (int i = 0; i < group_.count(); ++i) {
            int row = group_.rows[i];
            part_.copy(row_of(state_.dh, i, H_), row_of(layer_.dfirst_h, row, H_), H_);
            if (Cell::has_memory)
                part_.copy(row_of(state_.dc, i, H_), row_of(layer_.dfirst_c, row, H_), H_);
        }
    }

    // For each running row and vector of this part: each(i, v, lanes, ∂L/∂h after the step).
    template <class Each>
    void each_unit(int running, Each each) {
        for (int i = 0; i < running; ++i) {
            int row = group_.rows[i];
            const T* dy = layer_.dy ? layer_.dy + row * layer_.y_row + time(row) * layer_.y_step : nullptr;
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
        alignas(64) T sums[MR * NR * L];
        int together = part_.fetch_ahead ? fetched_columns : NR;
        part_.sweep(now_, together, [&](int v, int width, int next) {
            ColumnPanel<T> right{{}, width, nullptr};
            for (int j = 0; j < width; ++j)
                right.columns[j] = packed_ + (size_t(v + j) * G_ * H_ + first) * L;
            int tile = 0;
            for (int i = 0; i < running; ++tile) {
                int R = next_tile(running - i, width);
                RowPanel<T> left{{}, R};
                for (int r = 0; r < R; ++r) left.rows[r] = from + token(group_.rows[i + r]) * stride;
                right.prefetch = right.columns[tile % width] + ptrdiff_t(next - v) * G_ * H_ * L;
                multiply(left, right, K, zeros<T>(), sums, width * L);
                for (int r = 0; r < R; ++r)
                    for (int j = 0; j < width; ++j)
                        each(i + r, v + j, lanes(v + j), load(sums + (r * width + j) * L));
                i += R;
            }
        });
    }

    void set_dh(int i, int v, int n, Vec<T> value) {
        store(state_.dh + size_t(i) * H_ + v * L, value, n);
    }

    void add_dh(int i, int v, int n, Vec<T> value) {
        set_dh(i, v, n, load(state_.dh + size_t(i) * H_ + v * L, n) + value);
    }

    void step(const RnnCell& cell, int running) {
        each_unit(running, [&](int i, int v, int n, Vec<T> dh) {
            int64_t own = token(group_.rows[i]);
            Vec<T> h = load(layer_.gates + own * H_ + v * L, n);
            store(dgate(own, v), dh * slope<T>(cell.activation, h), n);
        });
        part_.barrier->wait();
        products(layer_.dgates, layer_.gate_step, 0, H_, running,
                 [&](int i, int v, int n, Vec<T> sum) { set_dh(i, v, n, sum); });
    }

    void step(const LstmCell& cell, int running) {
        bool full = cell.peephole == Peephole::full;
        bool peeks = cell.has_peephole();
        bool squashes = cell.output == Output::tanh;
        const T* p_i = layer_.peephole;
        const T* p_f = full ? p_i + H_ : nullptr;
        const T* p_o = full ? p_i + 2 * H_ : p_i;
        each_unit(running, [&](int r, int v, int n, Vec<T> dh) {
            int row = group_.rows[r];
            const T* gates = layer_.gates + token(row) * 4 * H_ + v * L;
            T* held = state_.dc + size_t(r) * H_ + v * L;
            Vec<T> i = load(gates, n);
            Vec<T> f = load(gates + H_, n);
            Vec<T> g = load(gates + 2 * H_, n);
            Vec<T> o = load(gates + 3 * H_, n);
            Vec<T> c = load(layer_.cells + token(row) * H_ + v * L, n);
            const T* earlier = cells_before(row);
            Vec<T> c_before = earlier ? load(earlier + v * L, n) : Vec<T>{};
            Vec<T> shown = squashes ? vtanh<T>(c) : c;
            Vec<T> d_o = dh * shown * o * (T(1) - o);
            Vec<T> dc = load(held, n) + dh * o * (squashes ? T(1) - shown * shown : splat<T>(1));
            if (peeks) dc += d_o * load(p_o + v * L, n);
            Vec<T> d_i = dc * g * i * (T(1) - i);
            Vec<T> d_f = dc * c_before * f * (T(1) - f);
            Vec<T> dc_before = dc * f;
            if (full) {
                dc_before += d_i * load(p_i + v * L, n);
                dc_before += d_f * load(p_f + v * L, n);
            }
            T* to = dgate(token(row), v);
            store(to, d_i, n);
            store(to + H_, d_f, n);
            store(to + 2 * H_, dc * i * (T(1) - g * g), n);
            store(to + 3 * H_, d_o, n);
            store(held, dc_before, n);
        });
        part_.barrier->wait();
        products(layer_.dgates, layer_.gate_step, 0, 4 * H_, running,
                 [&](int i, int v, int n, Vec<T> sum) { set_dh(i, v, n, sum); });
    }

    // c before this step: that of the step before, or the first, null for zeros.
    const T* cells_before(int row) const {
        if (now_ == 0) return row_of(layer_.first_c, row, H_);
        return layer_.cells + (token(row) + (layer_.reverse ? 1 : -1)) * H_;
    }

    void step(const GruCell& cell, int running) {
        bool keeps = cell.update == Update::keep;
        int z_gate = cell.reset == Reset::none ? 0 : H_;  // where the gates z and n begin
        each_unit(running, [&](int i, int v, int n, Vec<T> dh) {
            int64_t own = token(group_.rows[i]);
            const T* gate = layer_.gates + own * G_ * H_ + z_gate + v * L;
            T* to = dgate(own, v);
            Vec<T> z = load(gate, n);
            Vec<T> candidate = load(gate + H_, n);
            Vec<T> away = load(layer_.before + own * H_ + v * L, n) - candidate;
            Vec<T> kept = keeps ? z : T(1) - z;
            Vec<T> dz = dh * away * z * (T(1) - z);
            Vec<T> dn = dh * (T(1) - kept) * (T(1) - candidate * candidate);
            store(to + z_gate, keeps ? dz : -dz, n);
            store(to + z_gate + H_, dn, n);
            set_dh(i, v, n, dh * kept);
            if (cell.reset == Reset::after) {
                Vec<T> r = load(gate - H_, n);
                Vec<T> inner = load(layer_.inner + own * H_ + v * L, n);
                store(to, dn * inner * r * (T(1) - r), n);
                store(layer_.dinner + own * layer_.inner_step + v * L, dn * r, n);
            }
        });
        part_.barrier->wait();
        auto add = [&](int i, int v, int n, Vec<T> sum) { add_dh(i, v, n, sum); };
        if (cell.reset == Reset::after)
            products(layer_.dinner, layer_.inner_step, 2 * H_, H_, running, add);
        if (cell.reset == Reset::before) {
            products(layer_.dgates + 2 * H_, layer_.gate_step, 2 * H_, H_, running,
                     [&](int i, int v, int n, Vec<T> sum) { reset_back(i, v, n, sum); });
            part_.barrier->wait();
        }
        products(layer_.dgates, layer_.gate_step, 0, 2 * H_, running, add);
    }

    // The gradient of r ⊙ h goes to both of its factors.
    void reset_back(int i, int v, int n, Vec<T> sum) {
        int64_t own = token(group_.rows[i]);
        Vec<T> r = load(layer_.gates + own * 3 * H_ + v * L, n);
        Vec<T> h = load(layer_.before + own * H_ + v * L, n);
        store(dgate(own, v), sum * h * r * (T(1) - r), n);
        add_dh(i, v, n, sum * r);
    }

    Cell cell_;
    const Shape& shape_;
    const Backward<T>& layer_;
    const T* packed_;
    const RowGroup& group_;
    BackwardState<T> state_;
    Part part_;
    int H_;
    int G_;
    int64_t now_ = 0;
};

}  // namespace UNROLLED_ISA
