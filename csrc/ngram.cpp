// The n-gram kernels as Python sees them: arrays are checked here and used in place.

#include "ngram.hpp"

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/vector.h>

#include <memory>
#include <stdexcept>
#include <vector>

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
    nb::class_<WordIndex>(module, "WordIndex")
        .def(nb::init<>())
        .def("add", [](WordIndex& index, nb::bytes word) { return index.id(utf8(word), -1); })
        .def("read", &read_lines)
        .def("words", &words);
}
