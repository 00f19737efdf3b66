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
constexpr int64_t most_inputs = 1 << 24;  // E
constexpr int64_t most_batch = (int64_t(1) << 31) - 1;  // B
constexpr int most_threads = 1 << 10;

// nn/cells.py has the equations.
enum class Activation { tanh, sigmoid, relu, leaky_relu, identity };
enum class Output { tanh, linear };
enum class Peephole { none, output, full };
enum class Reset { after, before, none };
enum class Update { keep, write };

struct RnnCell {
    Activation activation;

    static constexpr bool has_memory = false;  // c beside h
    int gates() const { return 1; }
    bool resets_after() const { return false; }
};

struct LstmCell {
    Output output;
    Peephole peephole;

    static constexpr bool has_memory = true;
    int gates() const { return 4; }
    bool resets_after() const { return false; }
    bool has_peephole() const { return peephole != Peephole::none; }
    int peepholes() const { return peephole == Peephole::full ? 3 : int(has_peephole()); }
};

struct GruCell {
    Reset reset;
    Update update;

    static constexpr bool has_memory = false;
    int gates() const { return reset == Reset::none ? 2 : 3; }
    bool resets_after() const { return reset == Reset::after; }  // the gate n then has a bias inside
};

struct Shape {
    int B;
    int H;
    int threads;
    int64_t steps;           // T: where the padding ends
    const int64_t* lengths;  // (B,)
    const int64_t* offsets;  // (B,)  how many tokens the rows before have
    size_t cache;            // bytes of a core's own

    int64_t tokens() const { return B ? offsets[B - 1] + lengths[B - 1] : 0; }
};

// Where a direction's tensors are. Null where a variant or the absence of training needs none.
template <class T>
struct Forward {
    bool reverse = false;
    const T* weights = nullptr;     // U (G·H, H)
    const T* input_bias = nullptr;  // (G·H,)  null: zeros
    const T* state_bias = nullptr;  // (G·H,)  null: zeros
    const T* peephole = nullptr;    // (1 or 3, H)
    const T* first_h = nullptr;     // (B, H)  null: zeros
    const T* first_c = nullptr;     // (B, H)
    T* gates = nullptr;             // (N, G·H)  in: W x, without `input`;  out: the gates, with `before`
    T* inner = nullptr;             // (N, H)  GRU: U_n h + b (reset after) or r ⊙ h (before)
    T* cells = nullptr;             // (N, H)  LSTM: c after the step
    T* before = nullptr;            // (N, H)  h before the step; null where there is no way back
    T* y = nullptr;                 // h after the step, at b · y_row + t · y_step
    int64_t y_row = 0;
    int64_t y_step = 0;
    T* last_h = nullptr;  // (B, H)
    T* last_c = nullptr;  // (B, H)
    // Where the kernel makes W x itself; null: the gates hold it, for a few tokens.
    const T* input = nullptr;  // x (B, T, E), at b · x_row + t · x_step
    int64_t x_row = 0;
    int64_t x_step = 0;
    const T* input_weights = nullptr;  // W (G·H, E)
    int64_t E = 0;
    // Both weights as `pack` leaves them, for many calls with the same; null: they are packed in this call.
    const T* packed = nullptr;
    const T* packed_input = nullptr;
};

