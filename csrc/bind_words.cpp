// The index of words as Python sees it. Where lines are Python's own, the interpreter lock is kept.

#include <nanobind/ndarray.h>

#include <memory>
#include <stdexcept>
#include <string_view>
#include <utility>
#include <vector>

#include "bindings.hpp"
#include "letters.hpp"
#include "words.hpp"

namespace nb = nanobind;
using namespace nb::literals;
using namespace unrolled;

namespace {

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

using Table = nb::ndarray<const uint32_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;

// The words of whole lines of UTF-8. Two threads must not read with one index at once.
nb::tuple read_letters(WordIndex& index, nb::bytes text, Table table) {
    require(table.size() >= 0x80, "a table of letters begins with those of ASCII");
    std::vector<int32_t> ids;
    std::vector<int64_t> lengths;
    {
        const std::string_view lines = utf8(text);
        nb::gil_scoped_release meanwhile;
        LetterReader(table.data(), table.size()).read(lines, index, ids, lengths);
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

void bind_words(nb::module_& module) {
    nb::class_<WordIndex>(module, "WordIndex")
        .def(nb::init<>())
        .def("add", [](WordIndex& index, nb::bytes word) { return index.id(utf8(word), -1); }, "word"_a)
        .def("read", &read_lines, "lines"_a, "unknown"_a)
        .def("read_letters", &read_letters, "text"_a, "table"_a)
        .def("words", &words);
}
