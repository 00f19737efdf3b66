// The linear chain over tags as Python sees it.
#include <algorithm>
#include <stdexcept>

#include "bindings.hpp"
#include "kernel_sets.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace unrolled {

constexpr int64_t most_tags = 1 << 20;

template <class T, class Visit>
void each_field(Chain<T>& c, Visit visit) {
    visit("scores", c.scores);
    visit("transitions", c.transitions);
    visit("lengths", c.lengths);
    visit("B", c.B);
    visit("steps", c.steps);
    visit("K", c.K);
    visit("log_z", c.log_z);
    visit("nodes", c.nodes);
    visit("edges", c.edges);
    visit("paths", c.paths);
    visit("best", c.best);
}

template <class T>
static void check_sizes(const Chain<T>& chain) {
    require(chain.B >= 0 && chain.steps >= 0 && chain.K >= 1 && chain.K <= most_tags, "sizes out of range");
}

template <class T>
static void run_sums(const Chain<T>& chain, int threads) {
    check_sizes(chain);
    kernels_of<T>(current_set()).chain_sums(chain, std::clamp(threads, 1, most_threads));
}

template <class T>
static void run_best(const Chain<T>& chain, int threads) {
    check_sizes(chain);
    kernels_of<T>(current_set()).chain_best(chain, std::clamp(threads, 1, most_threads));
}

template <class T>
static void bind_number(nb::module_& module, const char* name) {
    using released = nb::call_guard<nb::gil_scoped_release>;
    bind_fields<Chain<T>>(module, name);
    module.def("chain_sums", &run_sums<T>, "chain"_a, nb::kw_only(), "threads"_a, released());
    module.def("chain_best", &run_best<T>, "chain"_a, nb::kw_only(), "threads"_a, released());
}

}  // namespace unrolled

void bind_chain(nb::module_& module) {
    unrolled::bind_number<float>(module, "Chain32");
    unrolled::bind_number<double>(module, "Chain64");
}
