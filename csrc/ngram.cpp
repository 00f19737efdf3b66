// The n-gram kernels as Python sees them: arrays are checked here and used in place.

#include "ngram.hpp"

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <stdexcept>
#include <vector>

#include "ngram_counts.hpp"
#include "ngram_smoothing.hpp"
#include "words.hpp"

namespace nb = nanobind;
using namespace unrolled;

namespace {

template <typename T>
using Array = nb::ndarray<const T, nb::ndim<1>, nb::c_contig, nb::device::cpu>;

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
        }
    }

    void nats(Array<int32_t> ids, nb::ndarray<double, nb::ndim<1>, nb::c_contig> out,
              int threads) const {
        if (out.size() != ids.size()) throw std::invalid_argument("ids and out differ in length");
        nb::gil_scoped_release released;
        const int32_t *begin = ids.data(), *end = begin + ids.size();
        auto is_wrong = [&](int32_t token) { return token < 0 || token >= table_.levels[0].size; };
        if (std::any_of(begin, end, is_wrong))
            throw std::out_of_range("a token id is outside the vocabulary");
        ngram_nats(table_, begin, int64_t(ids.size()), out.data(), threads);
    }

   private:
    std::vector<Array<int32_t>> words_;
    std::vector<Array<double>> log_p_, log_b_;
    std::vector<Array<int64_t>> begin_;
    NgramTable table_;
};

template <typename T>
using Filled = nb::ndarray<T, nb::ndim<1>, nb::c_contig, nb::device::cpu>;

constexpr const char* kUnequal = "arrays that belong together have unequal lengths";

void require(bool holds, const char* rule) {
    if (!holds) throw std::invalid_argument(rule);
}

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
        int64_t total = 0;
        for (int64_t i = 0; i < below.size; ++i) total += below.places_after(i);
        require(total == int64_t(size), "the prefixes have more or fewer places than there are");
        return counter_.level(
            below, {here.data(), places.data(), total, above ? above->data() : nullptr},
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
    const int64_t *first = begin.data(), *last = first + prefixes;
    require(*first == 0 && *last == int64_t(size) && std::is_sorted(first, last + 1),
            "the prefixes have more or fewer n-grams than there are");
    const int32_t* below = suffix ? suffix->data() : nullptr;
    auto is_wrong = [&](int32_t i) { return i < 0 || size_t(i) >= lower.size(); };
    require(!below || !std::any_of(below, below + size, is_wrong),
            "a suffix leads out of the order below");
    nb::gil_scoped_release released;
    interpolate({count.data(), raw.data(), below, first, int64_t(prefixes), lower.data(), cutoff},
                discounts.data(), p.data(), left.data());
}

template <typename T>
nb::ndarray<nb::numpy, T, nb::ndim<1>> given(std::vector<T>&& values) {
    auto kept = std::make_unique<std::vector<T>>(std::move(values));
    T* data = kept->data();
    const size_t size = kept->size();
    nb::capsule owner(kept.release(), [](void* p) noexcept { delete (std::vector<T>*)p; });
    return {data, {size}, owner};
}

// A str, or the UTF-8 of one in bytes.
std::string_view utf8(nb::handle text) {
    Py_ssize_t size;
    if (PyBytes_Check(text.ptr()))
        return {PyBytes_AS_STRING(text.ptr()), size_t(PyBytes_GET_SIZE(text.ptr()))};
    const char* data = PyUnicode_AsUTF8AndSize(text.ptr(), &size);
    if (!data) throw nb::python_error();
    return {data, size_t(size)};
}

nb::tuple read_lines(WordIndex& index, nb::list lines, int32_t unknown) {
    std::vector<int32_t> ids;
    std::vector<int64_t> lengths;
    for (nb::handle line : lines) {
        const size_t before = ids.size();
        index.read(utf8(line), unknown, ids);
        lengths.push_back(int64_t(ids.size() - before));
    }
    return nb::make_tuple(given(std::move(ids)), given(std::move(lengths)));
}

nb::list words(const WordIndex& index) {
    nb::list found;
    for (int32_t i = 0; i < index.size(); ++i)
        found.append(nb::bytes(index.word(i).data(), index.word(i).size()));
    return found;
}

}  // namespace

void bind_ngram(nb::module_& module) {
    nb::class_<Ngrams>(module, "Ngrams")
        .def(nb::init<std::vector<Array<int32_t>>, std::vector<Array<double>>,
                      std::vector<Array<double>>, std::vector<Array<int64_t>>, double>())
        .def("nats", &Ngrams::nats);
    nb::class_<Counter>(module, "NgramCounter")
        .def(nb::init<Array<int32_t>, int32_t>())
        .def("by_token_before", &Counter::by_token_before)
        .def("level", &Counter::level, nb::arg(), nb::arg(), nb::arg(), nb::arg(),
             nb::arg().none(), nb::arg(), nb::arg(), nb::arg(), nb::arg());
    module.def("interpolated", &interpolated, nb::arg(), nb::arg(), nb::arg().none(), nb::arg(),
               nb::arg(), nb::arg(), nb::arg(), nb::arg(), nb::arg());
    nb::class_<WordIndex>(module, "WordIndex")
        .def(nb::init<>())
        .def("add", [](WordIndex& index, nb::bytes word) { return index.id(utf8(word), -1); })
        .def("read", &read_lines)
        .def("words", &words);
}
