// A linear chain over the tags of sentences (CRF): sums over all sequences of tags, and the best one.
//
// Forward in logarithms, the largest of each step taken off, so that numbers stay small:
//
//     α_1 = e_1,   β_t(j) = log Σ_i exp(α_{t−1}(i) + A_ij),   α_t = e_t + β_t,   log Z = log Σ_j exp α_T(j)
//
// Back in probabilities:
//
//     P(y_t = i, y_{t+1} = j) = exp(α_t(i) + A_ij − β_{t+1}(j)) · P(y_{t+1} = j),   P(y_t = i) = Σ_j P(y_t = i, y_{t+1} = j)
#pragma once

#include <algorithm>
#include <cmath>
#include <limits>

#include "buffer.hpp"
#include "product.hpp"
#include "recurrent.hpp"
#include "threads.hpp"

namespace UNROLLED_ISA {

using unrolled::Chain;

// e^x, and 0 where that is none of T's numbers.
template <class T>
UNROLLED_INLINE Vec<T> vanishing_exp(Vec<T> x) {
    return x < ExpConstants<T>::least ? Vec<T>{} : vexp<T>(x);
}

// The transitions as the sums read them. A step's tags lie in whole vectors; those beyond the last one
// never happen.
template <class T>
struct ChainLayout {
    static constexpr int L = Lanes<T>::count;

    int K;
    int V;
    int64_t width;    // numbers of a step
    Vec<T> beyond{};  // 0 for tags, −∞ beyond the last one
    Buffer<T> moves;  // (K, V)

    explicit ChainLayout(const Chain<T>& chain)
        : K(int(chain.K)), V(vectors(K, L)), width(int64_t(V) * L), moves(K * width) {
        for (int lane = K - (V - 1) * L; lane < L; ++lane)
            beyond[lane] = -std::numeric_limits<T>::infinity();
        for (int i = 0; i < K; ++i)
            for (int v = 0; v < V; ++v)
                store(moves.data() + i * width + v * L,
                      load(chain.transitions + int64_t(i) * K + v * L, K - v * L));
    }
};

// What one thread needs for a sentence of at most T steps.
template <class T>
struct ChainWorkspace {
    T* logs;     // (T, V)
    T* sums;     // (T, V)
    T* node;     // (V,)  P of a step's tags
    T* earlier;  // (V,)  P of those of the step before
    typename Lanes<T>::bits* from;  // (T, V)  which tag the best way comes from; null without paths
};

// Sentences, one after the other.
template <class T>
class ChainRun {
   public:
    ChainRun(const Chain<T>& chain, const ChainLayout<T>& layout, ChainWorkspace<T> space)
        : chain_(chain), layout_(layout), space_(space), K_(layout.K), V_(layout.V), width_(layout.width) {}

    // log Z of a sentence; P of its tags, and P of its pairs added to edges (K, V), where there are any.
    UNROLLED_FLAT void sum(int64_t row, T* edges) {
        double taken = forward(row);
        T total = softmax(logs(steps(row) - 1));
        chain_.log_z[row] = taken + std::log(double(total));
        if (edges) backward(row, edges);
    }

    // The best sequence of tags and its score.
    UNROLLED_FLAT void best(int64_t row) {
        for (int64_t t = 0; t < steps(row); ++t)
            for (int v = 0; v < V_; ++v) {
                Vec<T> score = emission(row, t, v);
                if (t) score += best_move(t, v);
                store(logs(t) + v * L, score);
            }
        const T* last = logs(steps(row) - 1);
        int64_t tag = std::max_element(last, last + K_) - last;
        chain_.best[row] = last[tag];
        int64_t* path = chain_.paths + row * chain_.steps;
        std::fill(path + steps(row), path + chain_.steps, int64_t(0));
        for (int64_t t = steps(row) - 1; t >= 0; --t) {
            path[t] = tag;
            if (t) tag = int64_t(space_.from[t * width_ + tag]);
        }
    }

   private:
    static constexpr int L = Lanes<T>::count;
    using Places = typename Lanes<T>::ivec;
    using Place = typename Lanes<T>::bits;

    int64_t steps(int64_t row) const { return chain_.lengths[row]; }

    T* logs(int64_t t) const { return space_.logs + t * width_; }

    T* sums(int64_t t) const { return space_.sums + t * width_; }

    Vec<T> emission(int64_t row, int64_t t, int v) const {
        Vec<T> value = load(chain_.scores + (row * chain_.steps + t) * K_ + v * L, K_ - v * L);
        return v == V_ - 1 ? value + layout_.beyond : value;
    }

    // α_{t−1}(i) + A_ij for the tags j of vector v.
    UNROLLED_INLINE Vec<T> score(const T* logs, int i, int v) const {
        return load(layout_.moves.data() + i * width_ + v * L) + logs[i];
    }

    // Leaves α and β of all steps; what was taken off them.
    double forward(int64_t row) {
        double taken = 0;
        for (int64_t t = 0; t < steps(row); ++t) {
            Vec<T> tops = splat(-std::numeric_limits<T>::infinity());
            for (int v = 0; v < V_; ++v) {
                Vec<T> value = emission(row, t, v);
                if (t) {
                    Vec<T> sum = log_sum(logs(t - 1), v);
                    store(sums(t) + v * L, sum);
                    value += sum;
                }
                store(logs(t) + v * L, value);
                tops = value > tops ? value : tops;
            }
            T top = tops[0];
            for (int lane = 1; lane < L; ++lane) top = std::max(top, T(tops[lane]));
            for (int v = 0; v < V_; ++v) store(logs(t) + v * L, load(logs(t) + v * L) - top);
            taken += top;
        }
        return taken;
    }

