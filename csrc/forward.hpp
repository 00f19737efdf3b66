// The recurrence forward. A step is one or two products with the packed weights; what a cell does
// with the sums follows at once, while they are in the cache.
#pragma once

#include "schedule.hpp"

namespace UNROLLED_ISA {

template <class T>
inline Vec<T> activate(Activation activation, Vec<T> x) {
    switch (activation) {
        case Activation::tanh: return vtanh<T>(x);
        case Activation::sigmoid: return vsigmoid<T>(x);
        case Activation::relu: return x <= T(0) ? Vec<T>{} : x;
        case Activation::leaky_relu: return x > T(0) ? x : T(0.01) * x;
        default: return x;
    }
}

// The state of a group of rows while it runs: (rows, H) each.
template <class T>
struct ForwardState {
    T* h;
    T* next;   // h after the step
    T* c;      // LSTM; GRU: z
    T* reset;  // GRU: r ⊙ h
};

// W x + b of some steps, and room to find their x.
template <class T>
struct Projection {
    T* sums;            // (steps, rows, G · V)  in vectors
    const T** sources;  // (steps, rows)  where their x lie
    int64_t* begins;    // (steps,)  how many of them the steps before have
    int64_t steps;      // made at once
};

// The weights of a direction as the products read them. Too few steps to pay for packing them all have room
// for the columns of one tile instead, which are packed where they are wanted: the same sums.
template <class T>
struct PackedWeights {
    const T* states;  // U: column v of gate g at (g · V + v) · H, in vectors; null: into the panel
    const T* inputs;  // W: column v of gate g at (g · V + v) · E; null: into the panel
    const T* biases;  // (G + 1, V)  of each gate, and the one inside r ⊙ (U_n h + b)
    T* panel;         // (NR, the larger of H and E)  in vectors
};

template <class T, class Cell>
class ForwardRun {
   public:
    ForwardRun(Cell cell, const Shape& shape, const Forward<T>& layer, PackedWeights<T> packed,
               const RowGroup& group, ForwardState<T> state, Projection<T> projection, Part part)
        : cell_(cell), shape_(shape), layer_(layer), packed_(packed), group_(group), state_(state),
          projection_(projection), part_(part), H_(shape.H), G_(cell.gates()), V_(vectors(shape.H, L)),
          width_(size_t(G_) * V_ * L), projects_(layer.input_weights != nullptr), keeps_(layer.before != nullptr),
          streams_(keeps_ && group.tokens * width_ * sizeof(T) > shape.cache / 4 * 5) {}

    UNROLLED_FLAT void operator()() {
        begin();
        int running = group_.count();
        int64_t steps = running ? length(0) : 0;
        for (now_ = 0; now_ < steps; ++now_) {
            running = still_running(running);
            if (projects_ && now_ % projection_.steps == 0) project(running, steps);
            step(cell_, running);
            finish(running);
            part_.barrier->wait();
            std::swap(state_.h, state_.next);
        }
        if (streams_) end_stream();
    }

   private:
    static constexpr int L = Lanes<T>::count;

    // Some vectors of some gates.
    struct Columns {
        int v;         // the first vector
        int width;     // how many
        int gate;      // the first gate
        int gates;     // how many
        int next = 0;  // how far the next vectors are, to be fetched ahead

        int count() const { return gates * width; }
    };

    int64_t length(int i) const { return shape_.lengths[group_.rows[i]]; }

    // Of the first so many rows, longest first, those that have this step.
    int still_running(int running) const {
        while (length(running - 1) <= now_) --running;
        return running;
    }

    // The lanes of vector v that are real units.
    int lanes(int v) const { return std::min(L, H_ - v * L); }

    int64_t time(int row) const { return layer_.reverse ? shape_.lengths[row] - 1 - now_ : now_; }

    int64_t token(int row) const { return shape_.offsets[row] + time(row); }

    const T* source(int row) const {
        return layer_.input + row * layer_.x_row + time(row) * layer_.x_step;
    }

    T* output(int row) const { return layer_.y + row * layer_.y_row + time(row) * layer_.y_step; }

    // Vector v of row i of one of the states.
    T* of_row(T* state, int i, int v) const { return state + size_t(i) * H_ + v * L; }

