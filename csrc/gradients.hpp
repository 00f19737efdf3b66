// The gradients of the weights, the biases and the inputs: sums over all tokens, of products of what the
// steps back have left with what the steps forth have kept. They need no order in time, so threads split
// the units (weights) or the tokens (inputs), and each sum runs in the same order whoever makes it.
#pragma once

#include "schedule.hpp"

namespace UNROLLED_ISA {

using unrolled::Backward;
using unrolled::GruCell;
using unrolled::LstmCell;
using unrolled::most_directions;
using unrolled::Peephole;
using unrolled::Reset;
using unrolled::RnnCell;
using unrolled::Shape;

constexpr int64_t most_tokens = 1024;  // whose rows are used for all units before the next
constexpr int most_gates = 4;

// What the gradients need to know of a cell.
struct Gates {
    int count;
    bool resets = false;        // gate 2 is not multiplied by h itself
    bool resets_after = false;  // but has a sum of its own inside
    Peephole peephole = Peephole::none;
};

inline Gates gates_of(RnnCell cell) { return {cell.gates()}; }

inline Gates gates_of(LstmCell cell) { return {cell.gates(), false, false, cell.peephole}; }

inline Gates gates_of(GruCell cell) {
    return {cell.gates(), cell.reset != Reset::none, cell.resets_after()};
}

// What each token has a row of, which gradients are multiplied by: x, h before the step, r ⊙ h of a GRU
// that resets before; and for peepholes c after and before the step.
enum Operand { X, BEFORE, INNER, operands, CELLS = operands, CELLS_BEFORE, row_kinds };

// Σ_n gradients[n] ⊙ factors[n]
template <class T>
struct WeightedSum {
    const T* const* factors = nullptr;  // (H,) a token; null: 1
    T* out = nullptr;                   // (H,)  null: not wanted
};

// The gradients (N, H) of one gate, or of U_n h + b, and what is to be made of them.
template <class T>
struct GateGradient {
    const T* tokens = nullptr;  // token n at tokens + n · step
    int64_t step = 0;
    T* products[operands] = {};  // (H, width)  Σ_n gradients[n]ᵀ · operand[n]; null: not wanted
    WeightedSum<T> sums[2];
};

// Part of a tensor that may not be wanted.
template <class T>
inline T* part_of(T* tensor, int64_t numbers) {
    return tensor ? tensor + numbers : nullptr;
}

// All that the gradients of one direction's parameters are summed from.
template <class T>
class ParameterSums {
   public:
    ParameterSums() = default;

    // rows: room for those of all kinds and tokens; zeros (H,): a first state that is not given.
    ParameterSums(Gates gates, const Shape& shape, const Backward<T>& layer, const T** rows, const T* zeros)
        : H_(shape.H), N_(shape.tokens()), rows_(rows) {
        find_rows(gates, shape, layer, zeros);
        for (int g = 0; g < gates.count; ++g) add_gate(gates, layer, g);
        widths_[X] = int(layer.E);
        widths_[BEFORE] = H_;
        widths_[INNER] = H_;
    }

    // How many numbers `make` needs room for, of so many units.
    size_t workspace(int units) const { return packed_rows() + size_t(units) * at_once() + MR; }

    // Those of the units first … last − 1, where first is the beginning of a vector.
    UNROLLED_FLAT void make(int first, int last, T* workspace) const {
        if (first >= last) return;
        int64_t from = 0;
        do {  // once, where there is no token
            Span span{from, int(std::min(at_once(), N_ - from)), first, last};
            add(span, workspace, workspace + packed_rows());
            from += most_tokens;
        } while (from < N_);
    }

   private:
    static constexpr int L = Lanes<T>::count;

    // Some tokens and units.
    struct Span {
        int64_t from;
        int tokens;
        int first;
        int last;
    };

