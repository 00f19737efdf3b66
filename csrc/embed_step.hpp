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

#include "buffer.hpp"
#include "embed_draws.hpp"
#include "simd.hpp"
#include "threads.hpp"

namespace UNROLLED_ISA {

using unrolled::EmbedRun;
constexpr int lanes = Lanes<float>::count;
constexpr int most_block = 64;

// Calls f(width, at) for the vectors of a row, so many at a time as registers hold.
template <class F>
UNROLLED_INLINE void each_chunk(int vectors, F f) {
    int at = 0;
    for (; at + 8 <= vectors; at += 8) f(std::integral_constant<int, 8>{}, at * lanes);
    if (vectors & 4) f(std::integral_constant<int, 4>{}, at * lanes), at += 4;
    if (vectors & 2) f(std::integral_constant<int, 2>{}, at * lanes), at += 2;
    if (vectors & 1) f(std::integral_constant<int, 1>{}, at * lanes);
}

UNROLLED_INLINE float dot(const float* a, const float* b, int vectors) {
    Vec<float> even{}, odd{};
    int v = 0;
    for (; v + 2 <= vectors; v += 2) {
        even += load(a + v * lanes) * load(b + v * lanes);
        odd += load(a + (v + 1) * lanes) * load(b + (v + 1) * lanes);
    }
    if (v < vectors) even += load(a + v * lanes) * load(b + v * lanes);
    return sum<float>(even + odd);
}

// to += factor · row
UNROLLED_INLINE void add_scaled(float* to, const float* row, float factor, int vectors) {
    for (int v = 0; v < vectors; ++v)
        store(to + v * lanes, load(to + v * lanes) + factor * load(row + v * lanes));
}

// log(1 + e^x), which is −log σ(−x).
UNROLLED_INLINE Vec<float> softplus(Vec<float> x) {
    Vec<float> above = x > 0.0f ? x : Vec<float>{}, below = x > 0.0f ? 0.0f - x : x;
    Vec<float> y = above + vlog<float>(1.0f + vexp<float>(below));
    return x != x ? x : y;
}

// A thread's share of a run: the words that it keeps, and room for a block.
struct Part {
    std::vector<int32_t> word, low, high;  // kept words; the kept words of its line are low … high
    std::vector<int64_t> place;            // in the corpus
    std::vector<float> memory;
    float *rows, *change, *transposed, *gradient, *band;  // (block, stride) twice, …, (block, 2 window + 1)

    void make_room(const EmbedRun& run, int64_t words) {
        const size_t block = run.shared, stride = run.stride, width = 2 * run.window + 1 + lanes;
        word.resize(words), low.resize(words), high.resize(words), place.resize(words);
        memory.assign(3 * block * stride + block * block + block * width + 16, 0.0f);
        auto base = reinterpret_cast<uintptr_t>(memory.data());
        rows = memory.data() + (64 - base % 64) % 64 / sizeof(float);
        change = rows + block * stride;
        transposed = change + block * stride;
        gradient = transposed + block * stride;
        band = gradient + block * block;
    }
};

class Trainer {
   public:
    Trainer(const EmbedRun& run, Part& part, int index, float* input, float* output)
        : run(run), part(part), input(input), output(output), vectors(int(run.stride / lanes)),
          width(2 * run.window + 1), touched_input(run.touched + size_t(2 * index) * run.V),
          touched_output(touched_input + run.V) {}

