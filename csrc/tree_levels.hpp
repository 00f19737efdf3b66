// Networks over binary trees, forth and back. Trees are split over threads so that none waits for another;
// a thread takes all its nodes of a level at once.
//
// A leaf's part of its parent's sums is that of its word and side: it is made once for all leaves that share
// both, and so is the way back. Every sum has one order, whatever the batch and the number of threads.
#pragma once

#include <cmath>

#include "threads.hpp"
#include "tree_leaves.hpp"
#include "tree_nodes.hpp"
#include "tree_plan.hpp"
#include "tree_product.hpp"

namespace UNROLLED_ISA {

using unrolled::TreeCall;
using unrolled::TreePlan;

constexpr int rows_at_once = 32;

// What forth and back share.
template <class T, class Node>
class TreeRun {
   public:
    static constexpr int L = Lanes<T>::count;

    TreeRun(const TreeCall<T>& call, const TreePlan& plan)
        : call_(call), plan_(plan), H_(int(call.H)), G_(Node::gates * H_), V_(vectors(G_, L)),
          stride_(size_t(V_) * L), S_(Node::has_c ? 2 * H_ : H_) {}

   protected:
    const T* word_h(int64_t word) const { return call_.words + word * S_; }
    const T* word_c(int64_t word) const { return call_.words + word * S_ + H_; }

    // Each(nodes, count) for some nodes at a time.
    template <class Each>
    static void each_block(TreePlan::Range range, Each each) {
        for (const int64_t* node = range.first; node < range.last; node += rows_at_once)
            each(node, int(std::min<int64_t>(rows_at_once, range.last - node)));
    }

    // Each(side, first, words, count) of block number `block` of the words of both sides.
    template <class Each>
    void word_block(int64_t block, Each each) const {
        int side = block >= blocks(0);
        int64_t first = (block - (side ? blocks(0) : 0)) * rows_at_once;
        const std::vector<int64_t>& words = plan_.words(side);
        int64_t count = std::min<int64_t>(rows_at_once, int64_t(words.size()) - first);
        each(side, first, words.data() + first, int(count));
    }

    // The row of a word on one side, by its slot, among those of all words on both.
    T* side_row(const Buffer<T>& rows, int side, int64_t slot) const {
        return rows.data() + (side * int64_t(plan_.words(0).size()) + slot) * stride_;
    }

    int64_t side_rows() const { return int64_t(plan_.words(0).size() + plan_.words(1).size()); }

    int64_t blocks(int side) const { return (int64_t(plan_.words(side).size()) + rows_at_once - 1) / rows_at_once; }

    const TreeCall<T>& call_;
    const TreePlan& plan_;
    int H_;
    int G_;          // sums of a node
    int V_;          // and their vectors
    size_t stride_;  // from one node's sums to the next's
    int S_;
};

template <class T, class Node>
class TreeForward : TreeRun<T, Node> {
    using Base = TreeRun<T, Node>;
    using Base::call_, Base::plan_, Base::H_, Base::G_, Base::V_, Base::stride_, Base::L;

   public:
    TreeForward(const TreeCall<T>& call, const TreePlan& plan)
        : Base(call, plan), packed_(size_t(2) * H_ * stride_), projections_(this->side_rows() * stride_),
          bias_(stride_), sums_(plan.shares() * block_size()), leaves_(call, rows_at_once) {
        std::fill(bias_.data(), bias_.data() + stride_, T(0));
        std::copy(call.bias, call.bias + G_, bias_.data());
    }

    void run() {
        int64_t word_blocks = this->blocks(0) + this->blocks(1);
#pragma omp parallel num_threads(plan_.shares())
        {
#pragma omp for schedule(static)
            for (int v = 0; v < V_; ++v) pack_transposed(call_.weights, G_, 2 * H_, v, packed_.data());
            if (Node::has_c) make_words();
#pragma omp for schedule(static) nowait
            for (int64_t leaf = 0; leaf < call_.layout.L; ++leaf) put_leaf(leaf);
#pragma omp for schedule(static)
            for (int64_t block = 0; block < word_blocks; ++block) project(block);
#pragma omp for schedule(static, 1)
            for (int share = 0; share < plan_.shares(); ++share) run_share(share);
        }
    }