    void add_gate(Gates gates, const Backward<T>& layer, int g) {
        T* by_state = part_of(layer.dweights, int64_t(g) * H_ * H_);
        T* state_bias = part_of(layer.dstate_bias, int64_t(g) * H_);
        bool is_reset = gates.resets && g == 2;
        GateGradient<T>& own = gradients_[count_++];
        own.tokens = layer.dgates + g * H_;
        own.step = layer.gate_step;
        own.products[X] = part_of(layer.dinput_weights, int64_t(g) * H_ * layer.E);
        own.sums[0] = {nullptr, part_of(layer.dinput_bias, int64_t(g) * H_)};
        own.sums[1] = peephole_sum(gates.peephole, layer, g);
        if (!is_reset) {
            own.products[BEFORE] = by_state;
            if (gates.resets_after) own.sums[1] = {nullptr, state_bias};
        } else if (!gates.resets_after) {
            own.products[INNER] = by_state;
        } else {
            GateGradient<T>& inside = gradients_[count_++];
            inside.tokens = layer.dinner;
            inside.step = layer.inner_step;
            inside.products[BEFORE] = by_state;
            inside.sums[0] = {nullptr, state_bias};
        }
    }

    // Gates i and f see c before the step, gate o after it.
    WeightedSum<T> peephole_sum(Peephole peephole, const Backward<T>& layer, int g) const {
        bool full = peephole == Peephole::full;
        if (full && g < 2) return {rows(CELLS_BEFORE), part_of(layer.dpeephole, int64_t(g) * H_)};
        if (peephole == Peephole::none || g != 3) return {};
        return {rows(CELLS), part_of(layer.dpeephole, full ? int64_t(2) * H_ : 0)};
    }

    int64_t at_once() const { return std::min(N_, most_tokens); }

    // Numbers of the rows of all operands, packed.
    size_t packed_rows() const {
        size_t all = 0;
        for (int o = 0; o < operands; ++o)
            if (is_wanted(o)) all += vectors(widths_[o], L) * L;
        return all * (at_once() + 1);
    }

    const T** rows(int kind) const { return rows_ + kind * N_; }

    bool is_wanted(int operand) const {
        for (int i = 0; i < count_; ++i)
            if (gradients_[i].products[operand]) return true;
        return false;
    }

    void find_rows(Gates gates, const Shape& shape, const Backward<T>& layer, const T* zeros) {
        for (int row = 0; row < shape.B; ++row)
            for (int64_t t = 0; t < shape.lengths[row]; ++t) {
                int64_t n = shape.offsets[row] + t;
                rows(X)[n] = layer.input + row * layer.x_row + t * layer.x_step;
                rows(BEFORE)[n] = layer.before + n * H_;
                if (layer.inner) rows(INNER)[n] = layer.inner + n * H_;
                if (gates.peephole == Peephole::none) continue;
                bool begins = t == (layer.reverse ? shape.lengths[row] - 1 : 0);
                const T* first = layer.first_c ? layer.first_c + int64_t(row) * H_ : zeros;
                const T* cells = layer.cells + n * H_;
                rows(CELLS)[n] = cells;
                rows(CELLS_BEFORE)[n] = begins ? first : cells + (layer.reverse ? H_ : -H_);
            }
    }

    // What a span adds to all sums; right and left: room for its rows, packed.
    void add(const Span& span, T* right, T* left) const {
        const T* columns[operands];
        for (int o = 0; o < operands; ++o) {
            columns[o] = right;
            if (is_wanted(o)) right = pack_rows(o, span, right);
        }
        for (int i = 0; i < count_; ++i) {
            const GateGradient<T>& gradient = gradients_[i];
            for (const WeightedSum<T>& sum : gradient.sums)
                if (sum.out) add_up(gradient, sum, span);
            if (gradient.products[X] || gradient.products[BEFORE] || gradient.products[INNER])
                pack_gradients(gradient, span, left);
            for (int o = 0; o < operands; ++o)
                if (gradient.products[o])
                    multiply_span(span, left, columns[o], widths_[o], gradient.products[o]);
        }
    }

