// The chain over tags against sums over all sequences of tags, written out one by one.
//
// Built by `make sanitize`. Every array has just the size it needs and begins as NaN.
#include <cmath>
#include <cstdio>
#include <vector>

#include "../chain.hpp"

namespace {

using namespace UNROLLED_ISA;

int failures = 0, checks = 0;

void expect(bool holds, const char* what, int K, double seen, double wanted) {
    ++checks;
    if (!holds && ++failures < 20) std::printf("%s: %.9g, not %.9g  (K %d)\n", what, seen, wanted, K);
}

template <class T>
void expect_near(const char* what, int K, double seen, double wanted) {
    double allowed = (sizeof(T) == 4 ? 1e-5 : 1e-13) * std::max(1.0, std::abs(wanted));
    expect(std::abs(seen - wanted) <= allowed, what, K, seen, wanted);
}

// Sentences of 3, 1 and 2 words.
template <class T>
struct Sentences {
    static constexpr int B = 3, steps = 3;
    int K;
    std::vector<int64_t> lengths{3, 1, 2};
    std::vector<T> scores, transitions, nodes, edges, best;
    std::vector<double> log_z;
    std::vector<int64_t> paths;

    explicit Sentences(int K)
        : K(K), scores(B * steps * K), transitions(K * K), nodes(scores.size(), NAN),
          edges(transitions.size(), NAN), best(B, NAN), log_z(B, NAN), paths(B * steps, -1) {
        for (size_t i = 0; i < scores.size(); ++i) scores[i] = T(3 * std::sin(1.7 * i + 1));
        for (size_t i = 0; i < transitions.size(); ++i) transitions[i] = T(2 * std::sin(2.3 * i));
        transitions[K - 1] = T(-10000);  // as good as forbidden
    }

    Chain<T> chain() {
        Chain<T> chain;
        chain.scores = scores.data();
        chain.transitions = transitions.data();
        chain.lengths = lengths.data();
        chain.B = B;
        chain.steps = steps;
        chain.K = K;
        chain.log_z = log_z.data();
        chain.nodes = nodes.data();
        chain.edges = edges.data();
        chain.paths = paths.data();
        chain.best = best.data();
        return chain;
    }
};

// All sequences of tags of one sentence: each(tags, its score).
template <class T, class Each>
void each_sequence(const Sentences<T>& s, int row, Each each) {
    int n = int(s.lengths[row]);
    std::vector<int> tags(n);
    for (;;) {
        double score = 0;
        for (int t = 0; t < n; ++t) {
            score += s.scores[(row * s.steps + t) * s.K + tags[t]];
            if (t) score += s.transitions[tags[t - 1] * s.K + tags[t]];
        }
        each(tags, score);
        int t = 0;
        while (t < n && ++tags[t] == s.K) tags[t++] = 0;
        if (t == n) return;
    }
}

template <class T>
void check(int K, int threads) {
    Sentences<T> s(K);
    chain_sums(s.chain(), threads);
    chain_best(s.chain(), threads);
    std::vector<double> nodes(s.nodes.size()), edges(s.edges.size());
    for (int row = 0; row < s.B; ++row) {
        double top = -INFINITY, z = 0;
        std::vector<int> right;
        each_sequence(s, row, [&](const std::vector<int>& tags, double score) {
            if (score > top) top = score, right = tags;
        });
        each_sequence(s, row, [&](const std::vector<int>&, double score) { z += std::exp(score - top); });
        each_sequence(s, row, [&](const std::vector<int>& tags, double score) {
            double p = std::exp(score - top) / z;
            for (size_t t = 0; t < tags.size(); ++t) {
                nodes[(row * s.steps + t) * K + tags[t]] += p;
                if (t) edges[tags[t - 1] * K + tags[t]] += p;
            }
        });
        expect_near<T>("log Z", K, s.log_z[row], top + std::log(z));
        expect_near<T>("best", K, s.best[row], top);
        for (int t = 0; t < s.steps; ++t) {
            int wanted = t < int(right.size()) ? right[t] : 0, seen = int(s.paths[row * s.steps + t]);
            expect(seen == wanted, "path", K, seen, wanted);
        }
    }
    for (size_t i = 0; i < nodes.size(); ++i) expect_near<T>("node", K, s.nodes[i], nodes[i]);
    for (size_t i = 0; i < edges.size(); ++i) expect_near<T>("edge", K, s.edges[i], edges[i]);
    std::vector<double> before = s.log_z;
    Chain<T> alone = s.chain();
    alone.nodes = alone.edges = nullptr;
    chain_sums(alone, threads);
    expect(before == s.log_z, "log Z alone", K, 0, 0);
}

}  // namespace

int main() {
    for (int K : {1, 2, 3, 4, 5, 7, 8, 9, 15, 16, 17, 31, 33})
        for (int threads : {1, 2}) {
            check<float>(K, threads);
            check<double>(K, threads);
        }
    std::printf("chain, vectors of %d bytes: %d checks, %d failures\n", UNROLLED_VECTOR_BYTES, checks,
                failures);
    return failures != 0;
}
