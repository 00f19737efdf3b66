// Log-probabilities of tokens under an n-gram model with backoff.
//
//   log P(w | h) = log p(h w)                  where h w is in the table
//                = log b(h) + log P(w | h')    elsewhere; h' is h without its first token
//
// The table is a trie: a level an order, sorted by prefix and last token. With an n-gram it holds
// every n-gram inside it, so what no shorter context has need not be sought after a longer one.
//
// Where an n-gram is found depends on the token before it and one order less, not on its whole
// line: a block of text is looked up order by order, and the waits for memory of a block overlap.
//
// The same in numpy: ngrams/query.py. tests/ngrams/test_kernels.py compares the two.
// Indices that a damaged table holds are never followed: a range that does not fit is an error.

#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <stdexcept>

namespace unrolled {

constexpr int kMostOrders = 16;
constexpr int kBlock = 256;    // tokens looked up together
constexpr int64_t kWorthAThread = 10000;  // tokens
constexpr int32_t kStart = 2;  // token ids of text/vocabulary.py
constexpr int32_t kEnd = 3;
constexpr const char* kDamaged = "the n-gram table is damaged: continuations lie outside their level";

// One order of the table.
//   words  [size]      last tokens, ascending within a prefix
//   log_p  [size]
//   log_b  [size]      of the n-gram as a context;                 none in the highest order
//   begin  [size + 1]  where its continuations begin one order up; none in the highest order
struct NgramLevel {
    const int32_t* words;
    const double* log_p;
    const double* log_b;
    const int64_t* begin;
    int64_t size;
};

struct NgramTable {
    NgramLevel levels[kMostOrders];
    int order;
    double missing;  // log weight of a context that is not in the table
};

// Reads a text of whole lines from left to right; <s> is put before each. Place 0 of the arrays is
// the token before the block.
class NgramReader {
   public:
    explicit NgramReader(const NgramTable& table) : table_(table) {}

    // Surprise in nats at each token.
    //   ids   [N]  each below levels[0].size
    //   nats  [N]  out
    void read(const int32_t* ids, int64_t N, double* nats) {
        bool opens = true;
        for (int64_t next = 0; next < N;) {
            int size = 0;
            while (size < kBlock && next < N) {
                const int32_t token = opens ? kStart : ids[next++];
                opens = token == kEnd;
                take(++size, token);
            }
            look_up(size);
            for (int i = 1; i <= size; ++i)
                if (token_[i] != kStart) *nats++ = -log_probability(i);
            for (int k = 1; k <= found_[size]; ++k) node_[k][0] = node_[k][size];
            token_[0] = token_[size];
            found_[0] = found_[size];
            length_[0] = length_[size];
        }
    }

    // Whether a range was met that does not lie within its level.
    bool is_damaged() const { return is_damaged_; }

   private:
    void take(int i, int32_t token) {
        token_[i] = token;
        node_[1][i] = token;
        found_[i] = 1;
        length_[i] = token == kStart ? 0 : std::min(length_[i - 1] + 1, table_.order - 1);
    }

    // For each token the longest n-gram that ends there, and all shorter ones.
    void look_up(int size) {
        int left = 0;
        for (int i = 1; i <= size; ++i) {
            waiting_[left] = i;
            left += found_[i - 1] > 0;
        }
        for (int k = 1; k < table_.order && left > 0 && table_.levels[k].size > 0; ++k) {
            const NgramLevel& level = table_.levels[k - 1];
            const NgramLevel& above = table_.levels[k];
            for (int j = 0; j < left; ++j) {
                const int64_t* range = level.begin + node_[k][waiting_[j] - 1];
                const int64_t begin = range[0];
                const int64_t end = range[1];
                const bool fits = (begin >= 0) & (end <= above.size) & (begin <= end);
                is_damaged_ |= !fits;
                first_[j] = above.words + (fits ? begin : 0);
                wanted_[j] = token_[waiting_[j]];  // at place n of a range there is no word below n
                count_[j] = fits ? std::min<int64_t>(end - begin, int64_t(wanted_[j]) + 1) : 0;
                __builtin_prefetch(first_[j] + count_[j] / 2);
            }
            search(left);
            for (int j = 0; j < left; ++j) {
                const int i = waiting_[j];
                const bool hit = (count_[j] > 0) & (*first_[j] == wanted_[j]);
                node_[k + 1][i] = first_[j] - above.words;
                found_[i] += hit;
                __builtin_prefetch(above.log_p + node_[k + 1][i]);
            }
            int still = 0;
            for (int j = 0; j < left; ++j) {
                const int i = waiting_[j];
                waiting_[still] = i;
                still += (found_[i] > k) & (found_[i - 1] > k);
            }
            left = still;
        }
    }

    // The last word not beyond the wanted one in each range.
    void search(int left) {
        for (int j = 0; j < left; ++j) {
            const int32_t* first = first_[j];
            for (int64_t count = count_[j]; count > 1; count -= count / 2)
                first += first[count / 2] <= wanted_[j] ? count / 2 : 0;
            first_[j] = first;
        }
    }

    double log_probability(int i) const {
        const int found = found_[i];
        const int known = std::min(found_[i - 1], table_.order - 1);
        double log_p = table_.levels[found - 1].log_p[node_[found][i]];
        for (int k = found; k <= known; ++k) log_p += table_.levels[k - 1].log_b[node_[k][i - 1]];
        return log_p + table_.missing * std::max(0, length_[i] - known);
    }

    const NgramTable& table_;
    int64_t node_[kMostOrders + 1][kBlock + 1];  // [k][i] where the last k tokens are, if found
    int32_t token_[kBlock + 1];
    int found_[kBlock + 1] = {};   // the longest that is in the table
    int length_[kBlock + 1] = {};  // of the context in the line, at most order - 1
    const int32_t* first_[kBlock];  // of those: the range of words to search in
    int64_t count_[kBlock];
    int32_t wanted_[kBlock];
    int waiting_[kBlock];          // whose n-gram of the next order is to be looked up
    bool is_damaged_ = false;
};

// The same by several threads, each some whole lines.
inline void ngram_nats(const NgramTable& table, const int32_t* ids, int64_t N, double* nats,
                       int threads) {
    const int parts = int(std::clamp<int64_t>(N / kWorthAThread, 1, std::max(threads, 1)));
    auto line_start = [&](int64_t part) {  // the first at or after this share of the text
        const int64_t place = N * part / parts;
        if (part == 0 || part == parts) return place;
        return std::min<int64_t>(N, std::find(ids + place - 1, ids + N, kEnd) + 1 - ids);
    };
    std::atomic<bool> is_damaged{false};
#pragma omp parallel for num_threads(parts) schedule(static, 1)
    for (int part = 0; part < parts; ++part) {
        const int64_t begin = line_start(part);
        const int64_t end = line_start(part + 1);
        NgramReader reader(table);
        reader.read(ids + begin, end - begin, nats + begin);
        if (reader.is_damaged()) is_damaged = true;
    }
    if (is_damaged) throw std::invalid_argument(kDamaged);
}

}  // namespace unrolled