    // W x + b of some steps from this one on: few enough to stay in the cache until they are used, and
    // many enough for each weight to serve many rows.
    void project(int running, int64_t steps) {
        int64_t from = now_;
        int64_t count = 0;
        int64_t end = std::min(steps, now_ + projection_.steps);
        for (; now_ < end; ++now_) {
            running = still_running(running);
            projection_.begins[now_ - from] = count;
            for (int i = 0; i < running; ++i) projection_.sources[count++] = source(group_.rows[i]);
        }
        now_ = from;
        for (int g = 0; g < G_; ++g)
            part_.sweep(0, NR, [&](int v, int width, int) { project(g, v, width, count); });
    }

    // Those of some vectors of a gate, for so many sources.
    void project(int g, int v, int width, int64_t count) const {
        T* out = projection_.sums + (size_t(g) * V_ + v) * L;
        const Columns columns{v, width, g, 1};
        const ColumnPanel<T> right = panel(packed_.inputs, layer_.input_weights, int(layer_.E), columns);
        InitialSums<T> initial{};
        for (int j = 0; j < width; ++j) initial.columns[j] = bias(g, v + j);
        for (int64_t i = 0; i < count;) {
            int R = next_tile(count - i, width);
            RowPanel<T> left{{}, R};
            for (int r = 0; r < R; ++r) left.rows[r] = projection_.sources[i + r];
            multiply(left, right, int(layer_.E), initial, out + i * width_, width_);
            i += R;
        }
    }

    void begin() {
        for (int i = 0; i < group_.count(); ++i) {
            int row = group_.rows[i];
            part_.copy(row_of(layer_.first_h, row, H_), row_of(state_.h, i, H_), H_);
            if (Cell::has_memory)
                part_.copy(row_of(layer_.first_c, row, H_), row_of(state_.c, i, H_), H_);
        }
        part_.barrier->wait();
    }

    // A row that has made its last step leaves its state behind, and zeros in the padding.
    void finish(int running) {
        for (int i = running - 1; i >= 0; --i) {
            int row = group_.rows[i];
            if (shape_.lengths[row] != now_ + 1) return;
            part_.copy(row_of(state_.next, i, H_), row_of(layer_.last_h, row, H_), H_);
            if (Cell::has_memory)
                part_.copy(row_of(state_.c, i, H_), row_of(layer_.last_c, row, H_), H_);
            for (int64_t t = shape_.lengths[row]; t < shape_.steps; ++t)
                part_.copy<T>(nullptr, layer_.y + row * layer_.y_row + t * layer_.y_step, H_);
        }
    }

    // For each running row i and vector v of this part: each(i, v, sums, stride), where sums holds
    // W x + b and the products of `state` for `gates` gates from `gate` on, `stride` apart.
    template <class Each>
    void products(const T* state, int running, int gate, int gates, Each each) {
        alignas(64) T sums[MR * NR * L];
        part_.sweep(now_, NR / gates, [&](int v, int width, int next) {
            const Columns columns{v, width, gate, gates, next - v};
            const int C = columns.count();
            ColumnPanel<T> right = panel(packed_.states, layer_.weights, H_, columns);
            for (int i = 0, tile = 0; i < running; ++tile) {
                int R = next_tile(running - i, C);
                RowPanel<T> left{{}, R};
                for (int r = 0; r < R; ++r) left.rows[r] = state + size_t(i + r) * H_;
                right.prefetch = right.columns[tile % C] + ptrdiff_t(columns.next) * H_ * L;
                multiply(left, right, H_, initial_sums(i, R, columns, sums), sums, C * L);
                for (int r = 0; r < R; ++r)
                    for (int j = 0; j < width; ++j)
                        each(i + r, v + j, sums + (r * C + j) * L, width * L);
                i += R;
            }
        });
    }

