// A whole call, forward or backward: what is packed, how much room the threads need, and who runs what.
#pragma once

#include "backward.hpp"
#include "forward.hpp"
#include "gradients.hpp"

namespace UNROLLED_ISA {

// The biases of all gates, each in whole vectors: (G + 1, V), the last one inside r ⊙ (U_n h + b).
template <class T>
void sum_biases(Cell cell, int H, const Forward<T>& at, T* biases) {
    constexpr int L = Lanes<T>::count;
    int G = cell.gates(), padded = vectors(H, L) * L;
    bool after = cell.kind == GRU && cell.first == RESET_AFTER;
    std::fill(biases, biases + size_t(G + 1) * padded, T(0));
    for (int gate = 0; gate < G; ++gate) {
        bool inside = after && gate == 2;
        T* of_input = biases + size_t(gate) * padded;
        T* of_state = inside ? of_input + padded : of_input;
        size_t first = size_t(gate) * H;
        for (int unit = 0; at.input_bias && unit < H; ++unit)
            of_input[unit] = at.input_bias[first + unit];
        for (int unit = 0; at.state_bias && unit < H; ++unit)
            of_state[unit] += at.state_bias[first + unit];
    }
}

// Whether so many bytes of weights, beside all else, are too much for a core's own cache.
inline bool is_fetched(size_t bytes, const Shape& shape) { return bytes > shape.cache / 4 * 3; }

template <class T>
void forward(Cell cell, Shape shape, const Plan& plan, const Forward<T>* at, int directions) {
    constexpr int L = Lanes<T>::count;
    int G = cell.gates(), H = shape.H, V = vectors(H, L), E = int(at[0].E);
    size_t row = size_t(G) * V * L, gates = row + V * L, all = size_t(shape.B) * H;
    // For less, packing takes longer than it saves.
    bool pays = plan.most_steps > 2 || shape.B > 16, packs = pays && !at[0].packed;
    bool projects = at[0].input_weights, packs_inputs = projects && !at[0].packed;
    bool fetch_ahead = is_fetched(row * (H + E) * sizeof(T), shape);
    // W x stays in the cache until it is used; where U is fetched at every step anyway, W is less often.
    size_t bytes = is_fetched(row * H * sizeof(T), shape) ? shape.cache : shape.cache / 16 * 3;
    int64_t fit = bytes / (std::max(1, plan.most_rows()) * row * sizeof(T));
    int64_t at_once = std::max(int64_t(1), std::min(fit, plan.most_steps));
    size_t room = projects ? at_once * row : 0;
    Buffer<T> packed(packs ? directions * row * H : 0), states(directions * 4 * all);
    Buffer<T> inputs(packs_inputs ? directions * row * E : 0);
    Buffer<T> biases(directions * gates), projected(directions * room * shape.B);
    int items = directions * plan.count();
    int threads = plan.by_units ? shape.threads : std::max(1, std::min(shape.threads, items));
    size_t most = plan.most_rows();
    Buffer<const T*> sources(projects ? threads * at_once * most : 0);
    Buffer<int64_t> begins(projects ? threads * at_once : 0);
    for (int d = 0; d < directions; ++d) sum_biases(cell, H, at[d], biases.data() + d * gates);
    auto pack = [&](int i) {
        int direction = i / (G * V), column = i % (G * V), gate = column / V;
        const Forward<T>& from = at[direction];
        if (packs)
            pack_transposed(from.weights + size_t(gate) * H * H, H, H, column % V,
                            packed.data() + direction * row * H + size_t(gate) * V * H * L);
        if (packs_inputs)
            pack_transposed(from.input_weights + size_t(gate) * H * E, H, E, column % V,
                            inputs.data() + direction * row * E + size_t(gate) * V * E * L);
    };
    auto run = [&](int direction, int group, Part part) {
        size_t before = plan.starts[group];
        T* own = states.data() + direction * 4 * all + before * H;
        T* space = projected.data() + direction * room * shape.B + before * room;
        Running<T> state{own, own + all, own + 2 * all, own + 3 * all, space, at_once,
                         sources.slice(part.thread, at_once * most),
                         begins.slice(part.thread, at_once)};
        const Forward<T>& from = at[direction];
        Packed<T> ready{packs ? packed.data() + direction * row * H : from.packed,
                        packs_inputs ? inputs.data() + direction * row * E : from.packed_input,
                        biases.data() + direction * gates};
        ForwardRun<T>(cell, shape, from, ready, plan.groups[group], state, part)();
    };
    run_plan(plan, threads, directions, packs || packs_inputs ? directions * G * V : 0, V, fetch_ahead,
             pack, run, [](int, int) {});
}

// How far tokens are apart so that the same units of many do not lie in the same places of the cache, and
// so that a whole tile of units can be read from any one on.
inline int64_t step_of(int units) { return vectors(units, 16) * 16 + 16; }

template <class T>
void backward(Cell cell, Shape shape, const Plan& plan, Backward<T>* at, int directions) {
    constexpr int L = Lanes<T>::count;
    int G = cell.gates(), H = shape.H, V = vectors(H, L), K = G * H, D = directions;
    int E = int(at[0].E), inputs = at[0].dinput ? vectors(E, L) : 0;
    int64_t N = shape.tokens(), gate_step = step_of(K), inner_step = step_of(H);
    size_t matrix = size_t(V) * K * L, all = size_t(shape.B) * H, by_input = size_t(inputs) * K * L;
    bool after = cell.kind == GRU && cell.first == RESET_AFTER, has_room = at[0].dgates;
    Buffer<T> packed(D * (matrix + by_input)), states(D * 2 * all);
    Buffer<T> dgates(has_room ? 0 : D * N * gate_step);
    Buffer<T> dinner(after && !has_room ? D * N * inner_step : 0);
    T* packed_inputs = packed.data() + D * matrix;
    for (int d = 0; d < D && !has_room; ++d) {
        at[d].dgates = dgates.data() + d * N * gate_step;
        at[d].dinner = after ? dinner.data() + d * N * inner_step : nullptr;
        at[d].gate_step = gate_step, at[d].inner_step = inner_step;
    }
    auto pack = [&](int i) {
        int d = i / (V + inputs), v = i % (V + inputs);
        if (v < V) pack_straight(at[d].weights, K, H, v, packed.data() + d * matrix);
        else pack_straight(at[d].input_weights, K, E, v - V, packed_inputs + d * by_input);
    };
    auto run = [&](int direction, int group, Part part) {
        T* own = states.data() + direction * 2 * all + size_t(plan.starts[group]) * H;
        BackwardRun<T>(cell, shape, at[direction], packed.data() + direction * matrix,
                       plan.groups[group], Returning<T>{own, own + all}, part)();
    };
    Sums<T> sums(cell, shape, at, D, packed_inputs);
    size_t workspace = sums.workspace();
    Buffer<T> workspaces(shape.threads * workspace);
    auto finish = [&](int share, int thread) {
        sums.make(share, workspaces.slice(thread, workspace));
    };
    bool fetch_ahead = is_fetched(matrix * sizeof(T), shape);
    run_plan(plan, shape.threads, D, D * (V + inputs), V, fetch_ahead, pack, run, finish);
}

// Weights (G·H, K) in the columns that `forward` reads: (G, V) of K vectors each.
template <class T>
void pack_gates(const T* weights, int G, int H, int K, T* packed) {
    constexpr int L = Lanes<T>::count;
    size_t matrix = size_t(vectors(H, L)) * K * L;
    for (int gate = 0; gate < G; ++gate)
        for (int v = 0; v < vectors(H, L); ++v)
            pack_transposed(weights + size_t(gate) * H * K, H, K, v, packed + gate * matrix);
}

}  // namespace UNROLLED_ISA