   private:
    // By all threads of the team.
    void make_words() {
#pragma omp for schedule(static)
        for (int v = 0; v < leaves_.columns(); ++v) leaves_.pack(v);
#pragma omp for schedule(static)
        for (int64_t block = 0; block < leaves_.blocks(); ++block)
            leaves_.forward(block, sums_.slice(omp_get_thread_num(), block_size()));
    }

    Panel<T> weights() const { return {packed_.data(), 2 * H_}; }

    // Of a share's sums; a vector more, since gates are read in whole ones.
    size_t block_size() const { return rows_at_once * stride_ + L; }

    void put_leaf(int64_t leaf) const {
        int64_t place = plan_.leaf_place(leaf), word = plan_.word(leaf);
        std::copy_n(this->word_h(word), H_, call_.h + place * H_);
        if (Node::has_c) std::copy_n(this->word_c(word), H_, call_.c + place * H_);
    }

    // What words bring to the sums of their parents.
    UNROLLED_FLAT void project(int64_t block) const {
        this->word_block(block, [&](int side, int64_t first, const int64_t* words, int count) {
            const T* rows[rows_at_once];
            for (int i = 0; i < count; ++i) rows[i] = this->word_h(words[i]);
            T* sums = this->side_row(projections_, side, first);
            std::fill(sums, sums + count * stride_, T(0));
            add_product(rows, count, weights(), side * H_, H_, 0, V_, sums, stride_);
        });
    }

    UNROLLED_FLAT void run_share(int share) {
        T* sums = sums_.slice(share, block_size());
        for (int64_t level = 0; level < plan_.levels(); ++level)
            Base::each_block(plan_.nodes(share, level),
                             [&](const int64_t* nodes, int count) { run_block(nodes, count, sums); });
    }

    void run_block(const int64_t* nodes, int count, T* sums) const {
        const T* rows[rows_at_once];
        for (int i = 0; i < count; ++i) begin(nodes[i], sums + i * stride_);
        for (int side : {0, 1}) {
            TreePlan::Part part = plan_.with_inner(nodes, count, side);
            for (int i = part.first; i < part.last; ++i) rows[i] = call_.h + (2 * nodes[i] + side) * H_;
            add_product(rows + part.first, part.last - part.first, weights(), side * H_, H_, 0, V_,
                        sums + part.first * stride_, stride_);
        }
        for (int i = 0; i < count; ++i) finish(nodes[i], sums + i * stride_);
    }

    const T* projection(int64_t node, int side) const {
        if (plan_.has_inner(node, side)) return nullptr;
        return this->side_row(projections_, side, plan_.slot_at(2 * node + side));
    }

    // The bias, and what children that are leaves bring.
    void begin(int64_t node, T* sums) const {
        const T *left = projection(node, 0), *right = projection(node, 1);
        for (int u = 0; u < V_ * L; u += L) {
            Vec<T> sum = load(bias_.data() + u);
            if (left) sum += load(left + u);
            if (right) sum += load(right + u);
            store(sums + u, sum);
        }
    }

    void finish(int64_t node, const T* sums) const {
        NodeRow<T> row{sums, {}, call_.h + plan_.place(node) * H_, nullptr, nullptr};
        if (Node::has_c) {
            row.own_c = call_.c + plan_.place(node) * H_;
            for (int side : {0, 1}) row.c[side] = call_.c + (2 * node + side) * H_;
        }
        if (call_.kept) row.kept = call_.kept + node * unrolled::kept_of(unrolled::Node(call_.node), H_);
        Node::forward(row, H_);
    }

    Buffer<T> packed_;       // (V, 2H) vectors
    Buffer<T> projections_;  // a word and side, stride
    Buffer<T> bias_;         // (stride,)
    Buffer<T> sums_;         // a share's block
    LstmLeaves<T> leaves_;
};

template <class T>
void tree_forward(const TreeCall<T>& call, int threads) {
    TreePlan plan(call.layout, threads);
    switch (unrolled::Node(call.node)) {
        case unrolled::Node::lstm: return TreeForward<T, LstmNode>(call, plan).run();
        case unrolled::Node::unit_tanh: return TreeForward<T, UnitTanhNode>(call, plan).run();
        default: return TreeForward<T, TanhNode>(call, plan).run();
    }
}

}  // namespace UNROLLED_ISA