    // The rows of some tokens as columns, one vector wide. Gives where the next ones may begin.
    T* pack_rows(int operand, const Span& span, T* packed) const {
        int width = widths_[operand];
        int V = vectors(width, L);
        for (int k = 0; k < span.tokens; ++k)
            for (int v = 0; v < V; ++v)
                store(packed + v * column_step(span) + k * L,
                      load(rows(operand)[span.from + k] + v * L, width - v * L));
        return packed + V * column_step(span);
    }

    // How far columns are apart: not so that all of a token lie in the same place of the cache.
    static size_t column_step(const Span& span) { return size_t(span.tokens + 1) * L; }

    // The gradients of some tokens and units, tile by tile: k after k, the units of a tile side by side.
    void pack_gradients(const GateGradient<T>& gradient, const Span& span, T* packed) const {
        for (int unit = span.first; unit < span.last;) {
            int R = next_tile(span.last - unit, NR);
            const T* source = gradient.tokens + span.from * gradient.step + unit;
            for (int k = 0; k < span.tokens; ++k, source += gradient.step, packed += R)
                std::memcpy(packed, source, MR * sizeof(T));  // the next one mends what is too much
            unit += R;
        }
    }

    void add_up(const GateGradient<T>& gradient, const WeightedSum<T>& sum, const Span& span) const {
        for (int unit = span.first; unit < span.last; unit += L) {
            int lanes = std::min(L, span.last - unit);
            Vec<T> total{};
            for (int64_t n = span.from; n < span.from + span.tokens; ++n) {
                Vec<T> value = load(gradient.tokens + n * gradient.step + unit, lanes);
                if (sum.factors) value *= load(sum.factors[n] + unit, lanes);
                total += value;
            }
            store(sum.out + unit, span.from ? load(sum.out + unit, lanes) + total : total, lanes);
        }
    }

    // out[unit] (+)= Σ_k left[k][unit] · columns[k]
    void multiply_span(const Span& span, const T* left, const T* columns, int width, T* out) const {
        int V = vectors(width, L);
        for (int v = 0; v < V; v += NR) {
            int C = std::min(NR, V - v);
            ColumnPanel<T> right{{}, C, columns};
            for (int c = 0; c < C; ++c) right.columns[c] = columns + (v + c) * column_step(span);
            const T* panel = left;
            for (int unit = span.first; unit < span.last;) {
                int R = next_tile(span.last - unit, NR);
                RowPanel<T> rows{{}, R, size_t(R)};
                T* to[MR];
                for (int r = 0; r < R; ++r) {
                    rows.rows[r] = panel + r;
                    to[r] = out + size_t(unit + r) * width + v * L;
                }
                multiply_into(rows, right, span.tokens, span.from == 0, to, width - v * L);
                panel += size_t(span.tokens) * R;
                unit += R;
            }
        }
    }

    int H_ = 0;
    int64_t N_ = 0;
    const T** rows_ = nullptr;  // (kinds, N)
    int widths_[operands] = {};
    GateGradient<T> gradients_[most_gates];
    int count_ = 0;
};

// The gradients of x: those of the gates times W, added up over all directions.
template <class T>
class InputSums {
   public:
    InputSums(const Shape& shape, const Backward<T>* layers, int directions, int K, const T* packed)
        : shape_(shape), layers_(layers), D_(directions), K_(K), E_(int(layers[0].E)), V_(vectors(E_, L)),
          pieces_(int(std::max<size_t>(1, size_t(K) * E_ * sizeof(T) / (shape.cache / 2)))),
          packed_(packed) {}

    // Those of the tokens first … last − 1; places: room for as many.
    UNROLLED_FLAT void make(int64_t first, int64_t last, T** places) const {
        find_places(first, last, places);
        for (int direction = 0; direction < D_; ++direction)
            for (int piece = 0; piece < pieces_; ++piece)
                for (int64_t n = first; n < last;) {
                    int R = next_tile(last - n, NR);
                    multiply_piece(direction, piece, n, R, places + n - first);
                    n += R;
                }
    }

    // 0 in the padding of the rows first … last − 1.
    void clear(int first, int last) const {
        for (int row = first; row < last; ++row) {
            T* end = layers_[0].dinput + (int64_t(row) + 1) * shape_.steps * E_;
            std::fill(end - (shape_.steps - shape_.lengths[row]) * E_, end, T(0));
        }
    }

