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
    T *h, *next, *c, *reset;  // before and after the step; GRU: c holds z, reset r ⊙ h
    T* projected;             // (steps at once, rows, G · V)  W x, in vectors
    int64_t steps_at_once;
    const T** sources;  // (steps at once, rows)  where their x lie
    int64_t* begins;    // (steps at once,)  how many of them the steps before have
};

// The weights of a direction as the products read them; inputs: null where the gates hold W x.
template <class T>
struct Packed {
    const T* states;  // U: column v of gate g at (g · V + v) · H, in vectors
    const T* inputs;  // W: column v of gate g at (g · V + v) · E
    const T* biases;  // (G + 1, V)  of each gate, and the one inside r ⊙ (U_n h + b)
};

template <class T>
class ForwardRun {
   public:
    ForwardRun(Cell cell, const Shape& shape, const Forward<T>& at, Packed<T> packed,
               const Rows& rows, Running<T> state, Part part)
        : cell_(cell), shape_(shape), at_(at), packed_(packed), rows_(rows), state_(state),
          part_(part), H_(shape.H), G_(cell.gates()), V_(vectors(shape.H, L)),
          apart_(cell.kind == GRU && cell.first == RESET_AFTER ? 2 : -1),
          width_(size_t(G_) * V_ * L), keeps_(at.before != nullptr),
          streams_(keeps_ && rows.tokens * width_ * sizeof(T) > shape.cache / 4 * 5) {}

    UNROLLED_FLAT void operator()() {
        begin();
        int64_t steps = rows_.count() ? shape_.lengths[rows_.rows[0]] : 0;
        int running = rows_.count();
        for (int64_t step = 0; step < steps; ++step) {
            while (shape_.lengths[rows_.rows[running - 1]] <= step) --running;
            now_ = step;
            if (packed_.inputs && step % state_.steps_at_once == 0) project(running, steps);
            if (cell_.kind == RNN) rnn(running);
            if (cell_.kind == LSTM) lstm(running);
            if (cell_.kind == GRU) gru(running);
            finish(running);
            part_.meeting->wait();
            std::swap(state_.h, state_.next);
        }
        if (streams_) end_stream();
    }

   private:
    static constexpr int L = Lanes<T>::count;

    // The lanes of vector v that are real units, and where they begin.
    int lanes(int v) const { return std::min(L, H_ - v * L); }

    int64_t time(int row) const { return at_.reverse ? shape_.lengths[row] - 1 - now_ : now_; }

    int64_t token(int row) const { return shape_.offsets[row] + time(row); }

    const T* source(int row) const { return at_.input + row * at_.x_row + time(row) * at_.x_step; }

    T* output(int row) const { return at_.y + row * at_.y_row + time(row) * at_.y_step; }

    // W x + b of some steps from this one on: few enough to stay in the cache until they are used, and
    // many enough for each weight to serve many rows.
    void project(int running, int64_t steps) {
        int64_t from = now_, count = 0, end = std::min(steps, now_ + state_.steps_at_once);
        for (; now_ < end; ++now_) {
            while (shape_.lengths[rows_.rows[running - 1]] <= now_) --running;
            state_.begins[now_ - from] = count;
            for (int i = 0; i < running; ++i)
                state_.sources[count++] = source(rows_.rows[i]);
        }
        now_ = from;
        for (int g = 0; g < G_; ++g)
            part_.sweep(0, most_columns, [&](int v, int width, int) {
                T* out = state_.projected + (size_t(g) * V_ + v) * L;
                Start<T> start{};
                for (int j = 0; j < width; ++j) start.at[j] = bias(g, v + j);
                for (int64_t i = 0; i < count;) {
                    int R = next_tile(count - i, width);
                    Left<T> left{{}, R};
                    for (int r = 0; r < R; ++r) left.at[r] = state_.sources[i + r];
                    columns_of(packed_.inputs, int(at_.E), left, {v, width, g, 1, 0, 0}, start,
                               out + i * width_, width_);
                    i += R;
                }
            });
    }

    void begin() {
        for (int i = 0; i < rows_.count(); ++i) {
            int row = rows_.rows[i];
            part_.copy(row_of(at_.first_h, row, H_), row_of(state_.h, i, H_), H_);
            if (cell_.kind == LSTM)
                part_.copy(row_of(at_.first_c, row, H_), row_of(state_.c, i, H_), H_);
        }
        part_.meeting->wait();
    }

    // A row that has made its last step leaves its state behind, and zeros in the padding.
    void finish(int running) {
        for (int i = running - 1; i >= 0; --i) {
            int row = rows_.rows[i];
            if (shape_.lengths[row] != now_ + 1) return;
            part_.copy(row_of(state_.next, i, H_), row_of(at_.last_h, row, H_), H_);
            if (cell_.kind == LSTM)
                part_.copy(row_of(state_.c, i, H_), row_of(at_.last_c, row, H_), H_);
            for (int64_t t = shape_.lengths[row]; t < shape_.steps; ++t)
                part_.copy<T>(nullptr, at_.y + row * at_.y_row + t * at_.y_step, H_);
        }
    }

