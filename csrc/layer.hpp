// A whole call, forward or backward: what is packed, how much room the threads need, and who runs what.
#pragma once

#include "backward.hpp"
#include "forward.hpp"
#include "gradients.hpp"

namespace UNROLLED_ISA {

using unrolled::Plan;

// The biases of all gates, each in whole vectors: (G + 1, V), the last one inside r ⊙ (U_n h + b).
template <class T>
void sum_biases(int G, bool resets_after, int H, const Forward<T>& layer, T* biases) {
    constexpr int L = Lanes<T>::count;
    int padded = vectors(H, L) * L;
    std::fill(biases, biases + size_t(G + 1) * padded, T(0));
    for (int gate = 0; gate < G; ++gate) {
        bool is_inside = resets_after && gate == 2;
        T* of_input = biases + size_t(gate) * padded;
        T* of_state = is_inside ? of_input + padded : of_input;
        size_t first = size_t(gate) * H;
        for (int unit = 0; layer.input_bias && unit < H; ++unit)
            of_input[unit] = layer.input_bias[first + unit];
        for (int unit = 0; layer.state_bias && unit < H; ++unit)
            of_state[unit] += layer.state_bias[first + unit];
    }
}

// Whether so many bytes of weights, beside all else, are too much for a core's own cache.
inline bool is_fetched(size_t bytes, const Shape& shape) { return bytes > shape.cache / 4 * 3; }

// How many steps of W x are made at once: they stay in the cache until they are used. Where U is fetched at
// every step anyway, W is less often.
inline int64_t steps_at_once(const Shape& shape, const Plan& plan, size_t row_bytes) {
    size_t bytes = is_fetched(row_bytes * shape.H, shape) ? shape.cache : shape.cache / 16 * 3;
    int64_t fit = bytes / (std::max(1, plan.most_rows()) * row_bytes);
    return std::max(int64_t(1), std::min(fit, plan.most_steps));
}

template <class T, class Cell>
void forward(Cell cell, const Shape& shape, const Plan& plan, const Forward<T>* layers, int directions) {
    constexpr int L = Lanes<T>::count;
    const int G = cell.gates();
    const int H = shape.H;
    const int E = int(layers[0].E);
    const int V = vectors(H, L);
    const size_t row = size_t(G) * V * L;  // numbers of all gates of a row, in vectors
    const size_t state = size_t(shape.B) * H;
    const bool pays = plan.most_steps > 2 || shape.B > 16;  // for less, packing takes longer than it saves
    const bool ready = layers[0].packed;
    const bool packs = pays && !ready;
    const bool projects = layers[0].input_weights;
    const bool packs_inputs = packs && projects;
    const size_t panel = ready || packs ? 0 : size_t(NR) * std::max(H, E) * L;
    const bool fetch_ahead = !panel && is_fetched(row * (H + E) * sizeof(T), shape);
    const int64_t at_once = steps_at_once(shape, plan, row * sizeof(T));
    const size_t projected = projects ? at_once * row : 0;
    const int items = directions * plan.count();
    const int threads = plan.by_units ? shape.threads : std::max(1, std::min(shape.threads, items));
    Buffer<T> packed_states(packs ? directions * row * H : 0);
    Buffer<T> packed_inputs(packs_inputs ? directions * row * E : 0);
    Buffer<T> panels(threads * panel);
    Buffer<T> states(directions * 4 * state);
    Buffer<T> biases(directions * (row + V * L));
    Buffer<T> projections(directions * projected * shape.B);
    const size_t most_sources = at_once * plan.most_rows();
    Buffer<const T*> sources(projects ? threads * most_sources : 0);
    Buffer<int64_t> begins(projects ? threads * at_once : 0);
    for (int d = 0; d < directions; ++d)
        sum_biases(G, cell.resets_after(), H, layers[d], biases.slice(d, row + V * L));
    auto pack = [&](int i) {
        int d = i / (G * V);
        int gate = i % (G * V) / V;
        int v = i % V;
        if (packs)
            pack_transposed(layers[d].weights + size_t(gate) * H * H, H, H, v,
                            packed_states.slice(d, row * H) + size_t(gate) * V * H * L);
        if (packs_inputs)
            pack_transposed(layers[d].input_weights + size_t(gate) * H * E, H, E, v,
                            packed_inputs.slice(d, row * E) + size_t(gate) * V * E * L);
    };
    auto run = [&](int d, int group, Part part) {
        const size_t before = plan.starts[group];
        T* h = states.slice(d, 4 * state) + before * H;
        T* sums = projects ? projections.slice(d, projected * shape.B) + before * projected : nullptr;
        ForwardState<T> own{h, h + state, h + 2 * state, h + 3 * state};
        Projection<T> projection{sums, sources.slice(part.thread, most_sources),
                                 begins.slice(part.thread, at_once), at_once};
        PackedWeights<T> packed{packs ? packed_states.slice(d, row * H) : layers[d].packed,
                                packs_inputs ? packed_inputs.slice(d, row * E) : layers[d].packed_input,
                                biases.slice(d, row + V * L), panels.slice(part.thread, panel)};
        ForwardRun<T, Cell>(cell, shape, layers[d], packed, plan.groups[group], own, projection, part)();
    };
    const int columns = packs ? directions * G * V : 0;
    run_plan(plan, threads, directions, columns, V, fetch_ahead, pack, run, [](int, int) {});
}

// How far tokens are apart so that the same units of many do not lie in the same places of the cache, and
// so that a whole tile of units can be read from any one on.
inline int64_t step_of(int units) { return vectors(units, 16) * 16 + 16; }

template <class T, class Cell>
void backward(Cell cell, const Shape& shape, const Plan& plan, Backward<T>* layers, int directions) {
    constexpr int L = Lanes<T>::count;
    const int D = directions;
    const int H = shape.H;
    const int K = cell.gates() * H;
    const int E = int(layers[0].E);
    const int V = vectors(H, L);
    const int input_columns = layers[0].dinput ? vectors(E, L) : 0;
    const int64_t N = shape.tokens();
    const int64_t gate_step = step_of(K);
    const int64_t inner_step = step_of(H);
    const size_t matrix = size_t(V) * K * L;
    const size_t input_matrix = size_t(input_columns) * K * L;
    const size_t state = size_t(shape.B) * H;
    const bool has_room = layers[0].dgates;
    Buffer<T> packed_states(D * matrix);
    Buffer<T> packed_inputs(D * input_matrix);
    Buffer<T> states(D * 2 * state);
    Buffer<T> dgates(has_room ? 0 : D * N * gate_step);
    Buffer<T> dinner(cell.resets_after() && !has_room ? D * N * inner_step : 0);
    for (int d = 0; d < D && !has_room; ++d) {
        layers[d].dgates = dgates.slice(d, N * gate_step);
        layers[d].dinner = dinner.slice(d, N * inner_step);
        layers[d].gate_step = gate_step;
        layers[d].inner_step = inner_step;
    }
    TokenSums<T> sums(gates_of(cell), shape, layers, D, packed_inputs.data());
    const size_t workspace = sums.workspace();
    Buffer<T> workspaces(shape.threads * workspace);
    auto pack = [&](int i) {
        int d = i / (V + input_columns);
        int v = i % (V + input_columns);
        if (v < V) pack_straight(layers[d].weights, K, H, v, packed_states.slice(d, matrix));
        else pack_straight(layers[d].input_weights, K, E, v - V, packed_inputs.slice(d, input_matrix));
    };
    auto run = [&](int d, int group, Part part) {
        T* dh = states.slice(d, 2 * state) + size_t(plan.starts[group]) * H;
        BackwardState<T> own{dh, dh + state};
        BackwardRun<T, Cell>(cell, shape, layers[d], packed_states.slice(d, matrix), plan.groups[group], own,
                             part)();
    };
    auto finish = [&](int share, int thread) {
        sums.make(share, workspaces.slice(thread, workspace));
    };
    const bool fetch_ahead = is_fetched(matrix * sizeof(T), shape);
    run_plan(plan, shape.threads, D, D * (V + input_columns), V, fetch_ahead, pack, run, finish);
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
