// Trees built by the lowest reconstruction error: the neighbours are merged whose parent gives them back best,
// again and again. A thread takes some sentences of like length at a time, and all of them take each
// step together, so that their new candidates are one product. Every sum has one order: a sentence's tree does not
// depend on the others.
#pragma once

#include <cmath>
#include <limits>
#include <numeric>
#include <vector>

#include "threads.hpp"
#include "tree_nodes.hpp"
#include "tree_product.hpp"

namespace UNROLLED_ISA {

using unrolled::GreedyCall;

constexpr int sentences_at_once = 8;
constexpr int candidates_at_once = 32;

// A node is known by the place of its first word among those of all sentences.
template <class T>
class Greedy {
   public:
    Greedy(const GreedyCall<T>& call, int threads)
        : call_(call), H_(int(call.H)), V_(vectors(H_, L)), D_(vectors(2 * H_, L)), total_(call.starts[call.B]),
          encoder_(size_t(V_) * L * 2 * H_), decoder_(size_t(D_) * L * H_), nodes_(total_ * H_), parents_(total_ * H_),
          spaces_(threads * space_size()), sizes_(total_, 1), after_(total_), before_(total_), errors_(total_),
          made_(total_), span_(2 * total_), end_(2 * total_), pairs_(2 * total_), order_(call.B) {
        std::iota(order_.begin(), order_.end(), 0);
        std::stable_sort(order_.begin(), order_.end(), [&](int64_t a, int64_t b) { return words(a) > words(b); });
    }

    void run(int threads) {
        int64_t blocks = (call_.B + sentences_at_once - 1) / sentences_at_once;
#pragma omp parallel num_threads(threads)
        {
#pragma omp for schedule(static)
            for (int v = 0; v < V_; ++v) pack_transposed(call_.weights, H_, 2 * H_, v, encoder_.data());
#pragma omp for schedule(static)
            for (int v = 0; v < D_; ++v) pack_transposed(call_.decoder, 2 * H_, H_, v, decoder_.data());
#pragma omp for schedule(dynamic, 1)
            for (int64_t block = 0; block < blocks; ++block) run_block(block, spaces_.slice(omp_get_thread_num(), space_size()));
        }
    }

   private:
    static constexpr int L = Lanes<T>::count;

    // Candidates that wait to be tried.
    struct Waiting {
        int64_t places[candidates_at_once];
        int count = 0;
    };

    int64_t words(int64_t row) const { return call_.starts[row + 1] - call_.starts[row]; }

    // Pairs side by side, their parents' sums, and what is made of those again; a vector more for each.
    size_t space_size() const { return candidates_at_once * (size_t(2) * H_ + size_t(V_ + D_) * L) + 3 * L; }

    UNROLLED_FLAT void run_block(int64_t block, T* space) {
        const int64_t* rows = order_.data() + block * sentences_at_once;
        int count = int(std::min<int64_t>(sentences_at_once, call_.B - block * sentences_at_once));
        Waiting waiting;
        for (int i = 0; i < count; ++i) begin(rows[i], waiting, space);
        try_all(waiting, space);
        for (int64_t step = 0; step + 1 < words(rows[0]); ++step) {
            for (int i = 0; i < count; ++i)
                if (step + 1 < words(rows[i])) merge(rows[i], step, waiting);
            try_all(waiting, space);
        }
        for (int i = 0; i < count; ++i) put_in_order(rows[i]);
    }

    void begin(int64_t row, Waiting& waiting, T* space) {
        int64_t first = call_.starts[row], last = call_.starts[row + 1];
        for (int64_t place = first; place < last; ++place) {
            std::copy_n(call_.vectors + call_.ids[place] * H_, H_, nodes_.data() + place * H_);
            after_[place] = place + 1;
            before_[place] = place - 1;
            made_[place] = place - first;
            errors_[place] = std::numeric_limits<T>::infinity();
        }
        for (int64_t place = first; place + 1 < last; ++place) {
            if (waiting.count == candidates_at_once) try_all(waiting, space);
            waiting.places[waiting.count++] = place;
        }
    }

    // Of equal errors the leftmost; if none is a number, the first two.
    void merge(int64_t row, int64_t step, Waiting& waiting) {
        int64_t first = call_.starts[row], last = call_.starts[row + 1], left = first;
        for (int64_t place = first; place < last; place = after_[place])
            if (errors_[place] < errors_[left]) left = place;
        int64_t right = after_[left], next = after_[right], node = words(row) + step;
        int64_t* pair = &pairs_[2 * (first + step)];
        pair[0] = made_[left];
        pair[1] = made_[right];
        made_[left] = node;
        call_.error[out(row) + node] = double(errors_[left]);  // by its number first; put_in_order mends it
        std::copy_n(parents_.data() + left * H_, H_, nodes_.data() + left * H_);
        sizes_[left] += sizes_[right];
        after_[left] = next;
        errors_[left] = std::numeric_limits<T>::infinity();
        if (next < last) {
            before_[next] = left;
            waiting.places[waiting.count++] = left;
        }
        if (left > first) waiting.places[waiting.count++] = before_[left];
    }