    // For each running row i and vector v of this part: each(i, v, sums, stride), where sums holds
    // W x + b and the products of `state` for `gates` gates from `gate` on, `stride` apart.
    template <class Each>
    void products(const T* state, int running, int gate, int gates, Each each) {
        alignas(64) T sums[most_rows * most_columns * L];
        int together = packed_.states ? most_columns / gates : 1;
        part_.sweep(now_, together, [&](int v, int width, int next) {
            int C = gates * width, tile = 0;
            for (int i = 0, R; i < running; i += R, ++tile) {
                R = packed_.states ? next_tile(running - i, C) : std::min(dot_rows, running - i);
                Left<T> left{{}, R};
                for (int r = 0; r < R; ++r) left.at[r] = state + size_t(i + r) * H_;
                Block block{v, width, gate, gates, next - v, tile};
                multiply(left, block, start_of(i, R, block, sums), sums);
                for (int r = 0; r < R; ++r)
                    for (int j = 0; j < width; ++j)
                        each(i + r, v + j, sums + (r * C + j) * L, width * L);
            }
        });
    }

    // The vectors v … v + width − 1 of some gates; ahead: how far the next ones are.
    struct Block {
        int v, width, gate, gates, ahead, tile;
    };

    void multiply(const Left<T>& left, const Block& block, const Start<T>& start, T* sums) const {
        if (packed_.states)
            return columns_of(packed_.states, H_, left, block, start, sums,
                              block.gates * block.width * L);
        for (int lane = 0; lane < lanes(block.v); ++lane) {
            const T* weights[most_columns];
            for (int g = 0; g < block.gates; ++g)
                weights[g] = at_.weights + (size_t(block.gate + g) * H_ + block.v * L + lane) * H_;
            dots(left.at, left.count, weights, block.gates, H_, sums, lane);
        }
    }

    void columns_of(const T* packed, int K, const Left<T>& left, const Block& block,
                    const Start<T>& start, T* sums, size_t stride) const {
        Columns<T> columns{{}, block.gates * block.width, nullptr};
        for (int g = 0; g < block.gates; ++g)
            for (int j = 0; j < block.width; ++j)
                columns.at[g * block.width + j] =
                    packed + (size_t(block.gate + g) * V_ + block.v + j) * K * L;
        columns.ahead = columns.at[block.tile % columns.count] + ptrdiff_t(block.ahead) * K * L;
        product(left, columns, K, start, sums, stride);
    }

    // What the sums of a tile begin with: W x + b, where it lies, or brought together in `sums`.
    Start<T> start_of(int i, int R, const Block& block, T* sums) const {
        Start<T> start;
        int C = block.gates * block.width, c = 0;
        bool in_place = packed_.inputs && packed_.states;
        for (int g = block.gate; g < block.gate + block.gates; ++g)
            for (int v = block.v; v < block.v + block.width; ++v, ++c) {
                bool inside = g == apart_;
                start.at[c] = inside ? bias(G_, v) : in_place ? projected(i, g, v) : sums + c * L;
                start.step[c] = inside ? 0 : in_place ? width_ : C * L;
                for (int r = 0; !in_place && r < R; ++r)
                    store(sums + (r * C + c) * L, inside ? load(bias(G_, v)) : input(i + r, g, v));
            }
        return start;
    }

    const T* bias(int g, int v) const { return packed_.biases + (size_t(g) * V_ + v) * L; }

    const T* projected(int i, int g, int v) const {
        int64_t row = state_.begins[now_ % state_.steps_at_once] + i;
        return state_.projected + row * width_ + (size_t(g) * V_ + v) * L;
    }

    // W x + b.
    Vec<T> input(int i, int g, int v) const {
        if (packed_.inputs) return load(projected(i, g, v));
        return load(gate(i, g, v), lanes(v)) + load(bias(g, v));
    }

    // Vector v of a gate of row i.
    T* gate(int i, int g, int v) const {
        return at_.gates + (token(rows_.rows[i]) * G_ + g) * H_ + v * L;
    }

    // For the way back.
    void keep(T* to, Vec<T> value, int n) const {
        if (streams_) stream(to, value, n);
        else store(to, value, n);
    }

    // h after the step, wherever it is wanted; before: what it was.
    void put(int i, int v, Vec<T> h, Vec<T> before, int n) {
        int row = rows_.rows[i];
        store(state_.next + size_t(i) * H_ + v * L, h, n);
        store(output(row) + v * L, h, n);
        if (keeps_) keep(at_.before + token(row) * H_ + v * L, before, n);
    }

