// The compiled module, unrolled._kernels. Each part is bound in a file of its own; src/unrolled/_kernels.pyi
// tells Python what there is.
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "bindings.hpp"
#include "kernel_sets.hpp"
#include "memory.hpp"
#include "tensors.hpp"

namespace nb = nanobind;
using namespace unrolled;

static std::vector<std::string> available() {
    std::vector<std::string> names;
    for (const KernelSet* set : supported_sets()) names.push_back(set->name);
    return names;
}

NB_MODULE(_kernels, module) {
    nb::set_leak_warnings(false);
    module.def("name", [] { return current_set().name; });
    module.def("available", &available);
    module.def("use", &use_set, nb::arg("name"));
    module.def("keep_buffers", &keep_buffers, nb::arg("bytes"));
    module.def("read_tensors", &read_tensors, nb::arg("tensor"), nb::arg("parameter"), nb::arg("table"));
    bind_recurrent(module);
    bind_softmax(module);
    bind_chain(module);
    bind_ngram(module);
    bind_words(module);
    bind_embed(module);
    bind_tree(module);
    bind_glove(module);
}
