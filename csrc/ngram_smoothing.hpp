// Interpolated Kneser–Ney, plain or modified, for a whole order: ngrams/smoothing.py has the
// formula and the same in numpy. tests/ngrams/test_kernels.py compares the two.

#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "ngram_counts.hpp"

namespace unrolled {

// The n-grams of one order.
//   count   [n]             adjusted or not
//   raw     [n]             how often they come: those not above the cutoff are pruned
//   suffix  [n], or null    where lower has the n-gram without its first token; null: in its place
//   begin   [prefixes + 1]  where the n-grams of each prefix begin
//   lower   [lower_size]    probabilities of the order below
struct Counted {
    const int64_t* count;
    const int64_t* raw;
    int64_t size;
    const int32_t* suffix;
    const int64_t* begin;
    int64_t prefixes;
    const double* lower;
    int64_t lower_size;
    int64_t cutoff;

    int64_t suffix_of(int64_t i) const {
        const int64_t place = suffix ? suffix[i] : i;
        expect(place >= 0 && place < lower_size, "a suffix leads out of the order below");
        return place;
    }
};

// In the order in which numpy adds, so that with and without the kernel the bits are the same.
inline double pairwise(const double* x, int64_t n) {
    double sum = 0.0;
    if (n < 8) {
        for (int64_t i = 0; i < n; ++i) sum += x[i];
        return sum;
    }
    if (n > 128) {
        const int64_t half = n / 2 - n / 2 % 8;
        return pairwise(x, half) + pairwise(x + half, n - half);
    }
    double r[8];
    std::copy(x, x + 8, r);
    int64_t i = 8;
    for (; i + 8 <= n; i += 8)
        for (int j = 0; j < 8; ++j) r[j] += x[i + j];
    sum = ((r[0] + r[1]) + (r[2] + r[3])) + ((r[4] + r[5]) + (r[6] + r[7]));
    for (; i < n; ++i) sum += x[i];
    return sum;
}

// (a − D) / a(h ·) + γ(h) P(w | h')
//   discounts  [4]         D of counts 0, 1, 2, and 3 or more
//   p          [n]         out
//   left       [prefixes]  out: γ; 1 where a prefix has no n-grams
inline void interpolate(const Counted& grams, const double* discounts, double* p, double* left) {
    constexpr const char* wrong = "the prefixes have more or fewer n-grams than there are";
    auto discount = [&](int64_t count) { return discounts[std::clamp<int64_t>(count, 0, 3)]; };
    auto is_kept = [&](int64_t i) { return grams.cutoff == 0 || grams.raw[i] > grams.cutoff; };
    std::vector<double> given;  // of one prefix: what each n-gram leaves to the order below
    int64_t begin = grams.begin[0];
    expect(begin == 0, wrong);
    for (int64_t prefix = 0; prefix < grams.prefixes; ++prefix) {
        const int64_t end = grams.begin[prefix + 1];
        const int64_t size = end - begin;
        expect(begin <= end && end <= grams.size, wrong);
        left[prefix] = 1.0;
        if (size == 0) continue;
        if (given.size() < size_t(size)) given.resize(std::max(size_t(size), 2 * given.size()));
        int64_t all = 0;
        for (int64_t i = begin; i < end; ++i) {
            all += grams.count[i];
            given[i - begin] = is_kept(i) ? discount(grams.count[i]) : double(grams.count[i]);
        }
        const double total = double(std::max<int64_t>(all, 1));
        left[prefix] = (given[0] + pairwise(given.data() + 1, size - 1)) / total;
        for (int64_t i = begin; i < end; ++i) {
            const double lower = grams.lower[grams.suffix_of(i)];
            p[i] = (double(grams.count[i]) - discount(grams.count[i])) / total + left[prefix] * lower;
        }
        begin = end;
    }
    expect(begin == grams.size, wrong);
}

}  // namespace unrolled
