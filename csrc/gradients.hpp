// The gradients of the weights, the biases and the inputs: sums over all tokens, of products of what the
// steps back have left with what the steps forth have kept. They need no order in time, so threads split
// the units (weights) or the tokens (inputs), and each sum runs in the same order whoever makes it.
#pragma once

#include "schedule.hpp"

namespace UNROLLED_ISA {

constexpr int64_t most_tokens = 1024;  // whose rows are used for all units before the next

// Rows of numbers, one a token, which a gate's gradients are multiplied by: x, h before the step, …
template <class T>
struct Side {
    const T* const* rows = nullptr;
    int width = 0;
};

// What is to be made of the gradients (N, H) of one gate, or of U_n h + b.
template <class T>
struct Term {
    const T* left;  // token n at left + n · step
    int64_t step;
    T* products[3];  // (H, width)  Σ_n left[n]ᵀ · side[n], of each side; null: not wanted
    struct Sum {
        const T* const* factors;  // (H,) a token; null: 1
        T* out;                   // (H,)  Σ_n left[n] ⊙ factors[n]
    } sums[2];
};

// The rows that tokens have: x, h before the step, GRU: r ⊙ h; and for peepholes c after and before it.
enum Kept : int { X, BEFORE, INNER, sides, CELLS = sides, CELLS_BEFORE, kinds };

// All that the gradients of one direction's parameters are summed from.
template <class T>
class Parameters {
   public:
    Parameters() = default;

    // rows: room for those of all kinds and tokens; zeros (H,): a first state that is not given.
    Parameters(Cell cell, const Shape& shape, const Backward<T>& at, const T** rows_room, const T* zeros)
        : H_(shape.H), N_(shape.tokens()), rows_(rows_room) {
        find_rows(cell, shape, at, zeros);
        bool peeks = cell.kind == LSTM && cell.second != NO_PEEPHOLE;
        bool full = peeks && cell.second == PEEPHOLE_FULL;
        bool resets = cell.kind == GRU && cell.first != RESET_NONE;
        bool after = resets && cell.first == RESET_AFTER;
        auto part = [](T* of, int64_t numbers) { return of ? of + numbers : nullptr; };
        for (int g = 0; g < cell.gates(); ++g) {
            T* by_state = part(at.dweights, int64_t(g) * H_ * H_);
            bool apart = resets && g == 2;  // not multiplied by h itself
            Term<T>& term = terms_[count_++];
            term = {at.dgates + g * H_, at.gate_step, {}, {}};
            term.products[X] = part(at.dinput_weights, g * H_ * at.E);
            if (!apart) term.products[BEFORE] = by_state;
            if (apart && !after) term.products[INNER] = by_state;
            term.sums[0] = {nullptr, part(at.dinput_bias, g * H_)};
            if (after && !apart) term.sums[1] = {nullptr, part(at.dstate_bias, g * H_)};
            if (full && g < 2) term.sums[1] = {rows(CELLS_BEFORE), part(at.dpeephole, g * H_)};
            if (peeks && g == 3) term.sums[1] = {rows(CELLS), part(at.dpeephole, full ? 2 * H_ : 0)};
            if (apart && after)
                terms_[count_++] = {at.dinner, at.inner_step, {nullptr, by_state, nullptr},
                                    {{nullptr, part(at.dstate_bias, g * H_)}, {}}};
        }
        sides_[X] = {rows(X), int(at.E)};
        sides_[BEFORE] = {rows(BEFORE), H_};
        sides_[INNER] = {rows(INNER), H_};
    }

    // How many numbers `sum` needs room for, of so many units.
    size_t workspace(int units) const { return rights() + size_t(units) * at_once() + most_rows; }

    // Those of the units first … last − 1, where first is the beginning of a vector.
    UNROLLED_FLAT void sum(int first, int last, T* workspace) const {
        if (first >= last) return;
        int64_t from = 0;
        do {  // once, where there is no token
            Block block{from, int(std::min(at_once(), N_ - from)), first, last};
            add(block, workspace, workspace + rights());
            from += most_tokens;
        } while (from < N_);
    }

   private:
    static constexpr int L = Lanes<T>::count;

    // Some tokens and units.
    struct Block {
        int64_t from;
        int tokens, first, last;
    };

    int64_t at_once() const { return std::min(N_, most_tokens); }

    // Numbers of the rows of all sides, packed.
    size_t rights() const {
        size_t all = 0;
        for (int s = 0; s < sides; ++s) all += wanted(s) ? vectors(sides_[s].width, L) * L : 0;
        return all * (at_once() + 1);
    }

    const T** rows(int which) const { return rows_ + which * N_; }