    UNROLLED_FLAT void lines(int64_t first, int64_t last) {
        const int kept = keep_words(first, last);
        for (int start = 0; start < kept; start += run.words) {
            begin = start;
            size = std::min(run.words, kept - start);
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
    float *input, *output;
    const int vectors, width;
    uint8_t *touched_input, *touched_output;
    int begin = 0, size = 0;                    // of the block
    int from[most_block], to[most_block];       // of each word's window, itself included
    const float* row[most_block];               // that scores are taken of
    float weight[most_block];                   // of each negative
    int32_t negative[most_block];

    float* input_of(int32_t word) const { return input + size_t(word) * run.stride; }
    float* output_of(int32_t word) const { return output + size_t(word) * run.stride; }

    int keep_words(int64_t first, int64_t last) {
        int kept = 0;
        for (int64_t line = first; line < last; ++line) {
            const int low = kept;
            for (int64_t place = run.starts[line]; place < run.starts[line + 1]; ++place) {
                const int32_t word = run.ids[place];
                if (unrolled::uniform(unrolled::draw(run.key, 2 * place)) >= run.keep[word]) continue;
                part.word[kept] = word;
                part.place[kept] = place;
                part.low[kept++] = low;
            }
            std::fill(part.high.begin() + low, part.high.begin() + kept, kept - 1);
        }
        return kept;
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

    void choose_negatives() {
        const uint64_t first = uint64_t(part.place[begin]) * uint64_t(run.shared);
        for (int j = 0; j < run.shared; ++j) negative[j] = int32_t(unrolled::noise(run, first + j));
    }

    // From scores to what each row is moved by along its partner, rate · σ(−s), and the loss.
    void positive_scores(float* scores, int number) {
        Vec<float> nats{};
        for (int k = 0; k < number; k += lanes) {
            Vec<float> s = load(scores + k), lost = softplus(0.0f - s);
            store(scores + k, run.rate * vsigmoid<float>(0.0f - s));
            for (int lane = 0; lane < lanes; ++lane)
                if (k + lane >= number) lost[lane] = 0.0f;
            nats += lost;
        }
        loss += sum<float>(nats);
    }

    // The block's rows against its negatives: scores, then what they change in the rows, then in the negatives.
    void negative_block() {
        transpose_negatives();
        score_negatives();
        change_rows();
        change_negatives();
    }

    void transpose_negatives() {
        for (int j = 0; j < run.shared; ++j) {
            const float* y = output_of(negative[j]);
            for (int d = 0; d < run.dimension; ++d) part.transposed[size_t(d) * run.shared + j] = y[d];
        }
    }

    void score_negatives() {
        constexpr int together = 8;
        for (int i = 0; i < size; i += together) {
            const int rest = std::min(together, size - i);
            const float* x[together];
            for (int k = 0; k < together; ++k) x[k] = row[i + std::min(k, rest - 1)];
            for (int j = 0; j < run.shared; j += lanes) {
                Vec<float> s[together] = {};
                for (int d = 0; d < run.dimension; ++d) {
                    const Vec<float> y = load(part.transposed + size_t(d) * run.shared + j);
#pragma GCC unroll 8
                    for (int k = 0; k < together; ++k) s[k] += x[k][d] * y;
                }
                for (int k = 0; k < rest; ++k) {
                    loss += weight[i + k] * sum<float>(softplus(s[k]));
                    store(part.gradient + (i + k) * run.shared + j,
                          (-run.rate * weight[i + k]) * vsigmoid<float>(s[k]));
                }
            }
        }
    }

    void change_rows() {
        for (int i = 0; i < size; i += 2) {
            const int other = std::min(i + 1, size - 1);
            const float *g = part.gradient + i * run.shared, *h = part.gradient + other * run.shared;
            float *to_first = part.change + i * run.stride, *to_second = part.change + other * run.stride;
            each_chunk(vectors, [&](auto chunk, int at) {
                constexpr int W = decltype(chunk)::value;
                Vec<float> a[W], b[W];
                for (int v = 0; v < W; ++v) {
                    a[v] = load(to_first + at + v * lanes);
                    b[v] = load(to_second + at + v * lanes);
                }
                for (int j = 0; j < run.shared; ++j) {
                    const float* y = output_of(negative[j]) + at;
#pragma GCC unroll 8
                    for (int v = 0; v < W; ++v) {
                        const Vec<float> value = load(y + v * lanes);
                        a[v] += g[j] * value;
                        b[v] += h[j] * value;
                    }
                }
                for (int v = 0; v < W; ++v) {
                    store(to_second + at + v * lanes, b[v]);
                    store(to_first + at + v * lanes, a[v]);
                }
            });
        }
    }

    void change_negatives() {
        for (int j = 0; j < run.shared; j += 2) {
            float *first = output_of(negative[j]), *second = output_of(negative[j + 1]);
            each_chunk(vectors, [&](auto chunk, int at) {
                constexpr int W = decltype(chunk)::value;
                Vec<float> a[W] = {}, b[W] = {};
                for (int i = 0; i < size; ++i) {
                    const float* x = row[i] + at;
                    const float g = part.gradient[i * run.shared + j], h = part.gradient[i * run.shared + j + 1];
#pragma GCC unroll 8
                    for (int v = 0; v < W; ++v) {
                        const Vec<float> value = load(x + v * lanes);
                        a[v] += g * value;
                        b[v] += h * value;
                    }
                }
                for (int v = 0; v < W; ++v) store(first + at + v * lanes, load(first + at + v * lanes) + a[v]);
                for (int v = 0; v < W; ++v) store(second + at + v * lanes, load(second + at + v * lanes) + b[v]);
            });
            touched_output[negative[j]] = touched_output[negative[j + 1]] = 1;
        }
    }

    // The words of a path through the tree, from a row: scores, loss, change of the row. The moves of the nodes
    // are kept, to be made when the block is done.
    void walk(const float* x, float* change, int32_t word, std::vector<std::pair<int32_t, float>>& moves) {
        for (int64_t k = run.code_starts[word]; k < run.code_starts[word + 1]; ++k) {
            const float* y = output_of(run.nodes[k]);
            const float sign = run.turns[k] ? 1.0f : -1.0f;
            float score[lanes] = {sign * dot(x, y, vectors)};
            positive_scores(score, 1);
            add_scaled(change, y, sign * score[0], vectors);
            moves.emplace_back(run.nodes[k], sign * score[0]);
        }
    }

    void clear_changes() { std::fill(part.change, part.change + size_t(size) * run.stride, 0.0f); }

    void skip_gram_block() {
        choose_windows();
        clear_changes();
        for (int i = 0; i < size; ++i) {
            row[i] = input_of(part.word[begin + i]);
            const int pairs = to[i] - from[i];
            weight[i] = pairs * run.negatives / run.shared;
            count += pairs;
        }
        if (run.code_starts) {
            tree_pairs();
        } else {
            score_windows();
            choose_negatives();
            negative_block();
            change_windows();
        }
        for (int i = 0; i < size; ++i) {
            const int32_t word = part.word[begin + i];
            add_scaled(input_of(word), part.change + i * run.stride, 1.0f, vectors);
            touched_input[word] = 1;
        }
    }

    // Each word with each of its window; band[i][p − i + window] is what position p's row is moved by.
    void score_windows() {
        alignas(64) float scores[2 * 128 + lanes];
        for (int i = 0; i < size; ++i) {
            const int at = begin + i;
            float* band = part.band + size_t(i) * width;
            std::fill(band, band + width, 0.0f);
            int number = 0;
            for (int p = from[i]; p <= to[i]; ++p)
                if (p != at) scores[number++] = dot(row[i], output_of(part.word[p]), vectors);
            positive_scores(scores, number);
            number = 0;
            for (int p = from[i]; p <= to[i]; ++p) {
                if (p == at) continue;
                band[p - at + run.window] = scores[number];
                add_scaled(part.change + i * run.stride, output_of(part.word[p]), scores[number++], vectors);
            }
        }
    }

    void change_windows() {
        const int first = std::max(0, begin - run.window), last = begin + size - 1 + run.window;
        for (int p = first; p <= last; ++p) {
            const int low = std::max(0, p - run.window - begin), high = std::min(size - 1, p + run.window - begin);
            float* y = nullptr;
            for (int i = low; i <= high; ++i) {
                const float factor = part.band[size_t(i) * width + (p - begin - i) + run.window];
                if (factor == 0.0f) continue;
                if (!y) touched_output[part.word[p]] = 1, y = output_of(part.word[p]);
                add_scaled(y, row[i], factor, vectors);
            }
        }
    }

    void tree_pairs() {
        static thread_local std::vector<std::pair<int32_t, float>> moves;
        for (int i = 0; i < size; ++i) {
            moves.clear();
            for (int p = from[i]; p <= to[i]; ++p)
                if (p != begin + i) walk(row[i], part.change + i * run.stride, part.word[p], moves);
            move_nodes(row[i], moves);
        }
    }

    void move_nodes(const float* x, const std::vector<std::pair<int32_t, float>>& moves) {
        for (const auto& [node, factor] : moves) {
            add_scaled(output_of(node), x, factor, vectors);
            touched_output[node] = 1;
        }
    }

    void cbow_block() {
        choose_windows();
        average_windows();
        clear_changes();
        if (run.code_starts) {
            tree_centres();
        } else {
            alignas(64) float scores[most_block + lanes];
            for (int i = 0; i < size; ++i)
                scores[i] = dot(row[i], output_of(part.word[begin + i]), vectors);
            score_centres(scores);
            choose_negatives();
            negative_block();
            for (int i = 0; i < size; ++i) {
                if (weight[i] == 0.0f) continue;
                add_scaled(output_of(part.word[begin + i]), row[i], scores[i], vectors);
                touched_output[part.word[begin + i]] = 1;
            }
        }
        for (int i = 0; i < size; ++i)
            for (int p = from[i]; p <= to[i]; ++p) {
                if (p == begin + i) continue;
                add_scaled(input_of(part.word[p]), part.change + i * run.stride, 1.0f / (to[i] - from[i]), vectors);
                touched_input[part.word[p]] = 1;
            }
    }

    void average_windows() {
        for (int i = 0; i < size; ++i) {
            float* mean = part.rows + i * run.stride;
            std::fill(mean, mean + run.stride, 0.0f);
            const int neighbours = to[i] - from[i];
            for (int p = from[i]; p <= to[i]; ++p)
                if (p != begin + i) add_scaled(mean, input_of(part.word[p]), 1.0f / neighbours, vectors);
            row[i] = mean;
            weight[i] = neighbours ? run.negatives / run.shared : 0.0f;
            count += neighbours > 0;
        }
    }

    // A word that stands alone in its line has no neighbours to be predicted from.
    void score_centres(float* scores) {
        float alone = 0.0f;
        positive_scores(scores, size);
        for (int i = 0; i < size; ++i) {
            if (weight[i] != 0.0f) continue;
            alone += softplus(Vec<float>{})[0];
            scores[i] = 0.0f;
        }
        loss -= alone;
        for (int i = 0; i < size; ++i)
            add_scaled(part.change + i * run.stride, output_of(part.word[begin + i]), scores[i], vectors);
    }

    void tree_centres() {
        static thread_local std::vector<std::pair<int32_t, float>> moves;
        for (int i = 0; i < size; ++i) {
            if (weight[i] == 0.0f) continue;
            moves.clear();
            walk(row[i], part.change + i * run.stride, part.word[begin + i], moves);
            move_nodes(row[i], moves);
        }
    }
};

// input += Σ (copy − input), rows that any part has touched; the copies follow.
inline void join_copies(const EmbedRun& run) {
    const size_t matrix = size_t(run.V) * run.stride;
#pragma omp parallel for schedule(static) num_threads(run.parts)
    for (int64_t r = 0; r < 2 * run.V; ++r) {
        const int which = r >= run.V;
        const int64_t row = r - which * run.V;
        bool any = false;
        for (int part = 0; part < run.parts; ++part) {
            uint8_t& flag = run.touched[size_t(2 * part + which) * run.V + row];
            any |= flag, flag = 0;
        }
        if (!any || !run.copies) continue;
        float* own = (which ? run.output : run.input) + row * run.stride;
        for (int v = 0; v < run.stride; v += lanes) {
            const Vec<float> before = load(own + v);
            Vec<float> after = before;
            auto copy = [&](int part) { return run.copies + (2 * part + which) * matrix + row * run.stride + v; };
            for (int part = 0; part < run.parts; ++part) after += load(copy(part)) - before;
            for (int part = 0; part < run.parts; ++part) store(copy(part), after);
            store(own + v, after);
        }
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
    const size_t matrix = size_t(run.V) * run.stride;
#pragma omp parallel for schedule(static, 1) num_threads(run.parts)
    for (int part = 0; part < run.parts; ++part) {
        float* input = run.copies ? run.copies + 2 * part * matrix : run.input;
        float* output = run.copies ? input + matrix : run.output;
        Trainer trainer(run, parts[part], part, input, output);
        trainer.lines(bounds[part], bounds[part + 1]);
        run.loss[part] = trainer.loss;
        run.count[part] = trainer.count;
    }
    join_copies(run);
}

}  // namespace UNROLLED_ISA