    Vec<T> log_sum(const T* before, int v) const {
        Vec<T> top = score(before, 0, v);
        Vec<T> total{};
        for (int i = 1; i < K_; ++i) {
            Vec<T> value = score(before, i, v);
            top = value > top ? value : top;
        }
        for (int i = 0; i < K_; ++i) total += vanishing_exp<T>(score(before, i, v) - top);
        return top + vlog<T>(total);
    }

    // P of the last step's tags; what they were divided by.
    T softmax(const T* last) {
        Vec<T> sums{};
        for (int v = 0; v < V_; ++v) sums += vanishing_exp<T>(load(last + v * L));
        T total = UNROLLED_ISA::sum<T>(sums);
        for (int v = 0; v < V_; ++v)
            store(space_.node + v * L, vanishing_exp<T>(load(last + v * L)) / total);
        return total;
    }

    void backward(int64_t row, T* edges) {
        T* nodes = chain_.nodes + row * chain_.steps * K_;
        std::fill(space_.earlier, space_.earlier + width_, T(0));
        for (int64_t t = steps(row) - 1;; --t) {
            std::copy(space_.node, space_.node + K_, nodes + t * K_);
            if (t == 0) break;
            T total = 0;
            for (int i = 0; i < K_; ++i) {
                space_.earlier[i] = pairs(t, i, edges + i * width_);
                total += space_.earlier[i];
            }
            for (int v = 0; v < V_; ++v)  // 1 in all, but for rounding
                store(space_.node + v * L, load(space_.earlier + v * L) / total);
        }
        std::fill(nodes + steps(row) * K_, nodes + chain_.steps * K_, T(0));
    }

    // P of tag i before step t, from those of what may follow it.
    T pairs(int64_t t, int i, T* edges) const {
        Vec<T> all{};
        for (int v = 0; v < V_; ++v) {
            Vec<T> pair = vanishing_exp<T>(score(logs(t - 1), i, v) - load(sums(t) + v * L)) *
                          load(space_.node + v * L);
            store(edges + v * L, load(edges + v * L) + pair);
            all += pair;
        }
        return UNROLLED_ISA::sum<T>(all);
    }

    // max_i of α_{t−1}(i) + A_ij, and which i: of equals the first.
    Vec<T> best_move(int64_t t, int v) const {
        Vec<T> top = score(logs(t - 1), 0, v);
        Places from{};
        for (int i = 1; i < K_; ++i) {
            Vec<T> value = score(logs(t - 1), i, v);
            from = value > top ? Places{} + Place(i) : from;
            top = value > top ? value : top;
        }
        std::memcpy(space_.from + t * width_ + v * L, &from, sizeof from);
        return top;
    }

    const Chain<T>& chain_;
    const ChainLayout<T>& layout_;
    ChainWorkspace<T> space_;
    int K_;
    int V_;
    int64_t width_;
};

// Sentences fall into so many chunks however many threads there are, so that sums have the same bits.
constexpr int64_t most_chunks = 16;

// Each(run, row, chunk) for every sentence, those of a chunk one after the other.
template <class T, class Each>
void each_sentence(const Chain<T>& chain, int threads, Each each) {
    int64_t chunks = std::min(chain.B, most_chunks);
    int team = int(std::max<int64_t>(1, std::min<int64_t>(threads, chunks)));
    ChainLayout<T> layout(chain);
    int64_t all = chain.steps * layout.width;
    int64_t own = 2 * (all + layout.width);
    Buffer<T> numbers(team * own);
    Buffer<typename Lanes<T>::bits> places(chain.paths ? team * all : 0);
#pragma omp parallel num_threads(team)
    {
        int me = omp_get_thread_num();
        T* logs = numbers.slice(me, own);
        T* node = logs + 2 * all;
        ChainWorkspace<T> space{logs, logs + all, node, node + layout.width, places.slice(me, all)};
        ChainRun<T> run(chain, layout, space);
#pragma omp for schedule(dynamic, 1)
        for (int64_t chunk = 0; chunk < chunks; ++chunk)
            for (int64_t row = chain.B * chunk / chunks; row < chain.B * (chunk + 1) / chunks; ++row)
                each(run, row, chunk);
    }
}

template <class T>
void chain_sums(const Chain<T>& chain, int threads) {
    int64_t width = vectors(int(chain.K), Lanes<T>::count) * Lanes<T>::count;
    int64_t size = chain.K * width;
    int64_t all = chain.edges ? most_chunks * size : 0;
    Buffer<T> edges(all);
    std::fill(edges.data(), edges.data() + all, T(0));
    each_sentence(chain, threads, [&](ChainRun<T>& run, int64_t row, int64_t chunk) {
        run.sum(row, chain.edges ? edges.data() + chunk * size : nullptr);
    });
    for (int64_t i = 0; chain.edges && i < chain.K; ++i)
        for (int64_t j = 0; j < chain.K; ++j) {
            T total = 0;
            for (int64_t chunk = 0; chunk < most_chunks; ++chunk)
                total += edges.data()[chunk * size + i * width + j];
            chain.edges[i * chain.K + j] = total;
        }
}

template <class T>
void chain_best(const Chain<T>& chain, int threads) {
    each_sentence(chain, threads, [](ChainRun<T>& run, int64_t row, int64_t) { run.best(row); });
}

}  // namespace UNROLLED_ISA
