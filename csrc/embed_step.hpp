// Skip-gram and CBOW with negative sampling or a hierarchical softmax, a block of words at a time. Compiled
// once an instruction set.
//
// Within a block all products come before all updates: a block is one exact step of gradient descent on the sum
// of its losses. With negative sampling (Mikolov et al. 2013, arXiv:1310.4546) its words share their negatives,
// each weighted so that the expected gradient is that of k draws a pair (as Ji et al. 2016, arXiv:1604.04661,
// share them within a window).
#pragma once

#include <algorithm>
#include <utility>
#include <vector>

#include "embed_block.hpp"
#include "embed_draws.hpp"
#include "threads.hpp"

namespace UNROLLED_ISA {

using unrolled::EmbedRun;

// Words of a block as whole vectors of any instruction set.
constexpr int whole(int words) { return (words + 15) / 16 * 16; }

// A thread's share of a run: the words that it keeps, and room for a block.
struct Part {
    std::vector<int32_t> word, low, high;  // kept words; the kept words of its line are low … high
    std::vector<int64_t> place;            // in the corpus
    std::vector<int32_t> partner;          // output rows that a block's rows are multiplied with, one a prediction
    std::vector<float> factor;             // of each prediction: its sign, then what its rows are moved by
    std::vector<float> score;
    std::vector<int32_t> slot;       // (V): where each node of a tree was last among the partners
    std::vector<float> times, ones;  // of a node's decisions: how many, and how many turn to 1
    std::vector<const float*> coming;  // rows that the next block reads
    Rows around, around_change;  // of a block's words and their neighbours, where they are needed
    BlockRoom room;

    void make_room(const EmbedRun& run, int64_t words) {
        word.resize(words), low.resize(words), high.resize(words), place.resize(words);
        room.make(whole(run.words), run.shared, run.stride);
        if (run.code_starts) slot.assign(run.V, 0);
        if (!run.cbow) return;
        around.make(run.words + 2 * run.window, run.stride);
        around_change.make(1, run.stride);
    }
};

class Trainer {
   public:
    Trainer(const EmbedRun& run, Part& part, float* rows, uint8_t* touched)
        : run(run), part(part), room(part.room), input(rows), output(rows + run.inputs * run.stride),
          vectors(int(run.stride / lanes)), columns(run.code_starts ? run.words : whole(run.words)),
          touched_input(touched), touched_output(touched + run.inputs) {}

    UNROLLED_FLAT void lines(int64_t first, int64_t last) {
        kept = keep_words(first, last);
        if (kept) look_ahead(0);
        for (begin = 0; begin < kept; begin += run.words) {
            size = std::min(run.words, kept - begin);
            fetch_all();
            std::copy(next_negative, next_negative + run.shared, negative);
            if (begin + run.words < kept) look_ahead(begin + run.words);
            choose_windows();
            if (run.cbow) {
                cbow_block();
            } else {
                skip_gram_block();
            }
        }
    }

    double loss = 0;
    int64_t count = 0;

   private:
    const EmbedRun& run;
    Part& part;
    const BlockRoom& room;
    float *input, *output;
    const int vectors, columns;
    uint8_t *touched_input, *touched_output;
    size_t fetched = 0;                    // of the rows that are coming
    int kept = 0, begin = 0, size = 0;     // words, and those of the block
    int from[most_block], to[most_block];  // of each word's window, itself included
    int predictions[most_block + 1];       // the first of each word
    float weight[most_block];              // of each negative
    int32_t negative[most_block], next_negative[most_block];

    float* input_of(int64_t row) const { return input + row * run.stride; }
    float* output_of(int64_t row) const { return output + row * run.stride; }

    int keep_words(int64_t first, int64_t last) {
        int number = 0;
        for (int64_t line = first; line < last; ++line) {
            const int low = number;
            for (int64_t place = run.starts[line]; place < run.starts[line + 1]; ++place) {
                part.word[number] = run.ids[place];
                part.place[number] = place;
                part.low[number] = low;
                number += unrolled::uniform(unrolled::draw(run.key, 2 * place)) < run.keep[run.ids[place]];
            }
            std::fill(part.high.begin() + low, part.high.begin() + number, number - 1);
        }
        return number;
    }

