// Training of GloVe vectors as the kernels are asked for it: tiles of pairs, no two of which share a row or a
// column, so that threads need not wait for each other and their number changes no bit.
#pragma once

#include <cstdint>

namespace unrolled {

// A word's state is two rows of `stride` numbers: its vector and what AdaGrad sums. Biases are
// part of the product: behind the vector a word has (bias, 1), a context (1, bias), and the 1 has a square so
// large that no step moves it. Beyond are zeros.
struct GloveRun {
    const int32_t* rows;     // of the pairs; those of a row lie together
    const int32_t* columns;  // each once among the neighbours of equal row
    const float* logs;       // of how often they come together
    const int64_t* begin;    // (tiles): where the pairs of each tile begin
    const int64_t* end;      // (tiles)
    float* words;            // (V, 2, stride)
    float* contexts;         // (V, 2, stride)
    int64_t stride;          // a multiple of 16
    int32_t tiles;
    int32_t threads;
    float rate;
    float log_most;  // from this logarithm on, a pair counts in full
    float power;
    double* loss;  // (tiles): out, summed
};

struct GloveKernels {
    void (*train)(const GloveRun&);
};

}  // namespace unrolled