    bool wanted(int side) const {
        for (int i = 0; i < count_; ++i)
            if (terms_[i].products[side]) return true;
        return false;
    }

    void find_rows(Cell cell, const Shape& shape, const Backward<T>& at, const T* zeros) {
        bool cells = cell.kind == LSTM && cell.second != NO_PEEPHOLE;
        for (int row = 0; row < shape.B; ++row)
            for (int64_t t = 0; t < shape.lengths[row]; ++t) {
                int64_t n = shape.offsets[row] + t;
                rows(X)[n] = at.input + row * at.x_row + t * at.x_step;
                rows(BEFORE)[n] = at.before + n * H_;
                if (at.inner) rows(INNER)[n] = at.inner + n * H_;
                if (!cells) continue;
                bool begins = t == (at.reverse ? shape.lengths[row] - 1 : 0);
                rows(CELLS)[n] = at.cells + n * H_;
                const T* first = at.first_c ? at.first_c + int64_t(row) * H_ : zeros;
                rows(CELLS_BEFORE)[n] =
                    begins ? first : at.cells + (n + (at.reverse ? 1 : -1)) * H_;
            }
    }

    // What a block adds to all sums; right and left: room for its rows, packed.
    void add(const Block& block, T* right, T* left) const {
        const T* columns[sides];
        for (int s = 0; s < sides; ++s) {
            columns[s] = right;
            if (wanted(s)) right = pack_rows(sides_[s], block, right);
        }
        for (int i = 0; i < count_; ++i) {
            const Term<T>& term = terms_[i];
            for (const auto& sum : term.sums)
                if (sum.out) add_up(term, sum, block);
            if (term.products[X] || term.products[BEFORE] || term.products[INNER])
                pack_left(term, block, left);
            for (int s = 0; s < sides; ++s)
                if (term.products[s])
                    multiply(block, left, columns[s], sides_[s].width, term.products[s]);
        }
    }

    // The rows of some tokens as columns, one vector wide. Gives where the next ones may begin.
    T* pack_rows(const Side<T>& side, const Block& block, T* packed) const {
        int V = vectors(side.width, L);
        for (int k = 0; k < block.tokens; ++k)
            for (int v = 0; v < V; ++v)
                store(packed + v * apart(block) + k * L,
                      load(side.rows[block.from + k] + v * L, side.width - v * L));
        return packed + V * apart(block);
    }

    // How far columns are apart: not so that all of a token lie in the same place of the cache.
    static size_t apart(const Block& block) { return size_t(block.tokens + 1) * L; }

    // The gradients of some tokens and units, tile by tile: k after k, the units of a tile side by side.
    void pack_left(const Term<T>& term, const Block& block, T* packed) const {
        for (int unit = block.first, R; unit < block.last; unit += R) {
            R = next_tile(block.last - unit, most_columns);
            const T* source = term.left + block.from * term.step + unit;
            for (int k = 0; k < block.tokens; ++k, source += term.step, packed += R)
                std::memcpy(packed, source, most_rows * sizeof(T));  // the next one mends what is too much
        }
    }

    void add_up(const Term<T>& term, const typename Term<T>::Sum& sum, const Block& block) const {
        for (int unit = block.first; unit < block.last; unit += L) {
            int lanes = std::min(L, block.last - unit);
            Vec<T> total{};
            for (int64_t n = block.from; n < block.from + block.tokens; ++n) {
                Vec<T> value = load(term.left + n * term.step + unit, lanes);
                if (sum.factors) value *= load(sum.factors[n] + unit, lanes);
                total += value;
            }
            store(sum.out + unit, block.from ? load(sum.out + unit, lanes) + total : total, lanes);
        }
    }

    // out[unit] (+)= Σ_k left[k][unit] · columns[k]
    void multiply(const Block& block, const T* left, const T* columns, int width, T* out) const {
        for (int v = 0, C; v < vectors(width, L); v += C) {
            C = std::min(most_columns, vectors(width, L) - v);
            Columns<T> some{{}, C, columns};
            for (int c = 0; c < C; ++c) some.at[c] = columns + (v + c) * apart(block);
            const T* panel = left;
            for (int unit = block.first, R; unit < block.last; unit += R) {
                R = next_tile(block.last - unit, most_columns);
                Left<T> rows{{}, R, size_t(R)};
                T* to[most_rows];
                for (int r = 0; r < R; ++r) {
                    rows.at[r] = panel + r;
                    to[r] = out + size_t(unit + r) * width + v * L;
                }
                add_product(rows, some, block.tokens, block.from == 0, to, width - v * L);
                panel += size_t(block.tokens) * R;
            }
        }
    }

