// Networks over trees as Python sees them.
#include <algorithm>

#include "bindings.hpp"
#include "kernel_sets.hpp"
#include "tree.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace unrolled {

constexpr int64_t most_nodes = int64_t(1) << 40;

template <class T, class Visit>
void each_field(TreeCall<T>& t, Visit visit) {
    visit("word", t.layout.word);
    visit("leaves", t.layout.leaves);
    visit("inner", t.layout.inner);
    visit("tree", t.layout.tree);
    visit("levels", t.layout.levels);
    visit("N", t.layout.N);
    visit("L", t.layout.L);
    visit("M", t.layout.M);
    visit("U", t.layout.U);
    visit("B", t.layout.B);
    visit("level_count", t.layout.level_count);
    visit("node", t.node);
    visit("H", t.H);
    visit("words", t.words);
    visit("weights", t.weights);
    visit("bias", t.bias);
    visit("h", t.h);
    visit("c", t.c);
    visit("kept", t.kept);
    visit("dh", t.dh);
    visit("dwords", t.dwords);
    visit("dweights", t.dweights);
    visit("dbias", t.dbias);
    visit("E", t.E);
    visit("x", t.x);
    visit("x_weights", t.x_weights);
    visit("words_kept", t.words_kept);
    visit("dx", t.dx);
    visit("dx_weights", t.dx_weights);
}

template <class T, class Visit>
void each_field(GreedyCall<T>& g, Visit visit) {
    visit("ids", g.ids);
    visit("starts", g.starts);
    visit("B", g.B);
    visit("H", g.H);
    visit("node", g.node);
    visit("weighted", g.weighted);
    visit("vectors", g.vectors);
    visit("weights", g.weights);
    visit("bias", g.bias);
    visit("decoder", g.decoder);
    visit("decoder_bias", g.decoder_bias);
    visit("parent", g.parent);
    visit("word", g.word);
    visit("height", g.height);
    visit("leaves", g.leaves);
    visit("step", g.step);
    visit("error", g.error);
}

template <class T>
static const TreeNumberKernels<T>& tree_kernels_of(const KernelSet& set) {
    if constexpr (sizeof(T) == 4) {
        return set.tree->float32;
    } else {
        return set.tree->float64;
    }
}

template <class T>
static void check_sizes(const TreeCall<T>& call) {
    const TreeLayout& l = call.layout;
    require(call.H >= 1 && call.H <= most_units && call.E >= 0 && call.E <= most_units && call.node >= 0 && call.node <= int64_t(Node::lstm) && l.N >= 1 &&
                l.N <= most_nodes && l.M >= 0 && l.L >= 1 && l.B >= 1 && l.U >= 1 && l.level_count >= 0 &&
                l.level_count <= l.M,
            "sizes out of range");
}

// No more threads than trees: the others would have nothing to do.
template <class T>
static int team(const TreeCall<T>& call, int threads) {
    return int(std::clamp<int64_t>(std::min<int64_t>(threads, call.layout.B), 1, most_threads));
}

template <class T>
static void run_forward(const TreeCall<T>& call, int threads) {
    check_sizes(call);
    tree_kernels_of<T>(current_set()).forward(call, team(call, threads));
}

template <class T>
static void run_backward(const TreeCall<T>& call, int threads) {
    check_sizes(call);
    tree_kernels_of<T>(current_set()).backward(call, team(call, threads));
}

template <class T>
static void run_greedy(const GreedyCall<T>& call, int threads) {
    require(call.H >= 1 && call.H <= most_units && call.B >= 1 && call.B <= most_nodes && call.starts[0] == 0 &&
                (call.node == int64_t(Node::tanh) || call.node == int64_t(Node::unit_tanh)),
            "sizes out of range");
    for (int64_t row = 0; row < call.B; ++row)
        require(call.starts[row] < call.starts[row + 1], "a sentence has no words");
    tree_kernels_of<T>(current_set()).greedy(call, std::clamp(threads, 1, most_threads));
}

template <class T>
static void bind_number(nb::module_& module, const char* name, const char* greedy) {
    using released = nb::call_guard<nb::gil_scoped_release>;
    bind_fields<TreeCall<T>>(module, name);
    bind_fields<GreedyCall<T>>(module, greedy);
    module.def("tree_greedy", &run_greedy<T>, "call"_a, nb::kw_only(), "threads"_a, released());
    module.def("tree_forward", &run_forward<T>, "call"_a, nb::kw_only(), "threads"_a, released());
    module.def("tree_backward", &run_backward<T>, "call"_a, nb::kw_only(), "threads"_a, released());
}

}  // namespace unrolled

void bind_tree(nb::module_& module) {
    unrolled::bind_number<float>(module, "TreeCall32", "GreedyCall32");
    unrolled::bind_number<double>(module, "TreeCall64", "GreedyCall64");
}