    // Draws the negatives of the block that begins there, and notes the rows that it reads as the first.
    void look_ahead(int start) {
        part.coming.clear(), fetched = 0;
        const int inputs_ahead = run.cbow ? run.window : 0, outputs_ahead = run.window - inputs_ahead;
        note(start, inputs_ahead, [&](int32_t word) {
            each_input(word, [&](int64_t row) { part.coming.push_back(input_of(row)); });
        });
        note(start, outputs_ahead, [&](int32_t word) {
            each_output(word, [&](int64_t row) { part.coming.push_back(output_of(row)); });
        });
        if (run.code_starts) return;
        const uint64_t first = uint64_t(part.place[start]) * uint64_t(run.shared);
        for (int j = 0; j < run.shared; ++j) next_negative[j] = int32_t(unrolled::noise(run, first + j));
        for (int j = 0; j < run.shared; ++j) part.coming.push_back(output_of(next_negative[j]));
    }

    // The words of a block and so many beyond it, but for those that the block before it has noted.
    template <class F>
    void note(int start, int beyond, F f) const {
        const int end = std::min(kept, start + run.words + beyond);
        for (int at = start ? start + beyond : 0; at < end; ++at) f(part.word[at]);
    }

    // Rows of the next block are fetched one by one, between the work on this one: many at once wait for each other.
    void fetch() {
        if (fetched < part.coming.size()) prefetch_row(part.coming[fetched++], run.stride);
    }

    void fetch_all() {
        while (fetched < part.coming.size()) fetch();
    }

    void choose_windows() {
        for (int i = 0; i < size; ++i) {
            const int at = begin + i;
            const uint64_t drawn = unrolled::draw(run.key, 2 * part.place[at] + 1);
            const int reach = 1 + int(unrolled::below(drawn, run.window));
            from[i] = std::max(part.low[at], at - reach);
            to[i] = std::min(part.high[at], at + reach);
        }
    }

    // Rows and their changes are zeros beyond the last word, and negatives weigh nothing there.
    void clear() {
        std::fill(room.change[0], room.change[columns], 0.0f);
        std::fill(room.rows[size], room.rows[columns], 0.0f);
        std::fill(weight, weight + columns, 0.0f);
        part.partner.clear(), part.factor.clear(), part.times.clear(), part.ones.clear();
    }

    template <class F>
    void each_input(int32_t word, F f) const {
        f(word);
        if (!run.gram_starts) return;
        for (int64_t k = run.gram_starts[word]; k < run.gram_starts[word + 1]; ++k) f(run.grams[k]);
    }

    template <class F>
    void each_output(int32_t word, F f) const {
        if (!run.code_starts) return f(word);
        for (int64_t k = run.code_starts[word]; k < run.code_starts[word + 1]; ++k) f(run.nodes[k]);
    }

    int inputs_of(int32_t word) const {
        return run.gram_starts ? 1 + int(run.gram_starts[word + 1] - run.gram_starts[word]) : 1;
    }

    // The vector of a word: the mean of its rows.
    void read_vector(int32_t word, float* vector) const {
        copy_row(vector, input_of(word), vectors);
        if (!run.gram_starts) return;
        each_input(word, [&](int64_t row) {
            if (row != word) add_scaled(vector, input_of(row), 1.0f, vectors);
        });
        scale_row(vector, 1.0f / inputs_of(word), vectors);
    }

    // Each of its rows moves as it does (so does fastText): then the mean moves as far as a row of its own.
    void change_vector(int32_t word, const float* change) const {
        each_input(word, [&](int64_t row) {
            add_scaled(input_of(row), change, 1.0f, vectors);
            touched_input[row] = 1;
        });
    }

    // What predicts a word: its own row, or the decisions on the way to it. Predictions from the same row of the
    // block begin at `first`.
    void add_target(int first, int32_t word) {
        if (!run.code_starts) return add_partner(word, 1.0f);
        for (int64_t k = run.code_starts[word]; k < run.code_starts[word + 1]; ++k)
            add_decision(first, run.nodes[k], run.turns[k]);
    }

    // Ways begin alike: what several words of a window ask of a node is asked once, and counted.
    void add_decision(int first, int32_t node, float turn) {
        const int32_t k = part.slot[node];
        if (k >= first && k < int(part.partner.size()) && part.partner[k] == node) {
            part.times[k] += 1.0f, part.ones[k] += turn;
            return;
        }
        part.slot[node] = int32_t(part.partner.size());
        part.partner.push_back(node);
        part.times.push_back(1.0f), part.ones.push_back(turn);
    }

    void add_partner(int32_t row, float sign) {
        part.partner.push_back(row);
        part.factor.push_back(sign);
    }

    void multiply_partners() {
        Vec<float> products[lanes] = {};
        int k = 0;
        for (int i = 0; i < size; ++i)
            for (; k < predictions[i + 1]; ++k) {
                products[k % lanes] = multiply_rows(room.rows[i], output_of(part.partner[k]), vectors);
                if (k % lanes == lanes - 1) store(&part.score[k - (lanes - 1)], sums(products));
            }
        if (k % lanes) store(&part.score[k / lanes * lanes], sums(products));
    }

