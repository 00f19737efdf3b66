// Trees under the sanitisers: forth and back equal to the same trees one by one, and layouts that are none
// are refused before anything is read by them.
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <random>
#include <vector>

#include "../tree_backward.hpp"
#include "../tree_greedy.hpp"

using namespace UNROLLED_ISA;
using unrolled::TreeLayout;

static void check(bool holds, const char* what) {
    if (holds) return;
    std::fprintf(stderr, "failed: %s\n", what);
    std::exit(1);
}

// Chains ((w w) w) … of so many words each: level k of a tree is its k-th merge.
struct Chains {
    std::vector<int64_t> word, leaves, inner, tree, levels{0};
    TreeLayout layout{};

    Chains(const std::vector<int>& lengths, int U) {
        int B = int(lengths.size()), longest = 0;
        int64_t M = 0;
        for (int n : lengths) M += n - 1, longest = std::max(longest, n);
        std::vector<int64_t> before(B, -1);  // the number of a tree's highest inner node so far
        tree.assign(2 * M + B, 0);
        inner.assign(M, 0);
        int64_t node = 0;
        for (int level = 0; level + 1 < longest; ++level) {
            for (int b = 0; b < B; ++b) {
                if (level + 1 >= lengths[b]) continue;
                tree[2 * node] = tree[2 * node + 1] = b;
                if (level) inner[before[b]] = 2 * node;
                else leaves.push_back(2 * node);
                leaves.push_back(2 * node + 1);
                before[b] = node++;
            }
            levels.push_back(node);
        }
        for (int b = 0; b < B; ++b) {
            tree[2 * M + b] = b;
            if (before[b] < 0) leaves.push_back(2 * M + b);
            else inner[before[b]] = 2 * M + b;
        }
        for (size_t k = 0; k < leaves.size(); ++k) word.push_back(int64_t(k * 7 % U));
        layout = {word.data(), leaves.data(), inner.data(), tree.data(), levels.data(),
                  2 * M + B,   int64_t(leaves.size()), M, U, B, int64_t(levels.size()) - 1};
    }
};

static std::vector<double> numbers(size_t count, unsigned seed) {
    std::mt19937 random(seed);
    std::normal_distribution<double> normal(0, 0.5);
    std::vector<double> result(count);
    for (double& value : result) value = normal(random);
    return result;
}

static double total(int H, int E, const std::vector<double>& x, const std::vector<double>& weights, int threads,
                    std::vector<double>* gradient) {
    Chains chains({1, 9, 4, 2, 17}, 5);
    const TreeLayout& l = chains.layout;
    std::vector<double> own = numbers(3 * H * E, 1), bias = numbers(5 * H, 2), words(l.U * 2 * H), kept(l.M * 6 * H),
                        words_kept(l.U * 4 * H), h(l.N * H), c(l.N * H), dh(l.N * H, 1.0), dwords(l.U * 2 * H),
                        dweights(weights.size()), dbias(5 * H), dx_weights(3 * H * E), dx(x.size());
    TreeCall<double> call{};
    call.layout = l;
    call.node = int64_t(unrolled::Node::lstm);
    call.H = H;
    call.E = E;
    call.words = words.data(), call.weights = weights.data(), call.bias = bias.data();
    call.h = h.data(), call.c = c.data(), call.kept = kept.data();
    call.x = x.data(), call.x_weights = own.data(), call.words_kept = words_kept.data();
    call.dh = dh.data(), call.dwords = dwords.data(), call.dweights = dweights.data(), call.dbias = dbias.data();
    call.dx = dx.data(), call.dx_weights = dx_weights.data();
    tree_forward(call, threads);
    if (gradient) {
        tree_backward(call, threads);
        *gradient = dweights;
        gradient->insert(gradient->end(), dx.begin(), dx.end());
    }
    double sum = 0;
    for (double value : h) sum += value;
    return sum;
}

static void test_gradients(int H, int E, int threads) {
    std::vector<double> x = numbers(5 * E, 3), weights = numbers(10 * H * H, 4), gradient;
    total(H, E, x, weights, threads, &gradient);
    const double step = 1e-6;
    for (size_t i = 0; i < gradient.size(); i += 7) {
        double& value = i < weights.size() ? weights[i] : x[i - weights.size()];
        double was = value;
        value = was + step;
        double above = total(H, E, x, weights, threads, nullptr);
        value = was - step;
        double below = total(H, E, x, weights, threads, nullptr);
        value = was;
        check(std::abs((above - below) / (2 * step) - gradient[i]) < 1e-6, "a gradient is a finite difference");
    }
}

template <class Change>
static void refused(Change change) {
    Chains chains({3, 5}, 4);
    change(chains);
    try {
        unrolled::TreePlan plan(chains.layout, 2);
    } catch (const std::invalid_argument&) {
        return;
    }
    check(false, "a layout that is none is refused");
}

static void test_greedy(int threads) {
    const int H = 5;
    std::vector<int64_t> ids{0, 1, 2, 3, 2, 2, 1, 0, 3, 3}, starts{0, 1, 8, 10};
    int64_t all = 2 * 10 - 3;
    std::vector<int64_t> parent(all), word(all), height(all), leaves(all), step(all);
    std::vector<double> error(all), vectors = numbers(4 * H, 5), weights = numbers(2 * H * H, 6), bias = numbers(H, 7),
                                    decoder = numbers(2 * H * H, 8), decoder_bias = numbers(2 * H, 9);
    GreedyCall<double> call{ids.data(), starts.data(), 3, H, int64_t(unrolled::Node::unit_tanh), 1, vectors.data(),
                            weights.data(), bias.data(), decoder.data(), decoder_bias.data(), parent.data(),
                            word.data(), height.data(), leaves.data(), step.data(), error.data()};
    tree_greedy(call, threads);
    check(leaves[0] == 1 && leaves[13] == 7 && leaves[16] == 2, "roots have all words below them");
    for (int64_t node = 1; node < 13; ++node) check(parent[node] > node - 1, "parents come after children");
}

int main() {
    for (int threads : {1, 3})
        for (int H : {1, 3, 9}) test_gradients(H, H + 2, threads);
    for (int threads : {1, 2}) test_greedy(threads);
    refused([](Chains& c) { c.word[0] = 4; });
    refused([](Chains& c) { c.leaves[1] = -1; });
    refused([](Chains& c) { c.leaves[0] = c.leaves[1]; });
    refused([](Chains& c) { c.inner[0] = 1000; });
    refused([](Chains& c) { c.tree[0] ^= 1; });
    refused([](Chains& c) { std::swap(c.inner[0], c.inner[2]); });
    refused([](Chains& c) { c.levels[1] = 0; });
    refused([](Chains& c) { c.levels.back() = 100; });
    std::puts("trees: ok");
}
