// The matrix product (GEMM) of a few rows with packed weights: the inner loop of every recurrent layer.
//
// Weights are packed once a call, once for many, or a few columns at a time where they are used but once or
// twice: K rows of one vector each, so that a column is read from front to back. A tile is up to MR rows times up to NR columns, small enough for all
// its sums to stay in registers while k runs from 0 to K. Each sum runs in the order of k, whatever the
// tile: results depend neither on how rows are grouped nor on how many threads there are.
#pragma once

#include <algorithm>

#include "simd.hpp"

namespace UNROLLED_ISA {

constexpr int MR = 8;             // rows of a tile, at most
constexpr int NR = 4;             // columns of a tile, at most
constexpr int vectors_ahead = 4;  // of a column, on their way into the first-level cache

constexpr int tile_rows(int columns) { return std::min(MR, UNROLLED_ACCUMULATORS / columns); }

// The rows of a tile: number k of row r is rows[r][k · step].
template <class T>
struct RowPanel {
    const T* rows[MR];
    int count;
    size_t step = 1;
};

// The packed columns of a tile.
template <class T>
struct ColumnPanel {
    const T* columns[NR];
    int count;
    const T* prefetch;  // a column that will be wanted soon: it is fetched on the way
};

// What the sums of column c begin with: row r at columns[c] + r · step[c]; step 0: the same for all.
template <class T>
struct InitialSums {
    const T* columns[NR];
    size_t step[NR];
};

template <class T>
inline InitialSums<T> zeros() {
    static const Vec<T> zero{};
    const T* column = reinterpret_cast<const T*>(&zero);
    return {{column, column, column, column}, {}};
}

// out[r][c] = initial[r][c] + Σ_k rows[r][k] · columns[c][k],  each a vector, the rows of out `stride` apart.
template <class T, int R, int C>
inline void micro_kernel(const RowPanel<T>& left, const ColumnPanel<T>& right, int K,
                         const InitialSums<T>& initial, T* out, size_t stride) {
    Vec<T> sums[R][C];
    for (int r = 0; r < R; ++r)
        for (int c = 0; c < C; ++c) sums[r][c] = load(initial.columns[c] + r * initial.step[c]);
    const T* row[R];
    for (int r = 0; r < R; ++r) row[r] = left.rows[r];
    const T* column[C];
    for (int c = 0; c < C; ++c) column[c] = right.columns[c];
    const T* ahead = right.prefetch;
    size_t place = 0;
    size_t step = left.step;
    for (int k = 0; k < K; ++k, place += step) {
        Vec<T> weight[C];
#pragma GCC unroll 4
        for (int c = 0; c < C; ++c) {
            weight[c] = load(column[c] + k * Lanes<T>::count);
            if (UNROLLED_VECTOR_BYTES == 64 && R > 2)  // a whole line, and time to load more than what is used
                __builtin_prefetch(column[c] + (k + vectors_ahead) * Lanes<T>::count);
        }
        __builtin_prefetch(ahead + k * Lanes<T>::count, 0, 2);
#pragma GCC unroll 8
        for (int r = 0; r < R; ++r) {
            Vec<T> value = splat(row[r][place]);
#pragma GCC unroll 4
            for (int c = 0; c < C; ++c) sums[r][c] += value * weight[c];
        }
    }
    for (int r = 0; r < R; ++r)
        for (int c = 0; c < C; ++c) store(out + r * stride + c * Lanes<T>::count, sums[r][c]);
}

template <class T>
using MicroKernel = void (*)(const RowPanel<T>&, const ColumnPanel<T>&, int K, const InitialSums<T>&, T* out,
                             size_t stride);

template <class T, int C, int R = tile_rows(C)>
MicroKernel<T> micro_kernel_of(int rows) {
    if constexpr (R == 1) {
        return micro_kernel<T, 1, C>;
    } else {
        return rows == R ? micro_kernel<T, R, C> : micro_kernel_of<T, C, R - 1>(rows);
    }
}

template <class T>
inline MicroKernel<T> micro_kernel_of(int rows, int columns) {
    switch (columns) {
        case 4: return micro_kernel_of<T, 4>(rows);
        case 3: return micro_kernel_of<T, 3>(rows);
        case 2: return micro_kernel_of<T, 2>(rows);
        default: return micro_kernel_of<T, 1>(rows);
    }
}

template <class T>
inline void multiply(const RowPanel<T>& left, const ColumnPanel<T>& right, int K,
                     const InitialSums<T>& initial, T* out, size_t stride) {
    micro_kernel_of<T>(left.count, right.count)(left, right, K, initial, out, stride);
}

// The same for rows out[r] anywhere, of which `width` numbers are real: set, or added to what is there.
template <class T>
inline void multiply_into(const RowPanel<T>& left, const ColumnPanel<T>& right, int K, bool sets,
                          T* const* out, int width) {
    constexpr int L = Lanes<T>::count;
    int C = right.count;
    alignas(64) T sums[MR * NR * L];
    InitialSums<T> initial = zeros<T>();
    for (int c = 0; !sets && c < C; ++c) {
        initial.columns[c] = sums + c * L;
        initial.step[c] = C * L;
        for (int r = 0; r < left.count; ++r)
            store(sums + (r * C + c) * L, load(out[r] + c * L, width - c * L));
    }
    multiply(left, right, K, initial, sums, C * L);
    for (int r = 0; r < left.count; ++r)
        for (int c = 0; c < C; ++c)
            store(out[r] + c * L, load(sums + (r * C + c) * L), width - c * L);
}

// Cut `rows` into tiles of nearly equal height: 16 rows are 6 + 5 + 5, not 6 + 6 + 4.
template <class Int>
inline int next_tile(Int rows_left, int columns) {
    Int tiles = (rows_left + tile_rows(columns) - 1) / tile_rows(columns);
    return int((rows_left + tiles - 1) / tiles);
}

inline int vectors(int size, int lanes) { return (size + lanes - 1) / lanes; }

// Lane l is lane from[l] of a and b, one after the other.
template <class T>
inline Vec<T> pick(Vec<T> a, Vec<T> b, typename Lanes<T>::ivec from) {
#if defined(__clang__)
    constexpr int L = Lanes<T>::count;
    Vec<T> result{};
    for (int lane = 0; lane < L; ++lane)
        result[lane] = int(from[lane]) < L ? a[int(from[lane])] : b[int(from[lane]) - L];
    return result;
#else
    return __builtin_shuffle(a, b, from);
#endif
}

// Transpose a square of numbers: halves change places, then quarters, and so on.
template <class T, int width = Lanes<T>::count / 2>
inline void transpose(Vec<T> (&square)[Lanes<T>::count]) {
    constexpr int L = Lanes<T>::count;
    if constexpr (width > 0) {
        typename Lanes<T>::ivec upper{}, lower{};
        for (int lane = 0; lane < L; ++lane) {
            upper[lane] = lane & width ? L + lane - width : lane;
            lower[lane] = lane & width ? L + lane : lane + width;
        }
#pragma GCC unroll 16
        for (int row = 0; row < L; ++row) {
            if (row & width) continue;
            Vec<T> above = square[row], below = square[row + width];
            square[row] = pick<T>(above, below, upper);
            square[row + width] = pick<T>(above, below, lower);
        }
        transpose<T, width / 2>(square);
    }
}

// A square of weights, whose rows are K apart, transposed.
template <class T>
UNROLLED_INLINE void pack_square(const T* from, size_t K, T* column) {
    constexpr int lanes = Lanes<T>::count;
    Vec<T> square[lanes];
#pragma GCC unroll 16
    for (int lane = 0; lane < lanes; ++lane) square[lane] = load(from + lane * K);
    transpose<T>(square);
#pragma GCC unroll 16
    for (int i = 0; i < lanes; ++i) store(column + i * lanes, square[i]);
}

// Column v of weights (width, K), transposed: its vectors hold the weights of `lanes` units.
template <class T>
void pack_column(const T* weights, int width, int K, int v, T* column) {
    constexpr int lanes = Lanes<T>::count;
    int real = std::min(lanes, width - v * lanes);
    int whole = real == lanes ? K / lanes * lanes : 0;
    const T* from = weights + size_t(v) * lanes * K;
    for (int k = 0; k < whole; k += lanes) pack_square(from + k, K, column + size_t(k) * lanes);
    for (int k = whole; k < K; ++k)
        for (int lane = 0; lane < lanes; ++lane)
            column[size_t(k) * lanes + lane] = lane < real ? from[size_t(lane) * K + k] : T(0);
}

// The same into its place among all columns.
template <class T>
void pack_transposed(const T* weights, int width, int K, int v, T* packed) {
    pack_column(weights, width, K, v, packed + size_t(v) * K * Lanes<T>::count);
}

// Column v of weights (K, width) as they lie.
template <class T>
void pack_straight(const T* weights, int K, int width, int v, T* packed) {
    constexpr int lanes = Lanes<T>::count;
    T* column = packed + size_t(v) * K * lanes;
    int real = std::min(lanes, width - v * lanes);
    for (int k = 0; k < K; ++k)
        store(column + size_t(k) * lanes, load(weights + size_t(k) * width + v * lanes, real));
}

}  // namespace UNROLLED_ISA