    // From signs to what each row is moved by along its partner, sign · rate · σ(−sign · score), and the loss.
    void score_partners() {
        constexpr int at_once = 64;  // factors of a product of at most 2 each
        const int number = predictions[size], padded = (number + lanes - 1) / lanes * lanes;
        part.factor.resize(padded);
        part.score.resize(padded);
        multiply_partners();
        for (int k = number; k < padded; ++k) part.factor[k] = 1.0f, part.score[k] = 1000.0f;
        Vec<float> nats{};
        for (int start = 0; start < padded; start += at_once * lanes) {
            Losses losses;
            for (int k = start; k < std::min(padded, start + at_once * lanes); k += lanes) {
                const Vec<float> sign = load(&part.factor[k]), score = load(&part.score[k]);
                store(&part.factor[k], (run.rate * sign) * losses.wrong((0.0f - sign) * score));
            }
            nats += losses.nats();
        }
        loss += sum<float>(nats);
    }

    // The same of decisions, n at a node, of which `ones` turn to 1: a row is moved by rate · (ones − n σ(score)),
    // and what they cost is n log(1 + e^score) − ones · score.
    void score_decisions() {
        const int number = predictions[size], padded = (number + lanes - 1) / lanes * lanes;
        for (auto* each : {&part.factor, &part.score, &part.times, &part.ones}) each->resize(padded);
        multiply_partners();
        for (int k = number; k < padded; ++k) part.score[k] = part.times[k] = part.ones[k] = 0.0f;
        Vec<float> nats{};
        for (int k = 0; k < padded; k += lanes) {
            Losses losses;
            const Vec<float> score = load(&part.score[k]), times = load(&part.times[k]), ones = load(&part.ones[k]);
            store(&part.factor[k], run.rate * (ones - times * losses.wrong(score)));
            nats += times * losses.nats() - ones * score;
        }
        loss += sum<float>(nats);
    }

    void change_by_partners() {
        for (int i = 0; i < size; ++i) {
            const int first = predictions[i];
            fetch();
            add_rows(room.change[i], output, run.stride, &part.partner[first], &part.factor[first],
                     predictions[i + 1] - first);
        }
    }

    void change_partners() {
        for (int i = 0; i < size; ++i)
            for (int k = predictions[i]; k < predictions[i + 1]; ++k) {
                add_scaled(output_of(part.partner[k]), room.rows[i], part.factor[k], vectors);
                fetch();
                touched_output[part.partner[k]] = 1;
            }
    }

    void negative_block() {
        float* places[most_block];
        for (int j = 0; j < run.shared; ++j) {
            places[j] = output_of(negative[j]);
            fetch();
            copy_row(room.noise[j], places[j], vectors);
            touched_output[negative[j]] = 1;
        }
        loss += score_negatives(room, weight, columns, run.shared, run.stride, run.dimension, run.rate);
        change_rows(room, columns, run.shared, run.stride);
        change_negatives(room, places, columns, size, run.shared, run.stride);
    }

    // All products of the block's rows, then the changes of the output matrix; those of the rows are kept.
    void predict() {
        predictions[size] = int(part.partner.size());
        if (!predictions[size]) return;
        run.code_starts ? score_decisions() : score_partners();
        change_by_partners();
        if (!run.code_starts) negative_block();
        change_partners();
    }

    void skip_gram_block() {
        clear();
        for (int i = 0; i < size; ++i) {
            read_vector(part.word[begin + i], room.rows[i]);
            weight[i] = (to[i] - from[i]) * run.negatives / run.shared;
            count += to[i] - from[i];
            predictions[i] = int(part.partner.size());
            for (int p = from[i]; p <= to[i]; ++p)
                if (p != begin + i) add_target(predictions[i], part.word[p]);
        }
        predict();
        for (int i = 0; i < size; ++i) change_vector(part.word[begin + i], room.change[i]);
    }

    // A word that stands alone in its line has no neighbours to be predicted from.
    void cbow_block() {
        clear();
        const int low = *std::min_element(from, from + size), high = *std::max_element(to, to + size);
        for (int p = low; p <= high; ++p) read_vector(part.word[p], part.around[p - low]);
        for (int i = 0; i < size; ++i) {
            average_window(i, low);
            predictions[i] = int(part.partner.size());
            if (to[i] > from[i]) add_target(predictions[i], part.word[begin + i]);
        }
        predict();
        for (int p = low; p <= high; ++p) {
            sum_changes(p);
            change_vector(part.word[p], part.around_change.data);
        }
    }

