// GloVe (Pennington et al. 2014, equation 8) by AdaGrad. Compiled once an instruction set.
//
// A pair of word i and context j that come together X times costs f(X) (wᵢᵀw̃ⱼ + bᵢ + b̃ⱼ − log X)². As in the
// authors' program a step takes half the gradient, and it is the squares of rate times that which are summed and
// divide the next. Steps stay so long that pairs must be learned from one after the other: four of a row at once,
// each on what it was before, made numbers without end.
#pragma once

#include <algorithm>

#include "glove.hpp"
#include "simd.hpp"
#include "threads.hpp"

namespace UNROLLED_ISA {

using unrolled::GloveRun;

namespace glove {

constexpr int lanes = Lanes<float>::count;
constexpr int64_t ahead = 4;  // pairs before which a column is fetched

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
            if (stop < end) fetch(state(run.words, run.rows[stop]));
            weigh(at, int(stop - at));
            loss += learn_row(state(run.words, row), at, int(stop - at), end);
            at = stop;
        }
        return loss;
    }

   private:
    const GloveRun& run;
    const int vectors;
    float weight[lanes];

    float* state(float* of, int64_t number) const { return of + number * 2 * run.stride; }

    void fetch(const float* from) const {
        for (int64_t k = 0; k < 2 * run.stride; k += 16) __builtin_prefetch(from + k, 1);
    }

    // f(X) = (X / most)^power, at most 1.
    void weigh(int64_t at, int count) {
        Vec<float> x = (load(run.logs + at, count) - run.log_most) * run.power;
        store(weight, vexp<float>(x < 0.0f ? x : Vec<float>{}));
    }

    float learn_row(float* row, int64_t at, int count, int64_t end) const {
        float loss = 0;
        for (int k = 0; k < count; ++k) {
            if (at + k + ahead < end) fetch(state(run.contexts, run.columns[at + k + ahead]));
            float* column = state(run.contexts, run.columns[at + k]);
            const float error = score(row, column) - run.logs[at + k];
            loss += weight[k] * error * error;
            step(row, column, run.rate * weight[k] * error);
        }
        return loss;
    }

    UNROLLED_INLINE float score(const float* row, const float* column) const {
        Vec<float> s{};
        for (int v = 0; v < vectors; ++v) s += load(row + v * lanes) * load(column + v * lanes);
        return sum<float>(s);
    }

    UNROLLED_INLINE void step(float* row, float* column, float pull) const {
        for (int v = 0; v < vectors; ++v) {
            float *x = row + v * lanes, *y = column + v * lanes;
            const Vec<float> value = load(x), other = load(y);
            move(x, value, pull * other);
            move(y, other, pull * value);
        }
    }

    // AdaGrad: numbers, and behind them what is summed of each.
    UNROLLED_INLINE void move(float* numbers, Vec<float> value, Vec<float> by) const {
        const Vec<float> seen = load(numbers + run.stride);
        store(numbers, value - by * inverse_root(seen));
        store(numbers + run.stride, seen + by * by);
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
