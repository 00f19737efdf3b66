// Sums and products of rows, as training of word vectors needs them. Compiled once an instruction set.
#pragma once

#include <algorithm>
#include <type_traits>

#include "product.hpp"
#include "simd.hpp"

namespace UNROLLED_ISA {

constexpr int lanes = Lanes<float>::count;
constexpr int together = lanes == 16 ? 4 : 2;  // vectors of four rows that the registers hold

// Calls f(width, at) for the vectors of a row, so many at a time as registers hold.
template <class F>
UNROLLED_INLINE void each_chunk(int vectors, F f) {
    int at = 0;
    for (; at + together <= vectors; at += together) f(std::integral_constant<int, together>{}, at * lanes);
    const int rest = vectors - at;
    if (rest == 3) f(std::integral_constant<int, 3>{}, at * lanes);
    if (rest == 2) f(std::integral_constant<int, 2>{}, at * lanes);
    if (rest == 1) f(std::integral_constant<int, 1>{}, at * lanes);
}

// to += factor · row
UNROLLED_INLINE void add_scaled(float* to, const float* row, float factor, int vectors) {
    for (int v = 0; v < vectors; ++v)
        store(to + v * lanes, load(to + v * lanes) + factor * load(row + v * lanes));
}

UNROLLED_INLINE void copy_row(float* to, const float* row, int vectors) {
    for (int v = 0; v < vectors; ++v) store(to + v * lanes, load(row + v * lanes));
}

UNROLLED_INLINE void scale_row(float* row, float factor, int vectors) {
    for (int v = 0; v < vectors; ++v) store(row + v * lanes, factor * load(row + v * lanes));
}

// The second-level cache has it when it is wanted.
UNROLLED_INLINE void prefetch_row(const float* row, int64_t stride) {
    for (int64_t k = 0; k < stride; k += 16) __builtin_prefetch(row + k, 1, 2);
}

// Lane l is the sum of the lanes of part[l].
template <int width = lanes / 2>
UNROLLED_INLINE Vec<float> sums(Vec<float>* part) {
    if constexpr (width == 0) {
        return part[0];
    } else {
        Lanes<float>::ivec upper{}, lower{};
        for (int lane = 0; lane < lanes; ++lane) {
            upper[lane] = lane & width ? lanes + lane - width : lane;
            lower[lane] = lane & width ? lanes + lane : lane + width;
        }
#pragma GCC unroll 8
        for (int row = 0; row < width; ++row) {
            const Vec<float> a = part[row], b = part[row + width];
            part[row] = pick<float>(a, b, upper) + pick<float>(a, b, lower);
        }
        return sums<width / 2>(part);
    }
}

// The products of two rows, lane by lane: their sum is the rows' product.
UNROLLED_INLINE Vec<float> multiply_rows(const float* a, const float* b, int vectors) {
    Vec<float> even{}, odd{};
    int v = 0;
    for (; v + 2 <= vectors; v += 2) {
        even += load(a + v * lanes) * load(b + v * lanes);
        odd += load(a + (v + 1) * lanes) * load(b + (v + 1) * lanes);
    }
    if (v < vectors) even += load(a + v * lanes) * load(b + v * lanes);
    return even + odd;
}

// to += Σ factors[k] · rows[which[k]]
UNROLLED_INLINE void add_rows(float* to, const float* rows, int64_t stride, const int32_t* which,
                              const float* factors, int count) {
    each_chunk(int(stride / lanes), [&](auto chunk, int at) {
        constexpr int W = decltype(chunk)::value;
        Vec<float> total[W];
        for (int v = 0; v < W; ++v) total[v] = load(to + at + v * lanes);
        for (int k = 0; k < count; ++k) {
            const float* row = rows + which[k] * stride + at;
#pragma GCC unroll 4
            for (int v = 0; v < W; ++v) total[v] += factors[k] * load(row + v * lanes);
        }
        for (int v = 0; v < W; ++v) store(to + at + v * lanes, total[v]);
    });
}

// Four rows at once: to[r] += Σ_k factors[k · along + r · across] · rows[k], one `to` after the other, so that
// the same row may come twice.
UNROLLED_INLINE void add_products(float* const* to, const float* factors, int along, int across, const float* rows,
                                  int64_t stride, int count) {
    each_chunk(int(stride / lanes), [&](auto chunk, int at) {
        constexpr int W = decltype(chunk)::value;
        Vec<float> total[4][W] = {};
        for (int k = 0; k < count; ++k) {
            const float *factor = factors + k * along, *row = rows + k * stride + at;
            const float f[4] = {factor[0], factor[across], factor[2 * across], factor[3 * across]};
#pragma GCC unroll 4
            for (int v = 0; v < W; ++v) {
                const Vec<float> value = load(row + v * lanes);
#pragma GCC unroll 4
                for (int r = 0; r < 4; ++r) total[r][v] += f[r] * value;
            }
        }
#pragma GCC unroll 4
        for (int r = 0; r < 4; ++r)
#pragma GCC unroll 4
            for (int v = 0; v < W; ++v)
                store(to[r] + at + v * lanes, load(to[r] + at + v * lanes) + total[r][v]);
    });
}

// A decision with score s, taken wrongly with probability σ(s): its loss is log(1 + e^s) = max(s, 0) +
// log(1 + e^−|s|). The logarithm is taken once of the product of many.
struct Losses {
    Vec<float> above{}, product = splat(1.0f);

    // σ(s) of each lane.
    UNROLLED_INLINE Vec<float> wrong(Vec<float> s) {
        const Vec<float> positive = s > 0.0f ? s : Vec<float>{};
        const Vec<float> e = vexp<float>(s - (positive + positive));
        const Vec<float> share = inverse<float>(1.0f + e);
        above += positive;
        product *= 1.0f + e;
        return s > 0.0f ? share : e * share;
    }

    Vec<float> nats() const { return above + vlog<float>(product); }
};

}  // namespace UNROLLED_ISA