    // Each neighbour moves as the mean does, undivided (so do word2vec and fastText).
    void sum_changes(int p) {
        const int first = std::max(0, p - run.window - begin), last = std::min(size - 1, p + run.window - begin);
        each_chunk(vectors, [&](auto chunk, int at) {
            constexpr int W = decltype(chunk)::value;
            Vec<float> total[W] = {};
            for (int i = first; i <= last; ++i) {
                if (p < from[i] || p > to[i] || p == begin + i) continue;
#pragma GCC unroll 4
                for (int v = 0; v < W; ++v) total[v] += load(room.change[i] + at + v * lanes);
            }
            for (int v = 0; v < W; ++v) store(part.around_change.data + at + v * lanes, total[v]);
        });
    }

    void average_window(int i, int low) {
        const int neighbours = to[i] - from[i];
        const float share = neighbours ? 1.0f / neighbours : 0.0f;
        each_chunk(vectors, [&](auto chunk, int at) {
            constexpr int W = decltype(chunk)::value;
            Vec<float> total[W] = {};
            for (int p = from[i]; p <= to[i]; ++p) {
                if (p == begin + i) continue;
#pragma GCC unroll 4
                for (int v = 0; v < W; ++v) total[v] += load(part.around[p - low] + at + v * lanes);
            }
            for (int v = 0; v < W; ++v) store(room.rows[i] + at + v * lanes, share * total[v]);
        });
        weight[i] = neighbours ? run.negatives / run.shared : 0.0f;
        count += neighbours > 0;
    }
};

// own += Σ (copy − own), the copies so far apart.
UNROLLED_INLINE void add_changes(float* own, const float* copies, size_t apart, int parts, int vectors) {
    for (int v = 0; v < vectors * lanes; v += lanes) {
        const Vec<float> before = load(own + v);
        Vec<float> after = before;
        for (int part = 0; part < parts; ++part) after += load(copies + part * apart + v) - before;
        store(own + v, after);
    }
}

// rows += Σ (copy − rows), those that any part has touched; the copies follow. What one part alone has touched
// is as that part has left it. Rows of frequent words, which are touched most, stand together: threads take turns.
inline void join_copies(const EmbedRun& run) {
    const int64_t rows = run.inputs + run.V;
    const size_t matrix = size_t(rows) * run.stride;
    const int vectors = int(run.stride / lanes);
#pragma omp parallel for schedule(static, 256) num_threads(run.parts)
    for (int64_t row = 0; row < rows; ++row) {
        int touched = 0, last = 0;
        for (int part = 0; part < run.parts; ++part) {
            uint8_t& flag = run.touched[size_t(part) * rows + row];
            if (flag) ++touched, last = part, flag = 0;
        }
        if (!touched || !run.copies) continue;
        float* own = run.rows + row * run.stride;
        auto copy = [&](int part) { return run.copies + part * matrix + row * run.stride; };
        if (touched == 1) {
            copy_row(own, copy(last), vectors);
        } else {
            add_changes(own, copy(0), matrix, run.parts, vectors);
        }
        for (int part = 0; part < run.parts; ++part)
            if (touched > 1 || part != last) copy_row(copy(part), own, vectors);
    }
}

// The first line of a part: lines are shared out by their words.
inline int64_t part_begin(const EmbedRun& run, int part) {
    const int64_t first = run.starts[run.first_line], words = run.starts[run.last_line] - first;
    const int64_t* begin = run.starts + run.first_line;
    const int64_t* end = run.starts + run.last_line;
    return run.first_line + (std::lower_bound(begin, end, first + words * part / run.parts) - begin);
}

inline void embed_train(const EmbedRun& run) {
    std::vector<int64_t> bounds(run.parts + 1);
    for (int part = 0; part < run.parts; ++part) bounds[part] = part_begin(run, part);
    bounds[run.parts] = run.last_line;
    std::vector<Part> parts(run.parts);
    for (int part = 0; part < run.parts; ++part)
        parts[part].make_room(run, run.starts[bounds[part + 1]] - run.starts[bounds[part]]);
    const size_t matrix = size_t(run.inputs + run.V) * run.stride;
#pragma omp parallel for schedule(static, 1) num_threads(run.parts)
    for (int part = 0; part < run.parts; ++part) {
        float* rows = run.copies ? run.copies + part * matrix : run.rows;
        Trainer trainer(run, parts[part], rows, run.touched + size_t(part) * (run.inputs + run.V));
        trainer.lines(bounds[part], bounds[part + 1]);
        run.loss[part] = trainer.loss;
        run.count[part] = trainer.count;
    }
    join_copies(run);
}

}  // namespace UNROLLED_ISA