   private:
    static constexpr int L = Lanes<T>::count;

    void find_places(int64_t first, int64_t last, T** places) const {
        for (int row = 0; row < shape_.B; ++row) {
            int64_t begins = shape_.offsets[row];
            int64_t ends = begins + shape_.lengths[row];
            for (int64_t n = std::max(first, begins); n < std::min(last, ends); ++n)
                places[n - first] = layers_[0].dinput + (row * shape_.steps + n - begins) * E_;
        }
    }

    // A direction's part, from some of the gates' units: as much of W as stays in the cache.
    void multiply_piece(int direction, int piece, int64_t n, int R, T* const* places) const {
        const Backward<T>& layer = layers_[direction];
        int from = int(int64_t(K_) * piece / pieces_);
        int count = int(int64_t(K_) * (piece + 1) / pieces_) - from;
        RowPanel<T> left{{}, R};
        for (int r = 0; r < R; ++r) left.rows[r] = layer.dgates + (n + r) * layer.gate_step + from;
        for (int v = 0; v < V_; v += NR) {
            int C = std::min(NR, V_ - v);
            ColumnPanel<T> right{{}, C, nullptr};
            for (int c = 0; c < C; ++c)
                right.columns[c] = packed_ + ((size_t(direction) * V_ + v + c) * K_ + from) * L;
            right.prefetch = right.columns[0];
            T* to[MR];
            for (int r = 0; r < R; ++r) to[r] = places[r] + v * L;
            multiply_into(left, right, count, direction + piece == 0, to, E_ - v * L);
        }
    }

    const Shape& shape_;
    const Backward<T>* layers_;
    int D_;
    int K_;
    int E_;
    int V_;
    int pieces_;
    const T* packed_;
};

// All sums over tokens of a call, in as many shares as there are threads.
template <class T>
class TokenSums {
   public:
    TokenSums(Gates gates, const Shape& shape, const Backward<T>* layers, int directions,
              const T* packed_inputs)
        : shape_(shape), D_(directions), has_inputs_(layers[0].dinput != nullptr),
          rows_(size_t(row_kinds) * shape.tokens() * directions), zeros_(shape.H),
          places_(has_inputs_ ? shape.tokens() : 0),
          inputs_(shape, layers, directions, gates.count * shape.H, packed_inputs) {
        std::fill(zeros_.data(), zeros_.data() + shape.H, T(0));
        for (int d = 0; d < D_; ++d)
            parameters_[d] = ParameterSums<T>(
                gates, shape, layers[d], rows_.slice(d, row_kinds * shape.tokens()), zeros_.data());
    }

    // How many numbers one thread needs room for: directions may differ in what is wanted of them.
    size_t workspace() const {
        const int units = vectors(vectors(shape_.H, L), shape_.threads) * L;
        size_t most = 0;
        for (int d = 0; d < D_; ++d) most = std::max(most, parameters_[d].workspace(units));
        return most;
    }

    void make(int share, T* workspace) const {
        int shares = shape_.threads;
        int V = vectors(shape_.H, L);
        int first = V * share / shares * L;
        int last = std::min(shape_.H, V * (share + 1) / shares * L);
        for (int d = 0; d < D_; ++d) parameters_[d].make(first, last, workspace);
        if (!has_inputs_) return;
        int64_t N = shape_.tokens();
        int64_t B = shape_.B;
        int64_t begin = N * share / shares;
        inputs_.make(begin, N * (share + 1) / shares, places_.slice(begin, 1));
        inputs_.clear(int(B * share / shares), int(B * (share + 1) / shares));
    }

   private:
    static constexpr int L = Lanes<T>::count;

    const Shape& shape_;
    int D_;
    bool has_inputs_;
    Buffer<const T*> rows_;
    Buffer<T> zeros_;
    Buffer<T*> places_;
    ParameterSums<T> parameters_[most_directions];
    InputSums<T> inputs_;
};

}  // namespace UNROLLED_ISA