    // The parents of all that wait, and their errors.
    void try_all(Waiting& waiting, T* space) {
        int count = waiting.count;
        if (!count) return;
        size_t stride = size_t(V_) * L, wide = size_t(D_) * L;
        T* both = space;
        T* sums = both + candidates_at_once * 2 * H_ + L;
        T* again = sums + candidates_at_once * stride + L;
        const T* rows[candidates_at_once];
        for (int i = 0; i < count; ++i) {
            int64_t place = waiting.places[i];
            rows[i] = both + size_t(i) * 2 * H_;
            std::copy_n(nodes_.data() + place * H_, H_, both + size_t(i) * 2 * H_);
            std::copy_n(nodes_.data() + after_[place] * H_, H_, both + size_t(i) * 2 * H_ + H_);
            put_bias(call_.bias, H_, stride, sums + i * stride);
            put_bias(call_.decoder_bias, 2 * H_, wide, again + i * wide);
        }
        add_product(rows, count, Panel<T>{encoder_.data(), 2 * H_}, 0, 2 * H_, 0, V_, sums, stride);
        for (int i = 0; i < count; ++i) {
            T* parent = parents_.data() + waiting.places[i] * H_;
            NodeRow<T> row{sums + i * stride, {}, parent, nullptr, nullptr};
            if (call_.node == int64_t(unrolled::Node::unit_tanh)) UnitTanhNode::forward(row, H_);
            else TanhNode::forward(row, H_);
            rows[i] = parent;
        }
        add_product(rows, count, Panel<T>{decoder_.data(), H_}, 0, H_, 0, D_, again, wide);
        for (int i = 0; i < count; ++i) judge(waiting.places[i], both + size_t(i) * 2 * H_, again + i * wide);
        waiting.count = 0;
    }

    static void put_bias(const T* bias, int count, size_t stride, T* sums) {
        std::copy_n(bias, count, sums);
        std::fill(sums + count, sums + stride, T(0));
    }

    void judge(int64_t place, const T* pair, const T* again) {
        T apart[2], n[2] = {T(1), T(1)};
        for (int side : {0, 1}) {
            Vec<T> total{};
            for (int u = 0; u < H_; u += L) {
                int lanes = std::min(L, H_ - u);
                Vec<T> gap = load(again + side * H_ + u, lanes) - load(pair + side * H_ + u, lanes);
                total += gap * gap;
            }
            apart[side] = sum<T>(total);
        }
        if (call_.weighted) {
            n[0] = T(sizes_[place]);
            n[1] = T(sizes_[after_[place]]);
        }
        errors_[place] = (n[0] * apart[0] + n[1] * apart[1]) / (n[0] + n[1]);
    }

    // Where a sentence's nodes begin among all.
    int64_t out(int64_t row) const { return 2 * call_.starts[row] - row; }

    // Nodes are numbered by words and then by step; here they get their places in post-order.
    void put_in_order(int64_t row) {
        int64_t n = words(row), all = 2 * n - 1, first = call_.starts[row], at = out(row);
        int64_t *span = &span_[2 * first], *end = &end_[2 * first], *pair = &pairs_[2 * first];
        std::fill_n(span, n, 1);
        for (int64_t k = 0; k + 1 < n; ++k) span[n + k] = 1 + span[pair[2 * k]] + span[pair[2 * k + 1]];
        end[all - 1] = all - 1;
        for (int64_t k = n - 2; k >= 0; --k) {
            end[pair[2 * k + 1]] = end[n + k] - 1;
            end[pair[2 * k]] = end[n + k] - 1 - span[pair[2 * k + 1]];
        }
        for (int64_t k = 0; k + 1 < n; ++k) errors_[first + k] = T(call_.error[at + n + k]);
        call_.parent[at + all - 1] = -1;
        for (int64_t k = 0; k < n; ++k) put(at + end[k], call_.ids[first + k], -1, 0, 0, 1);
        for (int64_t k = 0; k + 1 < n; ++k) {
            int64_t left = at + end[pair[2 * k]], right = at + end[pair[2 * k + 1]];
            call_.parent[left] = call_.parent[right] = end[n + k];
            int64_t height = 1 + std::max(call_.height[left], call_.height[right]);
            put(at + end[n + k], -1, k, double(errors_[first + k]), height, call_.leaves[left] + call_.leaves[right]);
        }
    }

    void put(int64_t node, int64_t word, int64_t step, double error, int64_t height, int64_t leaves) const {
        call_.word[node] = word;
        call_.step[node] = step;
        call_.error[node] = error;
        call_.height[node] = height;
        call_.leaves[node] = leaves;
    }

    const GreedyCall<T>& call_;
    int H_;
    int V_;  // vectors of a node
    int D_;  // and of two
    int64_t total_;
    Buffer<T> encoder_;  // (V, 2H) vectors
    Buffer<T> decoder_;  // (D, H) vectors
    Buffer<T> nodes_;    // (total, H)
    Buffer<T> parents_;  // of a node and the next
    Buffer<T> spaces_;
    std::vector<int64_t> sizes_, after_, before_;
    std::vector<T> errors_;
    std::vector<int64_t> made_;  // the number of the node at a place
    std::vector<int64_t> span_, end_, pairs_, order_;
};

template <class T>
void tree_greedy(const GreedyCall<T>& call, int threads) {
    Greedy<T>(call, threads).run(threads);
}

}  // namespace UNROLLED_ISA
