// The trainer of word vectors as Python sees it.
#include "bindings.hpp"
#include "embed.hpp"
#include "kernel_sets.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace unrolled {

template <class Visit>
void each_field(EmbedRun& r, Visit visit) {
    visit("ids", r.ids);
    visit("starts", r.starts);
    visit("first_line", r.first_line);
    visit("last_line", r.last_line);
    visit("rows", r.rows);
    visit("copies", r.copies);
    visit("touched", r.touched);
    visit("keep", r.keep);
    visit("alias_share", r.alias_share);
    visit("alias_other", r.alias_other);
    visit("code_starts", r.code_starts);
    visit("nodes", r.nodes);
    visit("turns", r.turns);
    visit("gram_starts", r.gram_starts);
    visit("grams", r.grams);
    visit("V", r.V);
    visit("inputs", r.inputs);
    visit("stride", r.stride);
    visit("dimension", r.dimension);
    visit("window", r.window);
    visit("words", r.words);
    visit("shared", r.shared);
    visit("negatives", r.negatives);
    visit("cbow", r.cbow);
    visit("parts", r.parts);
    visit("rate", r.rate);
    visit("key", r.key);
    visit("loss", r.loss);
    visit("count", r.count);
}

static void train(const EmbedRun& run) {
    require(run.V >= 1 && run.inputs >= run.V && run.dimension >= 1 && run.stride >= run.dimension && run.stride % 16 == 0 &&
                run.window >= 1 && run.window <= 128 && run.words >= 1 && run.words <= 64 &&
                run.shared >= 16 && run.shared <= 64 && run.shared % 16 == 0 && run.parts >= 1 &&
                run.first_line >= 0 && run.first_line <= run.last_line,
            "sizes out of range");
    current_set().embed->train(run);
}

}  // namespace unrolled

void bind_embed(nb::module_& module) {
    unrolled::bind_fields<unrolled::EmbedRun>(module, "EmbedRun");
    module.def("embed_train", &unrolled::train, "run"_a, nb::call_guard<nb::gil_scoped_release>());
}
