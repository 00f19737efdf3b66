// The n-gram kernels as Python sees them: arrays of numpy's, used in place.
//
// Sizes are compared here. Contents are looked at where they are followed, in the kernels: the interpreter
// lock is released, and a check made before could be outrun by another thread. Only a text that is read is
// copied, for it is small beside its table.

#include "ngram.hpp"

#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <optional>
#include <stdexcept>
#include <vector>

#include "bindings.hpp"
#include "ngram_counts.hpp"
#include "ngram_smoothing.hpp"

namespace nb = nanobind;
using namespace nb::literals;
using namespace unrolled;

namespace {

template <typename T>
using Array = nb::ndarray<const T, nb::ndim<1>, nb::c_contig, nb::device::cpu>;

template <typename T>
using Filled = nb::ndarray<T, nb::ndim<1>, nb::c_contig, nb::device::cpu>;

constexpr const char* kUnequal = "arrays that belong together have unequal lengths";

// Keeps the arrays that the table points into.
class Ngrams {
   public:
    Ngrams(std::vector<Array<int32_t>> words, std::vector<Array<double>> log_p,
           std::vector<Array<double>> log_b, std::vector<Array<int64_t>> begin, double missing)
        : words_(words), log_p_(log_p), log_b_(log_b), begin_(begin) {
        const size_t order = words.size();
        if (order < 1 || order > kMostOrders || log_p.size() != order || log_b.size() != order ||
            begin.size() != order)
            throw std::invalid_argument("an n-gram table has 1 to 16 levels of four arrays each");
        require(words[0].size() > kEnd, "the first level has all tokens, the special ones among them");
        table_.order = int(order);
        table_.missing = missing;
        for (size_t k = 0; k < order; ++k) {
            const size_t size = words[k].size();
            const bool inner = k + 1 < order;
            if (log_p[k].size() != size || (inner && log_b[k].size() != size) ||
                (inner && begin[k].size() != size + 1))
                throw std::invalid_argument("the arrays of a level have unequal lengths");
            table_.levels[k] = {words[k].data(), log_p[k].data(), log_b[k].data(),
                                begin[k].data(), int64_t(size)};
            // The ends now, and each range where it is read: a scan takes longer than a line's score.
            const int64_t above = inner ? int64_t(words[k + 1].size()) : 0;
            require(!inner || (begin[k].data()[0] == 0 && begin[k].data()[size] == above), kDamaged);
        }
    }

    void nats(Array<int32_t> ids, Filled<double> out, int threads) const {
        if (out.size() != ids.size()) throw std::invalid_argument("ids and out differ in length");
        nb::gil_scoped_release released;
        const std::vector<int32_t> own(ids.data(), ids.data() + ids.size());
        auto is_wrong = [&](int32_t token) { return token < 0 || token >= table_.levels[0].size; };
        if (std::any_of(own.begin(), own.end(), is_wrong))
            throw std::out_of_range("a token id is outside the vocabulary");
        ngram_nats(table_, own.data(), int64_t(own.size()), out.data(), threads);
    }

   private:
    std::vector<Array<int32_t>> words_;
    std::vector<Array<double>> log_p_;
    std::vector<Array<double>> log_b_;
    std::vector<Array<int64_t>> begin_;
    NgramTable table_;
};

// Keeps the text.
class Counter {
   public:
    Counter(Array<int32_t> ids, int32_t V)
        : ids_(ids), V_(V), counter_(ids.data(), int64_t(ids.size()), V) {
        const int32_t *begin = ids.data(), *end = begin + ids.size();
        auto is_wrong = [&](int32_t token) { return token < 0 || token >= V; };
        require(V > kEnd && begin < end && end[-1] == kEnd && !std::any_of(begin, end, is_wrong),
                "a text has ids of its vocabulary, the last of them </s>");
        require(ids.size() < (size_t(1) << 31), "a text has less than 2^31 tokens");
    }

    void by_token_before(Filled<int64_t> free, Filled<int32_t> places) const {
        require(free.size() == size_t(V_) && places.size() == ids_.size(), kUnequal);
        nb::gil_scoped_release released;
        counter_.by_token_before(free.data(), places.data());
    }

    std::pair<int64_t, int64_t> level(Array<int32_t> below_words, Array<int64_t> below_count,
                                      Array<int32_t> here, Filled<int32_t> places,
                                      std::optional<Filled<int32_t>> above, Filled<int32_t> words,
                                      Filled<int64_t> count, Filled<int32_t> suffix,
                                      Filled<int64_t> begin) {
        const size_t N = ids_.size(), size = places.size(), prefixes = below_words.size();
        require(here.size() == N && (!above || above->size() == N) && words.size() == size &&
                    count.size() == size && suffix.size() == size &&
                    below_count.size() == prefixes && begin.size() == prefixes + 1,
                kUnequal);
        const Prefixes below{below_words.data(), below_count.data(), int64_t(prefixes)};
        nb::gil_scoped_release released;
        return counter_.level(
            below, {here.data(), places.data(), int64_t(size), above ? above->data() : nullptr},
            {words.data(), count.data(), suffix.data(), begin.data()});
    }

   private:
    Array<int32_t> ids_;
    int32_t V_;
    NgramCounter counter_;
};

void interpolated(Array<int64_t> count, Array<int64_t> raw, std::optional<Array<int32_t>> suffix,
                  Array<int64_t> begin, Array<double> lower, int64_t cutoff,
                  std::vector<double> discounts, Filled<double> p, Filled<double> left) {
    const size_t size = count.size(), prefixes = left.size();
    require(raw.size() == size && p.size() == size && begin.size() == prefixes + 1 &&
                (suffix ? suffix->size() : lower.size()) == size && discounts.size() == 4,
            kUnequal);
    const int32_t* below = suffix ? suffix->data() : nullptr;
    nb::gil_scoped_release released;
    interpolate({count.data(), raw.data(), int64_t(size), below, begin.data(), int64_t(prefixes),
                 lower.data(), int64_t(lower.size()), cutoff},
                discounts.data(), p.data(), left.data());
}

}  // namespace

void bind_ngram(nb::module_& module) {
    nb::class_<Ngrams>(module, "Ngrams")
        .def(nb::init<std::vector<Array<int32_t>>, std::vector<Array<double>>,
                      std::vector<Array<double>>, std::vector<Array<int64_t>>, double>(),
             "words"_a, "log_p"_a, "log_b"_a, "begin"_a, "missing"_a)
        .def("nats", &Ngrams::nats, "ids"_a, "out"_a, "threads"_a);
    nb::class_<Counter>(module, "NgramCounter")
        .def(nb::init<Array<int32_t>, int32_t>(), "ids"_a, "V"_a)
        .def("by_token_before", &Counter::by_token_before, "free"_a, "places"_a)
        .def("level", &Counter::level, "below_words"_a, "below_count"_a, "here"_a, "places"_a,
             "above"_a.none(), "words"_a, "count"_a, "suffix"_a, "begin"_a);
    module.def("interpolated", &interpolated, "count"_a, "raw"_a, "suffix"_a.none(), "begin"_a, "lower"_a,
               "cutoff"_a, "discounts"_a, "p"_a, "left"_a);
}
