// Training of word vectors as the kernels are asked for it: a run of lines, read by several threads.
//
// Draws are no sequence but a function of (key, place in the corpus), so they do not depend on threads. With
// copies, every thread learns on a copy of its own and the changes are summed in the order of the threads:
// the same bytes each time. Without, all threads write to the same rows, and runs differ.
#pragma once

#include <cstdint>

namespace unrolled {

struct EmbedRun {
    const int32_t* ids;     // of all words, line after line
    const int64_t* starts;  // of lines, and the end of the last
    int64_t first_line, last_line;
    float* rows;       // (inputs + V, stride): the vectors, then what predicts: words, or inner nodes of a tree
    float* copies;     // (parts, inputs + V, stride), equal to the rows; or null
    uint8_t* touched;  // (parts, inputs + V) of zeros, and zeros again at the end
    const float* keep;         // (V): the chance of a word to be read at all
    const float* alias_share;  // (V): the noise distribution as an alias table
    const int32_t* alias_other;
    const int64_t* code_starts;  // (V + 1): of the paths below; null: negative sampling
    const int32_t* nodes;        // the inner nodes from the root to each word
    const float* turns;          // 1 or 0 at each
    const int64_t* gram_starts;  // (V + 1): of the sub-words below; null: words have a row each and no more
    const int32_t* grams;        // rows whose mean, with the word's own, is its vector
    int64_t V;
    int64_t inputs;  // V, and what sub-words there are
    int64_t stride;  // numbers from row to row: a multiple of 16, zeros beyond the dimension
    int32_t dimension;
    int32_t window;
    int32_t words;      // of a block: their products come before their updates
    int32_t shared;     // negatives that a block shares: a multiple of 16, no fewer than its words
    float negatives;    // that each pair counts for
    int32_t cbow;       // the word from the mean of its neighbours; else each neighbour from the word
    int32_t parts;      // threads
    float rate;
    uint64_t key;
    double* loss;    // (parts): summed, in nats
    int64_t* count;  // (parts): of the predictions
};

struct EmbedKernels {
    void (*train)(const EmbedRun&);
};

}  // namespace unrolled
