// Networks over binary trees as the kernels are asked for them: a batch of trees, level by level.
//
// Nodes are known by place, as nn/trees.py lays them out: the children of inner node j are the places 2j and
// 2j + 1, and the roots come last. Inner nodes are numbered level by level, the lowest first.
#pragma once

#include <cstdint>

namespace unrolled {

enum class Node : int64_t { tanh, unit_tanh, lstm };  // unit_tanh: of length 1

constexpr int64_t gates_of(Node node) { return node == Node::lstm ? 5 : 1; }

// Numbers of a node's state, in H.
constexpr int64_t parts_of(Node node) { return node == Node::lstm ? 2 : 1; }

// What an inner node keeps for the way back, of H units.
constexpr int64_t kept_of(Node node, int64_t H) {
    return node == Node::lstm ? 6 * H : node == Node::unit_tanh ? 1 : 0;
}

// N places, of which L are leaves and M inner nodes, of B trees. Indices are checked where they are read.
struct TreeLayout {
    const int64_t* word;    // (L,)  which of the U distinct words each leaf is
    const int64_t* leaves;  // (L,)  places
    const int64_t* inner;   // (M,)  places
    const int64_t* tree;    // (N,)
    const int64_t* levels;  // (levels + 1,)  where each level's inner nodes begin
    int64_t N, L, M, U, B, level_count;
};

// Forth, and back where there are gradients. G gates and S = H or 2H numbers of state, as `node` says.
template <class T>
struct TreeCall {
    TreeLayout layout;
    int64_t node;  // a Node
    int64_t H;
    T* words;          // (U, S)  the states of the distinct words: h, then c; an LSTM makes them
    const T* weights;  // (G·H, 2H)
    const T* bias;     // (G·H,)
    T* h;              // (N, H)
    T* c;              // (N, H)  LSTM
    T* kept;           // (M, kept_of)  or null: no way back
    // An LSTM's words: gates i, g and o of W x + b.
    int64_t E;
    const T* x;          // (U, E)
    const T* x_weights;  // (3H, E)
    T* words_kept;       // (U, 4H)  or null
    // Back: h, c and kept are read.
    const T* dh;    // (N, H)
    T* dwords;      // (U, S)
    T* dweights;    // (G·H, 2H)  or null
    T* dbias;       // (G·H,)  or null
    T* dx;          // (U, E)  LSTM
    T* dx_weights;  // (3H, E)  LSTM, or null
};

// Trees that an autoencoder builds by the lowest reconstruction error. Sentence b has the words
// starts[b] … starts[b + 1] − 1, n of them, and 2n − 1 nodes in post-order from 2 · starts[b] − b on.
template <class T>
struct GreedyCall {
    const int64_t* ids;     // each in 0..V−1
    const int64_t* starts;  // (B + 1,)
    int64_t B;
    int64_t H;
    int64_t node;              // Node::tanh or Node::unit_tanh
    int64_t weighted;          // errors by the numbers of words, or equally
    const T* vectors;          // (V, H)
    const T* weights;          // (H, 2H)
    const T* bias;             // (H,)
    const T* decoder;          // (2H, H)
    const T* decoder_bias;     // (2H,)
    int64_t* parent;  // of all nodes, as are the following; −1 of roots
    int64_t* word;    // −1 of inner nodes
    int64_t* height;
    int64_t* leaves;
    int64_t* step;  // when it was made; −1 of leaves
    double* error;  // 0 of leaves
};

template <class T>
struct TreeNumberKernels {
    void (*forward)(const TreeCall<T>&, int threads);
    void (*backward)(const TreeCall<T>&, int threads);
    void (*greedy)(const GreedyCall<T>&, int threads);
};

struct TreeKernels {
    TreeNumberKernels<float> float32;
    TreeNumberKernels<double> float64;
};

}  // namespace unrolled
