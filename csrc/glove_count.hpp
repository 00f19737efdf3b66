// How often words come together, row by row: the places of a word are looked up and the words around them added
// up, so nothing is sorted but the columns of a row. tasks/embed/pairs.py does the same in numpy.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <stdexcept>
#include <vector>

#include "threads.hpp"

namespace unrolled {

// Neighbours at distance d count 1/d, in units of 1/unit: whole numbers, whose sums depend on no order.
constexpr int64_t kUnit = 232792560;  // the least common multiple of 1 … 22

struct CountedPair {
    int64_t key;  // row << 32 | column
    int64_t total;
};

class PairCounter {
   public:
    // ids, and starts of the lines first … last − 1; each line stands alone.
    PairCounter(const int32_t* ids, const int64_t* starts, int64_t lines, int32_t V, int32_t window)
        : V_(V), window_(window), begin_(size_t(V) + 1, 0) {
        const int64_t words = starts[lines] - starts[0];
        if (words + lines + 1 >= (int64_t(1) << 31)) throw std::invalid_argument("too many words at once");
        text_.reserve(size_t(words + lines + 1));
        text_.push_back(-1);
        for (int64_t line = 0; line < lines; ++line) {
            for (int64_t at = starts[line]; at < starts[line + 1]; ++at) {
                if (ids[at] < 0 || ids[at] >= V) throw std::out_of_range("an id is outside the vocabulary");
                text_.push_back(ids[at]);
                ++begin_[size_t(ids[at]) + 1];
            }
            text_.push_back(-1);
        }
        for (int32_t word = 0; word < V; ++word) begin_[word + 1] += begin_[word];
        places_.resize(size_t(words));
        std::vector<int64_t> next(begin_.begin(), begin_.end() - 1);
        for (size_t at = 0; at < text_.size(); ++at)
            if (text_[at] >= 0) places_[size_t(next[text_[at]]++)] = int32_t(at);
        for (int32_t d = 1; d <= window; ++d) weight_.push_back(std::llround(double(kUnit) / d));
    }

    int64_t most(int32_t row) const {
        return std::min<int64_t>(V_, 2 * int64_t(window_) * (begin_[row + 1] - begin_[row]));
    }

    // Rows from `first` on, as many as `room` surely holds, by row and column. Returns the row after the last,
    // and how many pairs there are.
    std::pair<int32_t, int64_t> rows(int32_t first, CountedPair* pairs, int64_t room, int threads) const {
        std::vector<int64_t> slot{0};
        int32_t last = first;
        while (last < V_ && slot.back() + most(last) <= room) slot.push_back(slot.back() + most(last++));
        if (last == first && first < V_) throw std::invalid_argument("there must be room for a row");
        std::vector<int64_t> size(slot.size() - 1);
#pragma omp parallel num_threads(threads)
        {
            std::vector<int64_t> sums(size_t(V_), 0);
            std::vector<int32_t> touched;
#pragma omp for schedule(dynamic, 4)
            for (int32_t row = first; row < last; ++row) {
                gather(row, sums, touched);
                size[row - first] = write(row, sums, touched, pairs + slot[row - first]);
            }
        }
        int64_t end = 0;
        for (size_t k = 0; k < size.size(); ++k) {
            std::copy(pairs + slot[k], pairs + slot[k] + size[k], pairs + end);
            end += size[k];
        }
        return {last, end};
    }

   private:
    int32_t V_, window_;
    std::vector<int32_t> text_;    // lines, -1 around each
    std::vector<int64_t> begin_;   // of the places of each word
    std::vector<int32_t> places_;  // in the text
    std::vector<int64_t> weight_;

    void gather(int32_t row, std::vector<int64_t>& sums, std::vector<int32_t>& touched) const {
        constexpr int64_t ahead = 16;
        for (int64_t k = begin_[row]; k < begin_[row + 1]; ++k) {
            if (k + ahead < begin_[row + 1]) __builtin_prefetch(text_.data() + places_[k + ahead]);
            const int32_t* here = text_.data() + places_[k];
            for (int32_t d = 1; d <= window_ && here[-d] >= 0; ++d) add(here[-d], d, sums, touched);
            for (int32_t d = 1; d <= window_ && here[d] >= 0; ++d) add(here[d], d, sums, touched);
        }
    }

    void add(int32_t column, int32_t d, std::vector<int64_t>& sums, std::vector<int32_t>& touched) const {
        if (!sums[column]) touched.push_back(column);
        sums[column] += weight_[d - 1];
    }

    // The sums in the order of their columns; they are 0 again.
    int64_t write(int64_t row, std::vector<int64_t>& sums, std::vector<int32_t>& touched,
                  CountedPair* pairs) const {
        std::sort(touched.begin(), touched.end());
        for (size_t k = 0; k < touched.size(); ++k) {
            pairs[k] = {row << 32 | touched[k], sums[touched[k]]};
            sums[touched[k]] = 0;
        }
        const auto size = int64_t(touched.size());
        touched.clear();
        return size;
    }
};

// Counted pairs brought into buckets, those of each bucket by row, in the order given, and column. The bucket of
// a pair is (row mod classes) · blocks + block of its column.
//   starts  [V + 1]  of the rows among the pairs
//   begin   [classes · blocks + 1]  out: where each bucket begins, and the end
struct PairOrder {
    const CountedPair* pairs;
    const int64_t* starts;
    const int32_t* block;  // [V]
    const int32_t* order;  // [V]: rows
    int32_t V, classes, blocks;
    int64_t* begin;
    int32_t* rows;     // out
    int32_t* columns;  // out
    float* logs;       // out
};

template <class Visit>
void pairs_of_class(const PairOrder& o, int32_t rows, Visit visit) {
    for (int32_t k = 0; k < o.V; ++k) {
        const int32_t row = o.order[k];
        if (row % o.classes != rows) continue;
        for (const CountedPair* pair = o.pairs + o.starts[row]; pair < o.pairs + o.starts[row + 1]; ++pair) {
            const auto column = int32_t(pair->key & 0xffffffff);
            visit(row, column, pair->total, int64_t(rows) * o.blocks + o.block[column]);
        }
    }
}

inline void order_pairs(const PairOrder& o, int threads) {
    const int64_t buckets = int64_t(o.classes) * o.blocks;
    std::vector<int64_t> next(size_t(buckets) + 1, 0);
#pragma omp parallel for schedule(dynamic) num_threads(threads)
    for (int32_t rows = 0; rows < o.classes; ++rows)
        pairs_of_class(o, rows, [&](int32_t, int32_t, int64_t, int64_t bucket) { ++next[bucket + 1]; });
    for (int64_t k = 0; k < buckets; ++k) next[k + 1] += next[k];
    std::copy(next.begin(), next.end(), o.begin);
#pragma omp parallel for schedule(dynamic) num_threads(threads)
    for (int32_t rows = 0; rows < o.classes; ++rows)
        pairs_of_class(o, rows, [&](int32_t row, int32_t column, int64_t total, int64_t bucket) {
            const int64_t to = next[bucket]++;
            o.rows[to] = row;
            o.columns[to] = column;
            o.logs[to] = float(std::log(double(total) / double(kUnit)));
        });
}

}  // namespace unrolled
