// The way back through the levels of trees, and the gradients of words and weights.
#pragma once

#include "tree_levels.hpp"

namespace UNROLLED_ISA {

template <class T, class Node>
class TreeBackward : TreeRun<T, Node> {
    using Base = TreeRun<T, Node>;
    using Base::call_, Base::plan_, Base::H_, Base::G_, Base::stride_, Base::S_, Base::L;

   public:
    TreeBackward(const TreeCall<T>& call, const TreePlan& plan)
        : Base(call, plan), C_(vectors(2 * H_, L)), packed_(size_t(G_) * C_ * L),
          dsums_(call.layout.M * stride_ + L), by_words_(this->side_rows() * stride_ + L),
          dh_(call.layout.M * H_), dc_(Node::has_c ? call.layout.N * H_ : 0),
          products_(plan.shares() * rows_at_once * size_t(C_) * L), leaves_(call, rows_at_once),
          leaf_space_(call.x ? plan.shares() * leaves_.workspace() : 0),
          outer_(call.dweights ? plan.shares() * outer_size() : 0) {
        if (call.dweights)
            for (int side : {0, 1}) find_pairs(side);
    }

    void run() {
        int64_t word_blocks = this->blocks(0) + this->blocks(1);
#pragma omp parallel num_threads(plan_.shares())
        {
#pragma omp for schedule(static)
            for (int v = 0; v < C_; ++v) pack_straight(call_.weights, G_, 2 * H_, v, packed_.data());
#pragma omp for schedule(static, 1)
            for (int share = 0; share < plan_.shares(); ++share) run_share(share);
#pragma omp for schedule(static)
            for (int64_t word = 0; word < call_.layout.U; ++word) sum_word(word);
            for (int side : {0, 1}) {  // a word may be on both
#pragma omp for schedule(static)
                for (int64_t block = 0; block < word_blocks; ++block) finish_words(block, side);
            }
            if (Node::has_c) leave_words();
#pragma omp for schedule(static, 1)
            for (int share = 0; share < plan_.shares(); ++share) sum_weights(share);
        }
        if (Node::has_c) leaves_.sum_bias();
    }

   private:
    // By all threads of the team: from the words' states to x.
    void leave_words() {
#pragma omp for schedule(static)
        for (int v = 0; v < leaves_.columns(); ++v) leaves_.pack(v);
#pragma omp for schedule(static)
        for (int64_t block = 0; block < leaves_.blocks(); ++block)
            leaves_.backward(block, leaf_space_.slice(omp_get_thread_num(), leaves_.workspace()));
    }

    Panel<T> weights() const { return {packed_.data(), G_}; }

    T* dsums(int64_t node) const { return dsums_.data() + node * stride_; }
    T* dh(int64_t node) const { return dh_.data() + node * H_; }
    T* dc(int64_t place) const { return Node::has_c ? dc_.data() + place * H_ : nullptr; }

    bool is_root(int64_t place) const { return place >= 2 * call_.layout.M; }

    UNROLLED_FLAT void run_share(int share) {
        T* products = products_.slice(share, rows_at_once * size_t(C_) * L);
        for (int64_t level = plan_.levels() - 1; level >= 0; --level)
            Base::each_block(plan_.nodes(share, level),
                             [&](const int64_t* nodes, int count) { run_block(nodes, count, products); });
    }

    void run_block(const int64_t* nodes, int count, T* products) const {
        const T* rows[rows_at_once];
        for (int i = 0; i < count; ++i) {
            back_through(nodes[i]);
            rows[i] = dsums(nodes[i]);
        }
        for (int side : {0, 1}) {
            TreePlan::Part part = plan_.with_inner(nodes, count, side);
            const T* product = multiply_back(rows + part.first, part.last - part.first, side, products);
            for (int i = part.first; i < part.last; ++i, product += side_stride(side))
                hand_down(2 * nodes[i] + side, product);
        }
    }

    // The vectors of one side's units among those of both: that in the middle may belong to both.
    int first_column(int side) const { return side ? H_ / L : 0; }
    int last_column(int side) const { return side ? C_ : vectors(H_, L); }
    size_t side_stride(int side) const { return size_t(last_column(side) - first_column(side)) * L; }

    // Gradients of sums times the weights of one side: where the first row of H begins.
    const T* multiply_back(const T* const* rows, int count, int side, T* products) const {
        size_t stride = side_stride(side);
        int first = first_column(side);
        std::fill(products, products + count * stride, T(0));
        add_product(rows, count, weights(), 0, G_, first, last_column(side), products, stride);
        return products + side * H_ - first * L;
    }

    void back_through(int64_t node) const {
        int64_t place = plan_.place(node);
        NodeRowBack<T> row{};
        row.h = call_.h + place * H_;
        row.dh = is_root(place) ? call_.dh + place * H_ : dh(node);
        row.dsums = dsums(node);
        if (call_.kept) row.kept = call_.kept + node * unrolled::kept_of(unrolled::Node(call_.node), H_);
        if (Node::has_c) {
            row.dc = is_root(place) ? nullptr : dc(place);
            for (int side : {0, 1}) {
                row.c[side] = call_.c + (2 * node + side) * H_;
                row.dc_below[side] = dc(2 * node + side);
            }
        }
        Node::backward(row, H_);
    }

