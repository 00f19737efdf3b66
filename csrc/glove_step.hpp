// GloVe (Pennington et al. 2014, equation 8) by AdaGrad. Compiled once an instruction set.
//
// A pair of word i and context j that come together X times costs f(X) (wᵢᵀw̃ⱼ + bᵢ + b̃ⱼ − log X)². Four pairs
// of one row are learned from at once: products before updates, one change of the row. As in the authors' code
// a step takes half the gradient, and divides it by the root of the squares before it.
#pragma once

#include <algorithm>

#include "glove.hpp"
#include "simd.hpp"
#include "threads.hpp"

namespace UNROLLED_ISA {

using unrolled::GloveRun;

namespace glove {

constexpr int lanes = Lanes<float>::count;
constexpr int together = 4;  // pairs of a row: glove_kernels.py knows it too
constexpr int64_t ahead = 8;  // pairs whose columns are fetched before they are needed

// 1 / √x to 14 bits or better: what it scales is the length of a step.
UNROLLED_INLINE Vec<float> inverse_root(Vec<float> x) {
#if defined(__AVX512F__)
    return (Vec<float>)_mm512_maskz_rsqrt14_ps(__mmask16(-1), (__m512)x);
#else
    Vec<float> y;
    for (int lane = 0; lane < lanes; ++lane) y[lane] = 1.0f / __builtin_sqrtf(x[lane]);
    return y;
#endif
}

class Tile {
   public:
    explicit Tile(const GloveRun& run) : run(run), vectors(int(run.stride / lanes)) {}

    UNROLLED_FLAT double learn(int64_t begin, int64_t end) {
        double loss = 0;
        for (int64_t at = begin; at < end;) {
            const int32_t row = run.rows[at];
            int64_t stop = at + 1;
            while (stop < end && stop < at + lanes && run.rows[stop] == row) ++stop;
            fetch(stop, end);
            weigh(at, int(stop - at));
            loss += learn_row(state(run.words, row), at, int(stop - at));
            at = stop;
        }
        return loss;
    }

   private:
    const GloveRun& run;
    const int vectors;
    float weight[lanes];

    float* state(float* of, int64_t number) const { return of + number * 2 * run.stride; }

    void fetch(int64_t at, int64_t end) const {
        for (int64_t next = at; next < std::min(at + ahead, end); ++next)
            fetch(state(run.contexts, run.columns[next]));
        if (at < end) fetch(state(run.words, run.rows[at]));
    }

    void fetch(const float* from) const {
        for (int64_t k = 0; k < 2 * run.stride; k += 16) __builtin_prefetch(from + k, 1);
    }

    // f(X) = (X / most)^power, at most 1.
    void weigh(int64_t at, int count) {
        Vec<float> x = (load(run.logs + at, count) - run.log_most) * run.power;
        store(weight, vexp<float>(x < 0.0f ? x : Vec<float>{}));
    }

    float learn_row(float* row, int64_t at, int count) {
        float loss = 0;
        int k = 0;
        for (; k + together <= count; k += together) loss += pairs<together>(row, at + k, weight + k);
        switch (count - k) {
            case 3: return loss + pairs<3>(row, at + k, weight + k);
            case 2: return loss + pairs<2>(row, at + k, weight + k);
            case 1: return loss + pairs<1>(row, at + k, weight + k);
        }
        return loss;
    }

    template <int N>
    UNROLLED_INLINE float pairs(float* row, int64_t at, const float* weights) {
        float *column[N], pull[N], loss = 0;
        for (int k = 0; k < N; ++k) column[k] = state(run.contexts, run.columns[at + k]);
        scores<N>(row, column, pull);
        for (int k = 0; k < N; ++k) {
            const float error = pull[k] - run.logs[at + k];
            pull[k] = weights[k] * error;
            loss += pull[k] * error;
        }
        change<N>(row, column, pull);
        return loss;
    }

    template <int N>
    UNROLLED_INLINE void scores(const float* row, float* const* column, float* score) const {
        Vec<float> s[N] = {};
        for (int v = 0; v < vectors; ++v) {
            const Vec<float> x = load(row + v * lanes);
#pragma GCC unroll 4
            for (int k = 0; k < N; ++k) s[k] += x * load(column[k] + v * lanes);
        }
        for (int k = 0; k < N; ++k) score[k] = sum<float>(s[k]);
    }

    template <int N>
    UNROLLED_INLINE void change(float* row, float* const* column, const float* pull) const {
        for (int v = 0; v < vectors; ++v) {
            float *x = row + v * lanes, *x_squares = x + run.stride;
            const Vec<float> value = load(x), seen = load(x_squares);
            Vec<float> gradient{}, squares = seen;
#pragma GCC unroll 4
            for (int k = 0; k < N; ++k) {
                float *y = column[k] + v * lanes, *y_squares = y + run.stride;
                const Vec<float> other = load(y), other_seen = load(y_squares);
                const Vec<float> mine = pull[k] * other, its = pull[k] * value;
                gradient += mine;
                squares += mine * mine;
                store(y, other - run.rate * its * inverse_root(other_seen));
                store(y_squares, other_seen + its * its);
            }
            store(x, value - run.rate * gradient * inverse_root(seen));
            store(x_squares, squares);
        }
    }
};

}  // namespace glove

// The tiles of a run, each by one thread.
inline void glove_train(const GloveRun& run) {
#pragma omp parallel for schedule(dynamic) num_threads(run.threads)
    for (int tile = 0; tile < run.tiles; ++tile)
        run.loss[tile] = glove::Tile(run).learn(run.begin[tile], run.end[tile]);
}

}  // namespace UNROLLED_ISA
