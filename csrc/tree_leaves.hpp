// The words of a Tree-LSTM: c = σ(i) ⊙ tanh(g), h = σ(o) ⊙ tanh(c) of W x + b, and the way back.
#pragma once

#include <vector>

#include "tree.hpp"
#include "tree_product.hpp"

namespace UNROLLED_ISA {

using unrolled::TreeCall;

constexpr int most_rows = 64;  // at once

// Some words at a time; of other nodes than an LSTM there is nothing to do, and nothing is acquired.
template <class T>
class LstmLeaves {
   public:
    static constexpr int L = Lanes<T>::count;

    LstmLeaves(const TreeCall<T>& call, int rows)
        : call_(call), rows_(rows), H_(int(call.H)), E_(int(call.E)), V_(vectors(3 * H_, L)),
          packed_(call.x ? size_t(V_) * L * E_ : 0) {}

    int columns() const { return V_; }
    int64_t blocks() const { return (call_.layout.U + rows_ - 1) / rows_; }

    void pack(int v) const { pack_transposed(call_.x_weights, 3 * H_, E_, v, packed_.data()); }

    // sums: room for so many rows of 3H, and a vector more.
    UNROLLED_FLAT void forward(int64_t block, T* sums) const {
        int64_t first = block * rows_;
        int count = int(std::min<int64_t>(rows_, call_.layout.U - first));
        size_t stride = size_t(V_) * L;
        const T* rows[most_rows];
        for (int i = 0; i < count; ++i) {
            rows[i] = call_.x + (first + i) * E_;
            std::copy_n(call_.bias, H_, sums + i * stride);
            std::copy_n(call_.bias + 3 * H_, 2 * H_, sums + i * stride + H_);
            std::fill(sums + i * stride + 3 * H_, sums + (i + 1) * stride, T(0));
        }
        add_product(rows, count, Panel<T>{packed_.data(), E_}, 0, E_, 0, V_, sums, stride);
        for (int i = 0; i < count; ++i) finish(first + i, sums + i * stride);
    }

   private:
    void finish(int64_t word, const T* sums) const {
        T* state = call_.words + word * 2 * H_;
        for (int u = 0; u < H_; u += L) {
            int n = std::min(L, H_ - u);
            Vec<T> i = vsigmoid<T>(load(sums + u)), g = vtanh<T>(load(sums + H_ + u));
            Vec<T> o = vsigmoid<T>(load(sums + 2 * H_ + u));
            Vec<T> c = i * g, t = vtanh<T>(c);
            store(state + u, o * t, n);
            store(state + H_ + u, c, n);
            if (!call_.words_kept) continue;
            Vec<T> all[4] = {i, g, o, t};
            for (int part = 0; part < 4; ++part)
                store(call_.words_kept + word * 4 * H_ + part * H_ + u, all[part], n);
        }
    }

    const TreeCall<T>& call_;
    int rows_;
    int H_;
    int E_;
    int V_;
    Buffer<T> packed_;  // (V, E) vectors
};

// From the gradients of the words' states to those of x, W and b.
template <class T>
class LstmLeavesBack {
   public:
    static constexpr int L = Lanes<T>::count;

    LstmLeavesBack(const TreeCall<T>& call, int rows)
        : call_(call), rows_(rows), H_(int(call.H)), E_(int(call.E)), C_(vectors(E_, L)),
          stride_(size_t(vectors(3 * H_, L)) * L), packed_(call.x ? size_t(3) * H_ * C_ * L : 0),
          dsums_(call.x ? call.layout.U * stride_ + L : 0) {
        for (int64_t word = 0; call.x && word < call.layout.U; ++word) {
            left_.push_back(dsums(word));
            right_.push_back(call.x + word * E_);
        }
    }

    int columns() const { return C_; }
    int64_t blocks() const { return (call_.layout.U + rows_ - 1) / rows_; }

    // Numbers that `backward` and `sum` need room for.
    size_t workspace() const {
        return std::max(size_t(rows_) * C_ * L, outer_workspace<T>(3 * H_, E_));
    }

    void pack(int v) const { pack_straight(call_.x_weights, 3 * H_, E_, v, packed_.data()); }

    UNROLLED_FLAT void backward(int64_t block, T* products) const {
        int64_t first = block * rows_;
        int count = int(std::min<int64_t>(rows_, call_.layout.U - first));
        const T* rows[most_rows];
        for (int i = 0; i < count; ++i) {
            back_through(first + i);
            rows[i] = dsums(first + i);
        }
        size_t stride = size_t(C_) * L;
        std::fill(products, products + count * stride, T(0));
        add_product(rows, count, Panel<T>{packed_.data(), 3 * H_}, 0, 3 * H_, 0, C_, products, stride);
        for (int i = 0; i < count; ++i) std::copy_n(products + i * stride, E_, call_.dx + (first + i) * E_);
    }

    // The gradients of some rows of W and b: those of b are added to what inner nodes have left there.
    void sum(int share, int shares, T* space) const {
        int first = int(int64_t(3) * H_ * share / shares), last = int(int64_t(3) * H_ * (share + 1) / shares);
        RowPairs<T> pairs{left_.data(), right_.data(), int64_t(left_.size())};
        if (call_.dx_weights) add_outer(pairs, first, last, E_, call_.dx_weights, size_t(E_), space);
    }

    // Gate i is the first of all, g and o are the last two.
    void sum_bias() const {
        for (int64_t word = 0; call_.dbias && word < call_.layout.U; ++word)
            for (int unit = 0; unit < 3 * H_; ++unit)
                call_.dbias[unit < H_ ? unit : unit + 2 * H_] += dsums(word)[unit];
    }

   private:
    T* dsums(int64_t word) const { return dsums_.data() + word * stride_; }

    void back_through(int64_t word) const {
        const T* kept = call_.words_kept + word * 4 * H_;
        const T* gradient = call_.dwords + word * 2 * H_;
        T* to = dsums(word);
        const T one = 1;
        for (int u = 0; u < H_; u += L) {
            int n = std::min(L, H_ - u);
            Vec<T> i = load(kept + u, n), g = load(kept + H_ + u, n);
            Vec<T> o = load(kept + 2 * H_ + u, n), t = load(kept + 3 * H_ + u, n);
            Vec<T> dh = load(gradient + u, n), dc = load(gradient + H_ + u, n) + dh * o * (one - t * t);
            store(to + u, dc * g * i * (one - i), n);
            store(to + H_ + u, dc * i * (one - g * g), n);
            store(to + 2 * H_ + u, dh * t * o * (one - o), n);
        }
    }

    const TreeCall<T>& call_;
    int rows_;
    int H_;
    int E_;
    int C_;  // vectors of x
    size_t stride_;
    Buffer<T> packed_;  // (C, 3H) vectors
    Buffer<T> dsums_;   // (U, stride)
    std::vector<const T*> left_, right_;
};

}  // namespace UNROLLED_ISA