    // An inner node's gradient: its own, and what its parent gives it.
    void hand_down(int64_t place, const T* product) const {
        T* to = dh(plan_.at(place));
        const T* own = call_.dh + place * H_;
        for (int u = 0; u < H_; u += L) {
            int n = std::min(L, H_ - u);
            store(to + u, load(own + u, n) + load(product + u, n), n);
        }
    }

    // All that the leaves of a word bring: to its state, and to its parents' sums on either side.
    void sum_word(int64_t word) const {
        T* own = call_.dwords + word * S_;
        std::fill_n(own, S_, T(0));
        for (int side : {0, 1})
            if (plan_.slot(side, word) != TreePlan::none) std::fill_n(by_word(side, word), stride_, T(0));
        TreePlan::Range leaves = plan_.leaves_of(word);
        for (const int64_t* leaf = leaves.first; leaf < leaves.last; ++leaf) {
            int64_t place = plan_.leaf_place(*leaf);
            add(call_.dh + place * H_, own, H_);
            if (is_root(place)) continue;
            if (Node::has_c) add(dc(place), own + H_, H_);
            add(dsums(place / 2), by_word(int(place % 2), word), G_);
        }
    }

    T* by_word(int side, int64_t word) const { return this->side_row(by_words_, side, plan_.slot(side, word)); }

    static void add(const T* from, T* to, int count) {
        for (int u = 0; u < count; u += L) {
            int n = std::min(L, count - u);
            store(to + u, load(to + u, n) + load(from + u, n), n);
        }
    }

    // The gradients of words on one side through their parents' sums.
    UNROLLED_FLAT void finish_words(int64_t block, int wanted) const {
        this->word_block(block, [&](int side, int64_t first, const int64_t* words, int count) {
            if (side != wanted) return;
            T* products = products_.slice(omp_get_thread_num(), rows_at_once * size_t(C_) * L);
            const T* rows[rows_at_once];
            for (int i = 0; i < count; ++i) rows[i] = this->side_row(by_words_, side, first + i);
            const T* product = multiply_back(rows, count, side, products);
            for (int i = 0; i < count; ++i, product += side_stride(side))
                add(product, call_.dwords + words[i] * S_, H_);
        });
    }

    // Rows whose outer products are the gradient of the weights of one side: of inner nodes, and of words.
    void find_pairs(int side) {
        for (int64_t node = 0; node < call_.layout.M; ++node)
            if (plan_.at(2 * node + side) >= 0) {
                left_[side].push_back(dsums(node));
                right_[side].push_back(call_.h + (2 * node + side) * H_);
            }
        for (size_t slot = 0; slot < plan_.words(side).size(); ++slot) {
            left_[side].push_back(this->side_row(by_words_, side, int64_t(slot)));
            right_[side].push_back(this->word_h(plan_.words(side)[slot]));
        }
    }

    size_t outer_size() const { return outer_workspace<T>(G_, H_); }

    // The units that a share sums, of G.
    void sum_weights(int share) const {
        int first = int(int64_t(G_) * share / plan_.shares()), last = int(int64_t(G_) * (share + 1) / plan_.shares());
        if (call_.dbias) {
            std::fill(call_.dbias + first, call_.dbias + last, T(0));
            for (int64_t node = 0; node < call_.layout.M; ++node)
                add(dsums(node) + first, call_.dbias + first, last - first);
        }
        if (Node::has_c) leaves_.sum(share, plan_.shares(), leaf_space_.slice(share, leaves_.workspace()));
        if (!call_.dweights) return;
        for (int side : {0, 1}) {
            RowPairs<T> pairs{left_[side].data(), right_[side].data(), int64_t(left_[side].size())};
            T* space = outer_.slice(share, outer_size());
            add_outer(pairs, first, last, H_, call_.dweights + side * H_, size_t(2) * H_, space);
        }
    }

    int C_;              // vectors of both children
    Buffer<T> packed_;   // (C, G) vectors
    Buffer<T> dsums_;    // (M, stride)
    Buffer<T> by_words_;  // a word and side, stride
    Buffer<T> dh_;       // (M, H)  of inner nodes that are no roots
    Buffer<T> dc_;       // (N, H)
    Buffer<T> products_;  // a share's block
    LstmLeavesBack<T> leaves_;
    Buffer<T> leaf_space_;
    Buffer<T> outer_;
    std::vector<const T*> left_[2], right_[2];
};

template <class T>
void tree_backward(const TreeCall<T>& call, int threads) {
    TreePlan plan(call.layout, threads);
    switch (unrolled::Node(call.node)) {
        case unrolled::Node::lstm: return TreeBackward<T, LstmNode>(call, plan).run();
        case unrolled::Node::unit_tanh: return TreeBackward<T, UnitTanhNode>(call, plan).run();
        default: return TreeBackward<T, TanhNode>(call, plan).run();
    }
}

}  // namespace UNROLLED_ISA
