// GloVe as Python sees it: counting pairs, bringing them into tiles, training.
#include <nanobind/ndarray.h>
#include <nanobind/stl/pair.h>

#include "bindings.hpp"
#include "glove.hpp"
#include "glove_count.hpp"
#include "kernel_sets.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace unrolled {

template <typename T>
using Array = nb::ndarray<const T, nb::ndim<1>, nb::c_contig, nb::device::cpu>;

template <typename T>
using Filled = nb::ndarray<T, nb::ndim<1>, nb::c_contig, nb::device::cpu>;

template <class Visit>
void each_field(GloveRun& r, Visit visit) {
    visit("rows", r.rows);
    visit("columns", r.columns);
    visit("logs", r.logs);
    visit("begin", r.begin);
    visit("end", r.end);
    visit("words", r.words);
    visit("contexts", r.contexts);
    visit("stride", r.stride);
    visit("tiles", r.tiles);
    visit("threads", r.threads);
    visit("rate", r.rate);
    visit("log_most", r.log_most);
    visit("power", r.power);
    visit("loss", r.loss);
}

static void train_glove(const GloveRun& run) {
    require(run.stride >= 16 && run.stride % 16 == 0 && run.tiles >= 0 && run.threads >= 1,
            "sizes out of range");
    current_set().glove->train(run);
}

static PairCounter counter(Array<int32_t> ids, Array<int64_t> starts, int32_t V, int32_t window) {
    require(starts.size() >= 1 && V >= 1 && window >= 1, "sizes out of range");
    const int64_t lines = int64_t(starts.size()) - 1;
    bool ascend = starts.data()[0] >= 0 && starts.data()[lines] <= int64_t(ids.size());
    for (int64_t line = 0; line < lines; ++line) ascend &= starts.data()[line] <= starts.data()[line + 1];
    require(ascend, "lines must lie behind each other in the text");
    nb::gil_scoped_release released;
    return PairCounter(ids.data(), starts.data(), lines, V, window);
}

static std::pair<int32_t, int64_t> count_rows(const PairCounter& counter, int32_t first, Filled<int64_t> pairs,
                                              int threads) {
    require(pairs.size() % 2 == 0 && first >= 0 && threads >= 1, "sizes out of range");
    nb::gil_scoped_release released;
    auto* out = reinterpret_cast<CountedPair*>(pairs.data());
    return counter.rows(first, out, int64_t(pairs.size() / 2), threads);
}

static void order(Array<int64_t> pairs, Array<int64_t> starts, Array<int32_t> block,
                  Array<int32_t> row_order, int32_t classes, int32_t blocks, Filled<int64_t> begin, Filled<int32_t> rows, Filled<int32_t> columns,
                  Filled<float> logs, int threads) {
    const size_t size = rows.size(), V = block.size();
    require(pairs.size() == 2 * size && starts.size() == V + 1 && row_order.size() == V && columns.size() == size &&
                logs.size() == size && classes >= 1 && blocks >= 1 && threads >= 1 &&
                begin.size() == size_t(classes) * size_t(blocks) + 1 && starts.data()[V] == int64_t(size),
            "arrays that belong together have unequal lengths");
    nb::gil_scoped_release released;
    auto* counted = reinterpret_cast<const CountedPair*>(pairs.data());
    order_pairs({counted, starts.data(), block.data(), row_order.data(), int32_t(V), classes, blocks, begin.data(), rows.data(),
                 columns.data(), logs.data()},
                threads);
}

}  // namespace unrolled

void bind_glove(nb::module_& module) {
    using namespace unrolled;
    bind_fields<GloveRun>(module, "GloveRun");
    module.def("glove_train", &train_glove, "run"_a, nb::call_guard<nb::gil_scoped_release>());
    nb::class_<PairCounter>(module, "PairCounter")
        .def(nb::new_(&counter), "ids"_a, "starts"_a, "V"_a, "window"_a)
        .def("rows", &count_rows, "first"_a, "pairs"_a, "threads"_a);
    module.def("order_pairs", &order, "pairs"_a, "starts"_a, "block"_a, "order"_a, "classes"_a, "blocks"_a, "begin"_a,
               "rows"_a, "columns"_a, "logs"_a, "threads"_a);
}