    int H_ = 0;
    int64_t N_ = 0;
    const T** rows_ = nullptr;
    Term<T> terms_[4] = {};
    int count_ = 0;
    Side<T> sides_[sides];
};

// The gradients of x: those of the gates times W, added up over all directions.
template <class T>
class Inputs {
   public:
    Inputs(const Shape& shape, const Backward<T>* at, int directions, int K, const T* packed)
        : shape_(shape), at_(at), D_(directions), K_(K), E_(int(at[0].E)), V_(vectors(E_, L)),
          pieces_(int(std::max<size_t>(1, size_t(K) * E_ * sizeof(T) / (shape.cache / 2)))),
          packed_(packed) {}

    // Those of the tokens first … last − 1; places: room for as many.
    UNROLLED_FLAT void sum(int64_t first, int64_t last, T** places) const {
        find_places(first, last, places);
        for (int piece = 0; piece < D_ * pieces_; ++piece)
            for (int64_t n = first; n < last;) {
                int R = next_tile(last - n, most_columns);
                multiply(piece / pieces_, piece % pieces_, n, R, places + n - first);
                n += R;
            }
    }

    // 0 in the padding of the rows first … last − 1.
    void clear(int first, int last) const {
        for (int row = first; row < last; ++row) {
            T* end = at_[0].dinput + (int64_t(row) + 1) * shape_.steps * E_;
            std::fill(end - (shape_.steps - shape_.lengths[row]) * E_, end, T(0));
        }
    }

   private:
    static constexpr int L = Lanes<T>::count;

    void find_places(int64_t first, int64_t last, T** places) const {
        for (int row = 0; row < shape_.B; ++row) {
            int64_t begins = shape_.offsets[row], ends = begins + shape_.lengths[row];
            for (int64_t n = std::max(first, begins); n < std::min(last, ends); ++n)
                places[n - first] = at_[0].dinput + (row * shape_.steps + n - begins) * E_;
        }
    }

    // A direction's part, from some of the gates' units: as much of W as stays in the cache.
    void multiply(int direction, int piece, int64_t n, int R, T* const* places) const {
        const Backward<T>& at = at_[direction];
        int from = int(int64_t(K_) * piece / pieces_);
        int count = int(int64_t(K_) * (piece + 1) / pieces_) - from;
        Left<T> left{{}, R};
        for (int r = 0; r < R; ++r) left.at[r] = at.dgates + (n + r) * at.gate_step + from;
        for (int v = 0, C; v < V_; v += C) {
            C = std::min(most_columns, V_ - v);
            Columns<T> columns{{}, C, nullptr};
            for (int c = 0; c < C; ++c)
                columns.at[c] = packed_ + ((size_t(direction) * V_ + v + c) * K_ + from) * L;
            columns.ahead = columns.at[0];
            T* to[most_rows];
            for (int r = 0; r < R; ++r) to[r] = places[r] + v * L;
            add_product(left, columns, count, direction + piece == 0, to, E_ - v * L);
        }
    }

    const Shape& shape_;
    const Backward<T>* at_;
    int D_, K_, E_, V_, pieces_;
    const T* packed_;
};

// All sums over tokens of a call, in as many shares as there are threads.
template <class T>
class Sums {
   public:
    Sums(Cell cell, const Shape& shape, const Backward<T>* at, int directions, const T* packed_inputs)
        : shape_(shape), D_(directions), has_inputs_(at[0].dinput != nullptr),
          rows_(size_t(kinds) * shape.tokens() * directions), zeros_(shape.H),
          places_(has_inputs_ ? shape.tokens() : 0),
          inputs_(shape, at, directions, cell.gates() * shape.H, packed_inputs) {
        std::fill(zeros_.data(), zeros_.data() + shape.H, T(0));
        for (int d = 0; d < D_; ++d)
            parameters_[d] = Parameters<T>(cell, shape, at[d], rows_.slice(d, kinds * shape.tokens()),
                                           zeros_.data());
    }

    // How many numbers one thread needs room for.
    size_t workspace() const {
        return parameters_[0].workspace(vectors(vectors(shape_.H, L), shape_.threads) * L);
    }

    void make(int share, T* workspace) const {
        int V = vectors(shape_.H, L), shares = shape_.threads;
        int from = V * share / shares * L, to = std::min(shape_.H, V * (share + 1) / shares * L);
        for (int d = 0; d < D_; ++d) parameters_[d].sum(from, to, workspace);
        if (!has_inputs_) return;
        int64_t N = shape_.tokens(), B = shape_.B;
        int64_t begin = N * share / shares;
        inputs_.sum(begin, N * (share + 1) / shares, places_.slice(begin, 1));
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
    Parameters<T> parameters_[most_directions];
    Inputs<T> inputs_;
};

}  // namespace UNROLLED_ISA