    // These columns of weights (G·H, K): where they are packed, or packed now.
    ColumnPanel<T> panel(const T* packed, const T* weights, int K, const Columns& columns) const {
        ColumnPanel<T> right{{}, columns.count(), nullptr};
        for (int g = 0; g < columns.gates; ++g)
            for (int j = 0; j < columns.width; ++j) {
                const int c = g * columns.width + j;
                const int gate = columns.gate + g;
                const int v = columns.v + j;
                if (packed) {
                    right.columns[c] = packed + (size_t(gate) * V_ + v) * K * L;
                } else {
                    T* column = packed_.panel + size_t(c) * K * L;
                    pack_column(weights + size_t(gate) * H_ * K, H_, K, v, column);
                    right.columns[c] = column;
                }
            }
        right.prefetch = right.columns[0];
        return right;
    }

    // What the sums of a tile begin with: W x + b, where it lies, or brought together in `sums`. The gate n
    // of a GRU that resets after begins with the bias inside the product alone.
    InitialSums<T> initial_sums(int i, int R, const Columns& columns, T* sums) const {
        InitialSums<T> initial;
        int C = columns.count();
        int c = 0;
        for (int g = columns.gate; g < columns.gate + columns.gates; ++g)
            for (int v = columns.v; v < columns.v + columns.width; ++v, ++c) {
                bool inside = cell_.resets_after() && g == 2;
                if (inside) {
                    initial.columns[c] = bias(G_, v);
                    initial.step[c] = 0;
                } else if (projects_) {
                    initial.columns[c] = projected(i, g, v);
                    initial.step[c] = width_;
                } else {
                    initial.columns[c] = sums + c * L;
                    initial.step[c] = C * L;
                }
                for (int r = 0; !inside && !projects_ && r < R; ++r)
                    store(sums + (r * C + c) * L, input(i + r, g, v));
            }
        return initial;
    }

    const T* bias(int g, int v) const { return packed_.biases + (size_t(g) * V_ + v) * L; }

    const T* projected(int i, int g, int v) const {
        int64_t row = projection_.begins[now_ % projection_.steps] + i;
        return projection_.sums + row * width_ + (size_t(g) * V_ + v) * L;
    }

    // W x + b.
    Vec<T> input(int i, int g, int v) const {
        if (projects_) return load(projected(i, g, v));
        return load(gate(i, g, v), lanes(v)) + load(bias(g, v));
    }

    // Vector v of a gate of row i.
    T* gate(int i, int g, int v) const {
        return layer_.gates + (token(group_.rows[i]) * G_ + g) * H_ + v * L;
    }

    // For the way back.
    void keep(T* to, Vec<T> value, int n) const {
        if (streams_) stream(to, value, n);
        else store(to, value, n);
    }

    // h after the step, wherever it is wanted; before: what it was.
    void put(int i, int v, Vec<T> h, Vec<T> before, int n) {
        int row = group_.rows[i];
        store(of_row(state_.next, i, v), h, n);
        store(output(row) + v * L, h, n);
        if (keeps_) keep(layer_.before + token(row) * H_ + v * L, before, n);
    }

    // h' = φ(a)
    void step(const RnnCell& cell, int running) {
        products(state_.h, running, 0, 1, [&](int i, int v, const T* sums, int) {
            int n = lanes(v);
            Vec<T> h = activate<T>(cell.activation, load(sums));
            if (keeps_) keep(gate(i, 0, v), h, n);
            put(i, v, h, load(of_row(state_.h, i, v), n), n);
        });
    }

    // c' = f ⊙ c + i ⊙ g,  h' = o ⊙ tanh(c')
    void step(const LstmCell& cell, int running) {
        bool full = cell.peephole == Peephole::full;
        bool peeks = cell.has_peephole();
        const T* p_i = layer_.peephole;
        const T* p_f = full ? p_i + H_ : nullptr;
        const T* p_o = full ? p_i + 2 * H_ : p_i;
        auto each = [&](int r, int v, const T* sums, int stride) {
            int n = lanes(v);
            Vec<T> c = load(of_row(state_.c, r, v), n);
            Vec<T> i = load(sums);
            Vec<T> f = load(sums + stride);
            Vec<T> g = vtanh<T>(load(sums + 2 * stride));
            Vec<T> o = load(sums + 3 * stride);
            if (full) {
                i += load(p_i + v * L, n) * c;
                f += load(p_f + v * L, n) * c;
            }
            i = vsigmoid<T>(i);
            f = vsigmoid<T>(f);
            c = f * c + i * g;
            if (peeks) o += load(p_o + v * L, n) * c;
            o = vsigmoid<T>(o);
            Vec<T> h = o * (cell.output == Output::tanh ? vtanh<T>(c) : c);
            store(of_row(state_.c, r, v), c, n);
            if (keeps_) {
                keep(gate(r, 0, v), i, n);
                keep(gate(r, 1, v), f, n);
                keep(gate(r, 2, v), g, n);
                keep(gate(r, 3, v), o, n);
                keep(layer_.cells + token(group_.rows[r]) * H_ + v * L, c, n);
            }
            put(r, v, h, load(of_row(state_.h, r, v), n), n);
        };
        products(state_.h, running, 0, 4, each);
    }

