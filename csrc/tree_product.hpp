// Products of a few rows with packed weights, as levels of trees need them, and sums of outer products.
#pragma once

#include "buffer.hpp"
#include "product.hpp"

namespace UNROLLED_ISA {

// Packed columns, each of K vectors.
template <class T>
struct Panel {
    const T* data;
    int K;

    const T* column(int v, int k) const { return data + (size_t(v) * K + k) * Lanes<T>::count; }
};

// sums[r] += Σ_k rows[r][k] · weights[from + k] for k < K and the columns first … last − 1, the first of which
// is added to the beginning of a row; rows of sums are `stride` apart. Wide tiles of three columns for
// many rows, since each of them fetches its columns from the second-level cache.
template <class T>
void add_product(const T* const* rows, int count, const Panel<T>& weights, int from, int K, int first,
                 int last, T* sums, size_t stride) {
    constexpr int L = Lanes<T>::count;
    int most = count > tile_rows(NR) ? NR - 1 : NR;
    for (int v = first; v < last; v += most) {
        int C = std::min(most, last - v);
        ColumnPanel<T> right{{}, C, nullptr};
        for (int c = 0; c < C; ++c) right.columns[c] = weights.column(v + c, from);
        T* out = sums + size_t(v - first) * L;
        for (int i = 0, tile = 0; i < count; ++tile) {
            int R = next_tile(count - i, C);
            RowPanel<T> left{{}, R};
            for (int r = 0; r < R; ++r) left.rows[r] = rows[i + r];
            InitialSums<T> initial{{}, {}};
            for (int c = 0; c < C; ++c) {
                initial.columns[c] = out + size_t(i) * stride + c * L;
                initial.step[c] = stride;
            }
            bool ends = v + C >= last;
            right.prefetch = right.columns[tile % C] + (ends ? 0 : size_t(C) * weights.K * L);
            multiply(left, right, K, initial, out + size_t(i) * stride, stride);
            i += R;
        }
    }
}

// Pairs of rows whose outer products are summed: Σ_k left[k]ᵀ · right[k].
template <class T>
struct RowPairs {
    const T* const* left;
    const T* const* right;
    int64_t count;
};

constexpr int pairs_at_once = 256;

// Numbers that add_outer needs room for.
template <class T>
size_t outer_workspace(int units, int width) {
    int columns = vectors(width, Lanes<T>::count) * Lanes<T>::count;
    return size_t(columns + units + MR) * pairs_at_once + MR;
}

// out[unit] = Σ_k left[k][unit] · right[k] (width) for the units first … last − 1; rows of out are `stride`
// apart. Some pairs at a time, so that what is packed of them stays in the cache.
template <class T>
UNROLLED_FLAT void add_outer(const RowPairs<T>& pairs, int first, int last, int width, T* out, size_t stride, T* space) {
    constexpr int L = Lanes<T>::count;
    int V = vectors(width, L);
    T* columns = space;
    T* tiles = space + size_t(V) * L * pairs_at_once;
    for (int unit = first; unit < last; ++unit) std::fill_n(out + unit * stride, width, T(0));
    for (int64_t from = 0; from < pairs.count; from += pairs_at_once) {
        int K = int(std::min<int64_t>(pairs_at_once, pairs.count - from));
        for (int k = 0; k < K; ++k)
            for (int v = 0; v < V; ++v)
                store(columns + (size_t(v) * K + k) * L, load(pairs.right[from + k] + v * L, width - v * L));
        T* packed = tiles;
        for (int unit = first; unit < last;) {
            int R = next_tile(last - unit, NR);
            for (int k = 0; k < K; ++k, packed += R)
                for (int r = 0; r < R; ++r) packed[r] = pairs.left[from + k][unit + r];
            unit += R;
        }
        for (int v = 0; v < V; v += NR) {
            int C = std::min(NR, V - v);
            ColumnPanel<T> right{{}, C, columns};
            for (int c = 0; c < C; ++c) right.columns[c] = columns + size_t(v + c) * K * L;
            const T* panel = tiles;
            for (int unit = first; unit < last;) {
                int R = next_tile(last - unit, NR);
                RowPanel<T> rows{{}, R, size_t(R)};
                T* to[MR];
                for (int r = 0; r < R; ++r) {
                    rows.rows[r] = panel + r;
                    to[r] = out + (unit + r) * stride + v * L;
                }
                multiply_into(rows, right, K, false, to, width - v * L);
                panel += size_t(K) * R;
                unit += R;
            }
        }
    }
}

}  // namespace UNROLLED_ISA
