// The n-grams of a text, one order after the other: ngrams/counts.py tells how, and does the
// same in numpy. tests/ngrams/test_counts.py compares the two.

#pragma once

#include <algorithm>
#include <cstdint>
#include <stdexcept>
#include <utility>
#include <vector>

#include "ngram.hpp"

namespace unrolled {

constexpr int64_t kAhead = 24;      // places fetched before they are needed
constexpr int64_t kManyKeys = 128;  // from here on, counting digits beats comparing
constexpr int kDigit = 8;           // bits

// The n-grams of the order below, each of them a prefix.
//   words  [size]  last tokens: nothing follows </s>
//   count  [size]
struct Prefixes {
    const int32_t* words;
    const int64_t* count;
    int64_t size;

    int64_t places_after(int64_t prefix) const {
        return words[prefix] == kEnd ? 0 : count[prefix];
    }
};

// Arrays come from outside: whatever leads to a place in memory is looked at when it is read.
inline void expect(bool holds, const char* rule) {
    if (__builtin_expect(!holds, 0)) throw std::invalid_argument(rule);
}

// Places of a text of N tokens.
//   here    [N]     the n-gram of the order below that ends at each place
//   places  [size]  sorted by prefix; out: those after the n-grams, sorted by n-gram
//   above   [N]     out, or null: the n-gram that ends at each place
struct Places {
    const int32_t* here;
    int32_t* places;
    int64_t size;
    int32_t* above;
};

// Distinct n-grams, sorted by prefix and last token: all out.
//   words   [n]             last tokens, ascending within a prefix
//   count   [n]
//   suffix  [n]             the n-gram of the order below that is left without the first token
//   begin   [prefixes + 1]  where the n-grams of each prefix begin
struct NewGrams {
    int32_t* words;
    int64_t* count;
    int32_t* suffix;
    int64_t* begin;
};

class NgramCounter {
   public:
    //   ids  [N]  tokens below V, each line closed by </s>
    NgramCounter(const int32_t* ids, int64_t N, int32_t V) : ids_(ids), N_(N), V_(V) {}

    // All places, sorted by the token before, which is <s> where a line begins.
    //   free    [V]  where the places after each token begin; out: where they end
    //   places  [N]  out
    void by_token_before(int64_t* free, int32_t* places) const {
        int32_t before = kStart;
        for (int64_t i = 0; i < N_; ++i) {
            const int64_t place = free[before]++;
            expect(place >= 0 && place < N_, "a place after a token is none of the text's");
            places[place] = int32_t(i);
            const int32_t token = token_at(i);
            before = token == kEnd ? kStart : token;
        }
    }

    // The n-grams of the next order; returns how many there are and how many places after them.
    std::pair<int64_t, int64_t> level(const Prefixes& below, const Places& at,
                                      const NewGrams& out) {
        int64_t next = 0;
        int64_t after = 0;
        int64_t end = 0;
        for (int64_t prefix = 0; prefix < below.size; ++prefix) {
            out.begin[prefix] = end;
            const int64_t size = below.places_after(prefix);
            expect(size >= 0 && size <= at.size - next, kWrongPlaces);
            make_room(size);
            take(at, next, size);
            sort(size);
            for (int64_t first = 0; first < size; ++end) {
                const int64_t beyond = mark(at, first, int32_t(end), after);
                out.words[end] = int32_t(keys_[first] >> 32);
                out.count[end] = beyond - first;
                const int32_t suffix = at.here[int32_t(keys_[first])];
                expect(suffix >= 0 && suffix < below.size, "a place has no n-gram of the order below");
                out.suffix[end] = suffix;
                first = beyond;
            }
            next += size;
        }
        expect(next == at.size, kWrongPlaces);
        out.begin[below.size] = end;
        return {end, after};
    }

   private:
    static constexpr const char* kWrongPlaces = "the prefixes have more or fewer places than there are";

    int32_t token_at(int64_t place) const {
        const int32_t token = ids_[place];
        expect(token >= 0 && token < V_, "a token id is outside the vocabulary");
        return token;
    }

    void make_room(int64_t size) {
        if (size_t(size) < keys_.size()) return;
        keys_.resize(std::max(size_t(size) + 1, 2 * keys_.size()));
        sorted_.resize(keys_.size());
    }

    // The keys of some places: token << 32 | place. A key of no token comes after them.
    void take(const Places& at, int64_t next, int64_t size) {
        for (int64_t i = 0; i < size; ++i) {
            const int32_t soon = at.places[std::min(next + i + kAhead, at.size - 1)];  // not followed
            __builtin_prefetch(ids_ + soon);
            __builtin_prefetch(at.here + soon);
            if (at.above) __builtin_prefetch(at.above + soon, 1);
            const int32_t place = at.places[next + i];
            expect(place >= 0 && place < N_, "a place is none of the text's");
            keys_[i] = uint64_t(token_at(place)) << 32 | uint32_t(place);
        }
        keys_[size] = ~uint64_t(0);
    }

    // By token; within a prefix, places are in order already.
    void sort(int64_t size) {
        if (size < kManyKeys) return std::sort(keys_.begin(), keys_.begin() + size);
        sorted_[size] = keys_[size];
        for (int shift = 32; int64_t(V_) >> (shift - 32); shift += kDigit) {
            auto digit = [shift](uint64_t key) { return key >> shift & ((1 << kDigit) - 1); };
            size_t begin[(1 << kDigit) + 1] = {};
            for (int64_t i = 0; i < size; ++i) ++begin[digit(keys_[i]) + 1];
            for (int i = 1; i < 1 << kDigit; ++i) begin[i] += begin[i - 1];
            for (int64_t i = 0; i < size; ++i) sorted_[begin[digit(keys_[i])]++] = keys_[i];
            keys_.swap(sorted_);
        }
    }

    // Tells the places of an n-gram which one it is and keeps those after it. Where its keys end.
    int64_t mark(const Places& at, int64_t first, int32_t gram, int64_t& after) const {
        const uint64_t word = keys_[first] >> 32;
        for (; keys_[first] >> 32 == word; ++first) {
            const int32_t place = int32_t(keys_[first]);
            if (!at.above) continue;
            at.above[place] = gram;
            at.places[after] = place + 1;
            after += word != kEnd;
        }
        return first;
    }

    const int32_t* ids_;
    int64_t N_;
    int32_t V_;
    std::vector<uint64_t> keys_, sorted_;  // of one prefix
};

}  // namespace unrolled