    void step(const GruCell& cell, int running) {
        if (cell.reset == Reset::after) step_reset_after(running);
        if (cell.reset == Reset::before) step_reset_before(running);
        if (cell.reset == Reset::none) step_without_reset(running);
    }

    // n = tanh(W_n x + r ⊙ (U_n h + b))
    void step_reset_after(int running) {
        auto each = [&](int i, int v, const T* sums, int stride) {
            Vec<T> r = vsigmoid<T>(load(sums));
            Vec<T> z = vsigmoid<T>(load(sums + stride));
            Vec<T> inner = load(sums + 2 * stride);
            keep_reset(i, v, r, inner);
            update(i, v, 1, z, vtanh<T>(input(i, 2, v) + r * inner));
        };
        products(state_.h, running, 0, 3, each);
    }

    // n = tanh(W_n x + U_n (r ⊙ h))
    void step_reset_before(int running) {
        auto reset = [&](int i, int v, const T* sums, int stride) {
            int n = lanes(v);
            Vec<T> r = vsigmoid<T>(load(sums));
            Vec<T> inner = r * load(of_row(state_.h, i, v), n);
            store(of_row(state_.reset, i, v), inner, n);
            store(of_row(state_.c, i, v), vsigmoid<T>(load(sums + stride)), n);
            keep_reset(i, v, r, inner);
        };
        products(state_.h, running, 0, 2, reset);
        part_.barrier->wait();
        products(state_.reset, running, 2, 1, [&](int i, int v, const T* sums, int) {
            Vec<T> z = load(of_row(state_.c, i, v), lanes(v));
            update(i, v, 1, z, vtanh<T>(load(sums)));
        });
    }

    // n = tanh(W_n x + U_n h)
    void step_without_reset(int running) {
        auto each = [&](int i, int v, const T* sums, int stride) {
            Vec<T> z = vsigmoid<T>(load(sums));
            update(i, v, 0, z, vtanh<T>(load(sums + stride)));
        };
        products(state_.h, running, 0, 2, each);
    }

    void keep_reset(int i, int v, Vec<T> r, Vec<T> inner) {
        if (!keeps_) return;
        keep(gate(i, 0, v), r, lanes(v));
        keep(layer_.inner + token(group_.rows[i]) * H_ + v * L, inner, lanes(v));
    }

    // h' = h + w ⊙ (n − h), where w is 1 − z ("keep") or z ("write"); z_gate: which gate z is.
    void update(int i, int v, int z_gate, Vec<T> z, Vec<T> candidate) {
        int n = lanes(v);
        Vec<T> h = load(of_row(state_.h, i, v), n);
        Vec<T> written = cell_.update == Update::keep ? T(1) - z : z;
        if (keeps_) {
            keep(gate(i, z_gate, v), z, n);
            keep(gate(i, z_gate + 1, v), candidate, n);
        }
        put(i, v, h + written * (candidate - h), h, n);
    }

    Cell cell_;
    const Shape& shape_;
    const Forward<T>& layer_;
    PackedWeights<T> packed_;
    const RowGroup& group_;
    ForwardState<T> state_;
    Projection<T> projection_;
    Part part_;
    int H_;
    int G_;
    int V_;
    size_t width_;  // of a row of W x
    bool projects_;  // else the gates hold W x
    bool keeps_;    // for a way back
    bool streams_;  // what is kept is more than the caches hold until then
    int64_t now_ = 0;
};

}  // namespace UNROLLED_ISA
