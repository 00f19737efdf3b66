// One recurrent layer over whole sequences, forward and backward: what the kernels take and give.
//
// Letters as in the Python code: B rows, N real tokens in all, H hidden units, G gates of a cell.
// Tokens lie compactly, row after row, in the order of time: row b has tokens
// offsets[b] … offsets[b] + lengths[b] − 1. A direction that runs backwards reads them from the end.
//
// Integers: int64_t (or size_t) for whatever counts tokens, steps, or numbers in memory; int for rows B, units,
// gates, lanes, threads and what lies in one tile. The limits below keep products of the latter within
// an int; whoever calls the kernels refuses what is beyond them.
#pragma once

#include <cstddef>
#include <cstdint>

namespace unrolled {

constexpr int most_directions = 2;
constexpr int64_t most_units = 1 << 20;   // H
constexpr int64_t most_inputs = 1 << 24;  // E, and K tags of a chain
constexpr int64_t most_rows_of_a_call = (int64_t(1) << 31) - 1;
constexpr int most_threads = 1 << 10;

enum Kind : int { RNN, LSTM, GRU };
enum Activation : int { TANH, SIGMOID, RELU, LEAKY_RELU, IDENTITY };  // RNN: first
enum Output : int { OUTPUT_TANH, OUTPUT_LINEAR };                     // LSTM: first
enum Peephole : int { NO_PEEPHOLE, PEEPHOLE_OUTPUT, PEEPHOLE_FULL };  // LSTM: second
enum Reset : int { RESET_AFTER, RESET_BEFORE, RESET_NONE };           // GRU: first
enum Update : int { KEEP, WRITE };                                    // GRU: second

struct Cell {
    int kind, first, second;  // first and second: the variant, as the enumerations say

    int gates() const {
        if (kind == RNN) return 1;
        if (kind == LSTM) return 4;
        return first == RESET_NONE ? 2 : 3;
    }
};

struct Shape {
    int B, H, threads;
    int64_t steps;           // T: where the padding ends
    const int64_t* lengths;  // (B,)
    const int64_t* offsets;  // (B,)  how many tokens the rows before have
    size_t cache;            // bytes of a core's own

    int64_t tokens() const { return B ? offsets[B - 1] + lengths[B - 1] : 0; }
};

// Where a direction's tensors are. Null where a variant or the absence of training needs none.
template <class T>
struct Forward {
    int64_t reverse;
    const T* weights;     // (G·H, H)
    const T* input_bias;  // (G·H,)  null: zeros
    const T* state_bias;  // (G·H,)  null: zeros
    const T* peephole;    // (1 or 3, H)
    const T* first_h;     // (B, H)  null: zeros
    const T* first_c;     // (B, H)
    T* gates;             // (N, G·H)  in: W x, without `input`;  out: the gates, with `before`
    T* inner;             // (N, H)  GRU: U_n h + b (reset after) or r ⊙ h (before)
    T* cells;             // (N, H)  LSTM: c after the step
    T* before;            // (N, H)  h before the step; null where there is no way back
    T* y;                 // h after the step, at b · y_row + t · y_step
    int64_t y_row, y_step;
    T* last_h;  // (B, H)
    T* last_c;  // (B, H)
    // Where the kernel makes W x itself; null: the gates hold it, for a few tokens.
    const T* input;          // x (B, T, E), at b · x_row + t · x_step
    int64_t x_row, x_step;
    const T* input_weights;  // (G·H, E)
    // `weights` and `input_weights` as `pack` leaves them, for many calls with the same; null: they
    // are packed in this call.
    const T* packed;
    const T* packed_input;
    int64_t E;
};

template <class T>
struct Backward {
    int64_t reverse;
    const T* weights;
    const T* peephole;
    const T* first_c;
    const T* gates;
    const T* inner;
    const T* cells;
    const T* before;
    const T* dy;  // gradients, laid out as y; null for none
    int64_t y_row, y_step;
    const T* dlast_h;  // (B, H) or null
    const T* dlast_c;  // (B, H) or null
    T* dfirst_h;       // (B, H) or null
    T* dfirst_c;       // (B, H) or null
    const T* input;    // x, at b · x_row + t · x_step
    int64_t x_row, x_step;
    const T* input_weights;  // (G·H, E)
    int64_t E;
    // Those that nobody asks for are null.
    T* dinput;          // (B, T, E)  0 in the padding; the sum over all directions
    T* dinput_weights;  // (G·H, E)
    T* dweights;        // (G·H, H)
    T* dinput_bias;     // (G·H,)
    T* dstate_bias;     // (G·H,)  GRU, reset after; else it is that of the input's bias
    T* dpeephole;       // (1 or 3, H)
    // What the steps leave for the sums over all tokens; null: the call has room of its own.
    T* dgates;  // (N, G·H)  of W x + b, a token's `gate_step` after the one before
    T* dinner;  // (N, H)  GRU, reset after: of U_n h + b, `inner_step` apart
    int64_t gate_step, inner_step;
};

// Rows of scores without their biases, which become the gradient of their cross-entropy.
template <class T>
struct Softmax {
    T* z;                    // (N, V)
    const T* bias;           // (V,)
    const int64_t* targets;  // (N,)
    T* nats;                 // (N,)
    int64_t N, V;
    T smoothing;
};

// Scores of tags and of moves from tag to tag, and what comes of them.
template <class T>
struct Chain {
    const T* scores;         // (B, T, K)
    const T* transitions;    // (K, K)  from row to column
    const int64_t* lengths;  // (B,)  each in 1..T
    int64_t B, steps, K;
    double* log_z;   // (B,)
    T* nodes;        // (B, T, K)  P(y_t = j), 0 in the padding
    T* edges;        // (K, K)  P(y_t = i, y_{t+1} = j), summed over all steps; null: log Z alone
    int64_t* paths;  // (B, T)  the best tags, 0 in the padding
    T* best;         // (B,)  their scores
};

struct Plan;  // which thread runs which rows: plan.hpp

// The kernels of one instruction set.
struct Kernels {
    const char* name;
    void (*forward32)(Cell, Shape, const Plan&, const Forward<float>*, int directions);
    void (*forward64)(Cell, Shape, const Plan&, const Forward<double>*, int directions);
    void (*backward32)(Cell, Shape, const Plan&, Backward<float>*, int directions);
    void (*backward64)(Cell, Shape, const Plan&, Backward<double>*, int directions);
    void (*pack32)(const float* weights, int G, int H, int K, float* packed);
    void (*pack64)(const double* weights, int G, int H, int K, double* packed);
    void (*softmax32)(const Softmax<float>&, int threads);
    void (*softmax64)(const Softmax<double>&, int threads);
    void (*chain_sums32)(const Chain<float>&, int threads);
    void (*chain_sums64)(const Chain<double>&, int threads);
    void (*chain_best32)(const Chain<float>&, int threads);
    void (*chain_best64)(const Chain<double>&, int threads);
    int bytes;  // of a vector
};

}  // namespace unrolled
