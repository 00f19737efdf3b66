// The softmax over a vocabulary as Python sees it.
#include <algorithm>
#include <stdexcept>

#include "bindings.hpp"
#include "kernel_sets.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace unrolled {

template <class T, class Visit>
void each_field(Softmax<T>& s, Visit visit) {
    visit("z", s.z);
    visit("bias", s.bias);
    visit("targets", s.targets);
    visit("nats", s.nats);
    visit("N", s.N);
    visit("V", s.V);
    visit("smoothing", s.smoothing);
}

template <class T>
static void run_softmax(const Softmax<T>& rows, int threads) {
    require(rows.N >= 0 && rows.V >= 1, "sizes out of range");
    kernels_of<T>(current_set()).softmax(rows, std::clamp(threads, 1, most_threads));
}

template <class T>
static void bind_number(nb::module_& module, const char* name) {
    bind_fields<Softmax<T>>(module, name);
    module.def("softmax", &run_softmax<T>, "rows"_a, nb::kw_only(), "threads"_a,
               nb::call_guard<nb::gil_scoped_release>());
}

}  // namespace unrolled

void bind_softmax(nb::module_& module) {
    unrolled::bind_number<float>(module, "Softmax32");
    unrolled::bind_number<double>(module, "Softmax64");
}