template <class T>
struct Backward {
    bool reverse = false;
    const T* weights = nullptr;
    const T* peephole = nullptr;
    const T* first_c = nullptr;
    const T* gates = nullptr;
    const T* inner = nullptr;
    const T* cells = nullptr;
    const T* before = nullptr;
    const T* dy = nullptr;  // gradients, laid out as y; null for none
    int64_t y_row = 0;
    int64_t y_step = 0;
    const T* dlast_h = nullptr;  // (B, H) or null
    const T* dlast_c = nullptr;  // (B, H) or null
    T* dfirst_h = nullptr;       // (B, H) or null
    T* dfirst_c = nullptr;       // (B, H) or null
    const T* input = nullptr;    // x, at b · x_row + t · x_step
    int64_t x_row = 0;
    int64_t x_step = 0;
    const T* input_weights = nullptr;  // (G·H, E)
    int64_t E = 0;
    // Those that nobody asks for are null.
    T* dinput = nullptr;          // (B, T, E)  0 in the padding; the sum over all directions
    T* dinput_weights = nullptr;  // (G·H, E)
    T* dweights = nullptr;        // (G·H, H)
    T* dinput_bias = nullptr;     // (G·H,)
    T* dstate_bias = nullptr;     // (G·H,)  GRU, reset after; else it is that of the input's bias
    T* dpeephole = nullptr;       // (1 or 3, H)
    // What the steps leave for the sums over all tokens; null: the call has room of its own.
    T* dgates = nullptr;    // (N, G·H)  of W x + b, a token's `gate_step` after the one before
    T* dinner = nullptr;    // (N, H)  GRU, reset after: of U_n h + b, `inner_step` apart
    int64_t gate_step = 0;
    int64_t inner_step = 0;
};

// Rows of scores without their biases, which become the gradient of their cross-entropy.
template <class T>
struct Softmax {
    T* z = nullptr;                    // (N, V)
    const T* bias = nullptr;           // (V,)
    const int64_t* targets = nullptr;  // (N,)  each in 0..V−1
    T* nats = nullptr;                 // (N,)
    int64_t N = 0;
    int64_t V = 0;
    double smoothing = 0;
};

// Scores of tags and of moves from tag to tag, and what comes of them.
template <class T>
struct Chain {
    const T* scores = nullptr;         // (B, T, K)
    const T* transitions = nullptr;    // (K, K)  from row to column
    const int64_t* lengths = nullptr;  // (B,)  each in 1..T
    int64_t B = 0;
    int64_t steps = 0;
    int64_t K = 0;
    double* log_z = nullptr;   // (B,)
    T* nodes = nullptr;        // (B, T, K)  P(y_t = j), 0 in the padding
    T* edges = nullptr;        // (K, K)  P(y_t = i, y_{t+1} = j), summed over all steps; null: log Z alone
    int64_t* paths = nullptr;  // (B, T)  the best tags, 0 in the padding
    T* best = nullptr;         // (B,)  their scores
};

struct Plan;  // which thread runs which rows: plan.hpp

// The kernels of one instruction set for numbers of one type.
template <class T>
struct NumberKernels {
    template <class Cell>
    using ForwardKernel = void (*)(Cell, const Shape&, const Plan&, const Forward<T>*, int directions);
    template <class Cell>
    using BackwardKernel = void (*)(Cell, const Shape&, const Plan&, Backward<T>*, int directions);

    ForwardKernel<RnnCell> forward_rnn;
    ForwardKernel<LstmCell> forward_lstm;
    ForwardKernel<GruCell> forward_gru;
    BackwardKernel<RnnCell> backward_rnn;
    BackwardKernel<LstmCell> backward_lstm;
    BackwardKernel<GruCell> backward_gru;
    void (*pack)(const T* weights, int G, int H, int K, T* packed);
    void (*softmax)(const Softmax<T>&, int threads);
    void (*chain_sums)(const Chain<T>&, int threads);
    void (*chain_best)(const Chain<T>&, int threads);

    ForwardKernel<RnnCell> forward(RnnCell) const { return forward_rnn; }
    ForwardKernel<LstmCell> forward(LstmCell) const { return forward_lstm; }
    ForwardKernel<GruCell> forward(GruCell) const { return forward_gru; }
    BackwardKernel<RnnCell> backward(RnnCell) const { return backward_rnn; }
    BackwardKernel<LstmCell> backward(LstmCell) const { return backward_lstm; }
    BackwardKernel<GruCell> backward(GruCell) const { return backward_gru; }
};

struct EmbedKernels;
struct TreeKernels;
struct GloveKernels;

struct KernelSet {
    const char* name;
    int vector_bytes;
    NumberKernels<float> float32;
    NumberKernels<double> float64;
    const EmbedKernels* embed;
    const TreeKernels* tree;
    const GloveKernels* glove;
};

}  // namespace unrolled