    // h' = φ(a)
    void rnn(int running) {
        products(state_.h, running, 0, 1, [&](int i, int v, const T* sums, int) {
            int n = lanes(v);
            Vec<T> h = activate<T>(cell_.first, load(sums));
            if (keeps_) keep(gate(i, 0, v), h, n);
            put(i, v, h, load(state_.h + size_t(i) * H_ + v * L, n), n);
        });
    }

    // c' = f ⊙ c + i ⊙ g,  h' = o ⊙ tanh(c')
    void lstm(int running) {
        bool full = cell_.second == PEEPHOLE_FULL, peeks = cell_.second != NO_PEEPHOLE;
        const T* out = at_.peephole + (full ? 2 * H_ : 0);
        auto each = [&](int r, int v, const T* sums, int stride) {
            int n = lanes(v);
            Vec<T> c = load(state_.c + size_t(r) * H_ + v * L, n);
            Vec<T> i = load(sums);
            Vec<T> f = load(sums + stride);
            Vec<T> g = tanh<T>(load(sums + 2 * stride));
            Vec<T> o = load(sums + 3 * stride);
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
            store(state_.c + size_t(r) * H_ + v * L, c, n);
            if (keeps_) {
                keep(gate(r, 0, v), i, n);
                keep(gate(r, 1, v), f, n);
                keep(gate(r, 2, v), g, n);
                keep(gate(r, 3, v), o, n);
                keep(at_.cells + token(rows_.rows[r]) * H_ + v * L, c, n);
            }
            put(r, v, h, load(state_.h + size_t(r) * H_ + v * L, n), n);
        };
        products(state_.h, running, 0, 4, each);
    }

    void gru(int running) {
        if (cell_.first == RESET_AFTER) gru_after(running);
        if (cell_.first == RESET_BEFORE) gru_before(running);
        if (cell_.first == RESET_NONE) gru_none(running);
    }

    // n = tanh(W_n x + r ⊙ (U_n h + b))
    void gru_after(int running) {
        auto each = [&](int i, int v, const T* sums, int stride) {
            Vec<T> r = sigmoid<T>(load(sums));
            Vec<T> z = sigmoid<T>(load(sums + stride));
            Vec<T> inner = load(sums + 2 * stride);
            gru_keep(i, v, r, inner);
            gru_put(i, v, 1, z, tanh<T>(input(i, 2, v) + r * inner));
        };
        products(state_.h, running, 0, 3, each);
    }

    // n = tanh(W_n x + U_n (r ⊙ h))
    void gru_before(int running) {
        auto reset = [&](int i, int v, const T* sums, int stride) {
            int n = lanes(v);
            size_t at = size_t(i) * H_ + v * L;
            Vec<T> r = sigmoid<T>(load(sums)), inner = r * load(state_.h + at, n);
            store(state_.reset + at, inner, n);
            store(state_.c + at, sigmoid<T>(load(sums + stride)), n);
            gru_keep(i, v, r, inner);
        };
        products(state_.h, running, 0, 2, reset);
        part_.meeting->wait();
        products(state_.reset, running, 2, 1, [&](int i, int v, const T* sums, int) {
            Vec<T> z = load(state_.c + size_t(i) * H_ + v * L, lanes(v));
            gru_put(i, v, 1, z, tanh<T>(load(sums)));
        });
    }

    // n = tanh(W_n x + U_n h)
    void gru_none(int running) {
        auto each = [&](int i, int v, const T* sums, int stride) {
            Vec<T> z = sigmoid<T>(load(sums));
            gru_put(i, v, 0, z, tanh<T>(load(sums + stride)));
        };
        products(state_.h, running, 0, 2, each);
    }

    void gru_keep(int i, int v, Vec<T> r, Vec<T> inner) {
        if (!keeps_) return;
        keep(gate(i, 0, v), r, lanes(v));
        keep(at_.inner + token(rows_.rows[i]) * H_ + v * L, inner, lanes(v));
    }

    // h' = h + w ⊙ (n − h), where w is 1 − z ("keep") or z ("write"); at: which gate z is.
    void gru_put(int i, int v, int at, Vec<T> z, Vec<T> candidate) {
        int n = lanes(v);
        Vec<T> h = load(state_.h + size_t(i) * H_ + v * L, n);
        Vec<T> written = cell_.second == KEEP ? T(1) - z : z;
        if (keeps_) {
            keep(gate(i, at, v), z, n);
            keep(gate(i, at + 1, v), candidate, n);
        }
        put(i, v, h + written * (candidate - h), h, n);
    }

    Cell cell_;
    const Shape& shape_;
    const Forward<T>& at_;
    Packed<T> packed_;
    const Rows& rows_;
    Running<T> state_;
    Part part_;
    int H_, G_, V_;
    int apart_;     // the gate whose two parts are not added up: n of a GRU that resets after
    size_t width_;  // of a row of W x
    bool keeps_;    // for a way back
    bool streams_;  // what is kept is more than the caches hold until then
    int64_t now_ = 0;
};

}  // namespace UNROLLED_ISA
