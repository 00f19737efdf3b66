// Which thread runs which trees, and in which order it takes their nodes. Every index of a layout is read
// once, checked and kept here: what another thread writes there later changes nothing.
#pragma once

#include <algorithm>
#include <numeric>
#include <stdexcept>
#include <vector>

#include "tree.hpp"

namespace unrolled {

inline void require_layout(bool holds) {
    if (!holds) throw std::invalid_argument("the forest is not one that trees were laid out as");
}

// Which children of a node are inner nodes, none, left, both or right: in this order those that have one on a
// side lie together.
constexpr int kinds = 4;
constexpr int kind_of(bool left, bool right) { return right ? (left ? 2 : 3) : left; }

class TreePlan {
   public:
    TreePlan(const TreeLayout& layout, int shares) : shares_(shares), levels_(layout.level_count) {
        read_places(layout);
        read_levels(layout);
        split_trees(layout);
        sort_nodes(layout);
        sort_leaves(layout);
    }

    int shares() const { return shares_; }
    int64_t levels() const { return levels_; }

    // Of an inner node its number, of a leaf −1 − its number.
    int64_t at(int64_t place) const { return at_[place]; }
    int64_t place(int64_t inner) const { return inner_[inner]; }
    int64_t leaf_place(int64_t leaf) const { return leaf_[leaf]; }
    int64_t word(int64_t leaf) const { return word_[leaf]; }
    int64_t word_at(int64_t place) const { return word_[-1 - at_[place]]; }

    struct Range {
        const int64_t* first;
        const int64_t* last;
    };

    // The inner nodes of one share and level, by kind.
    Range nodes(int share, int64_t level) const {
        const int64_t* begin = &begins_[(share * levels_ + level) * kinds];
        return {order_.data() + begin[0], order_.data() + begin[kinds]};
    }

    bool has_inner(int64_t node, int side) const { return at_[2 * node + side] >= 0; }

    // Of some nodes in their order, the first that has an inner child on a side, and the end of those.
    struct Part {
        int first;
        int last;
    };
    Part with_inner(const int64_t* nodes, int count, int side) const {
        int first = 0, last = count;
        while (first < count && !has_inner(nodes[first], side)) ++first;
        while (last > first && !has_inner(nodes[last - 1], side)) --last;
        return {first, last};
    }

    // The leaves that have one word.
    Range leaves_of(int64_t word) const {
        return {leaves_.data() + word_begins_[word], leaves_.data() + word_begins_[word + 1]};
    }

    // The words of which a leaf is a left (0) or right (1) child, and which of them is that of a leaf there.
    const std::vector<int64_t>& words(int side) const { return side_words_[side]; }
    int64_t slot(int side, int64_t word) const { return slots_[side][word]; }
    int64_t slot_at(int64_t place) const { return slots_[place % 2][word_at(place)]; }

    static constexpr int64_t none = -1;  // the slot of a word that has none on a side

   private:
    void read_places(const TreeLayout& l) {
        require_layout(l.L + l.M == l.N && l.N == 2 * l.M + l.B && l.B >= 1);
        at_.assign(l.N, l.N);
        inner_.assign(l.inner, l.inner + l.M);
        leaf_.assign(l.leaves, l.leaves + l.L);
        word_.assign(l.word, l.word + l.L);
        tree_.assign(l.tree, l.tree + l.N);
        for (int64_t j = 0; j < l.M; ++j) put(inner_[j], j, l.N);
        for (int64_t k = 0; k < l.L; ++k) put(leaf_[k], -1 - k, l.N);
        for (int64_t word : word_) require_layout(word >= 0 && word < l.U);
        for (int64_t tree : tree_) require_layout(tree >= 0 && tree < l.B);
    }

    void put(int64_t place, int64_t node, int64_t N) {
        require_layout(place >= 0 && place < N && at_[place] == N);
        at_[place] = node;
    }

    // Children are of the same tree and of a lower level, so that a thread never needs another's.
    void read_levels(const TreeLayout& l) {
        std::vector<int64_t> ends(l.levels, l.levels + levels_ + 1);
        require_layout(ends[0] == 0 && ends[levels_] == l.M);
        level_.resize(l.M);
        for (int64_t level = 0; level < levels_; ++level) {
            require_layout(ends[level] <= ends[level + 1] && ends[level + 1] <= l.M);
            std::fill(level_.begin() + ends[level], level_.begin() + ends[level + 1], level);
        }
        for (int64_t j = 0; j < l.M; ++j)
            for (int64_t child : {2 * j, 2 * j + 1})
                require_layout(tree_[child] == tree_[inner_[j]] &&
                               (at_[child] < 0 || level_[at_[child]] < level_[j]));
    }

    // The largest tree to the share with the least to do, and so on.
    void split_trees(const TreeLayout& l) {
        std::vector<int64_t> sizes(l.B), order(l.B), load(shares_);
        for (int64_t j = 0; j < l.M; ++j)  // a product takes longer than what a node does with it
            sizes[tree_[inner_[j]]] += 1 + 4 * (has_inner(j, 0) + has_inner(j, 1));
        std::iota(order.begin(), order.end(), 0);
        std::stable_sort(order.begin(), order.end(), [&](int64_t a, int64_t b) { return sizes[a] > sizes[b]; });
        share_.resize(l.B);
        for (int64_t tree : order) {
            int64_t least = std::min_element(load.begin(), load.end()) - load.begin();
            share_[tree] = least;
            load[least] += sizes[tree];
        }
    }

    void sort_nodes(const TreeLayout& l) {
        std::vector<int64_t> keys(l.M);
        begins_.assign(shares_ * levels_ * kinds + 1, 0);
        for (int64_t j = 0; j < l.M; ++j) {
            int kind = kind_of(has_inner(j, 0), has_inner(j, 1));
            keys[j] = (share_[tree_[inner_[j]]] * levels_ + level_[j]) * kinds + kind;
        }
        counting_sort(keys, begins_, order_);
    }

    void sort_leaves(const TreeLayout& l) {
        word_begins_.assign(l.U + 1, 0);
        counting_sort(word_, word_begins_, leaves_);
        for (int side : {0, 1}) slots_[side].assign(l.U, none);
        for (int64_t k = 0; k < l.L; ++k)
            if (leaf_[k] < 2 * l.M) slots_[leaf_[k] % 2][word_[k]] = 0;
        for (int side : {0, 1})
            for (int64_t word = 0; word < l.U; ++word) {
                if (slots_[side][word] == none) continue;
                slots_[side][word] = int64_t(side_words_[side].size());
                side_words_[side].push_back(word);
            }
    }

    // Order: what has key 0, key 1, …; begins: where each key's begin, and the end of all.
    static void counting_sort(const std::vector<int64_t>& keys, std::vector<int64_t>& begins,
                              std::vector<int64_t>& order) {
        for (int64_t key : keys) ++begins[key + 1];
        std::partial_sum(begins.begin(), begins.end(), begins.begin());
        std::vector<int64_t> next(begins);
        order.resize(keys.size());
        for (size_t i = 0; i < keys.size(); ++i) order[next[keys[i]]++] = int64_t(i);
    }

    int shares_;
    int64_t levels_;
    std::vector<int64_t> at_, inner_, leaf_, word_, tree_, level_, share_;
    std::vector<int64_t> order_, begins_, leaves_, word_begins_, side_words_[2], slots_[2];
};

}  // namespace unrolled
