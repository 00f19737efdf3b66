#include "tensors.hpp"

#include <algorithm>
#include <stdexcept>

namespace nb = nanobind;

namespace unrolled {

namespace {

// The beginning of DLPack's table, as its version 1 has it.
struct ExchangeTable {
    struct {
        uint32_t major;
        uint32_t minor;
    } version;
    void* older;
    void* allocate;
    void* managed_from_object;
    void* managed_to_object;
    int (*view_of_object)(void* object, nb::dlpack::dltensor* view);
    void* current_stream;
};

constexpr uint32_t known_version = 1;
constexpr int32_t cpu = 1;

const ExchangeTable* table = nullptr;
PyObject* tensor_type = nullptr;
PyObject* parameter_type = nullptr;

}  // namespace

void read_tensors(nb::type_object tensor, nb::type_object parameter, nb::capsule capsule) {
    auto* given = static_cast<const ExchangeTable*>(capsule.data("dlpack_exchange_api"));
    if (given->version.major != known_version || !given->view_of_object)
        throw std::invalid_argument("this torch gives its tensors in a way that is not known here");
    tensor_type = tensor.release().ptr();
    parameter_type = parameter.release().ptr();
    table = given;
}

bool look(PyObject* value, TensorView& view) {
    PyObject* type = reinterpret_cast<PyObject*>(Py_TYPE(value));
    if (!table || (type != tensor_type && type != parameter_type)) return false;
    nb::dlpack::dltensor seen;
    if (table->view_of_object(value, &seen) != 0) {
        PyErr_Clear();
        return false;
    }
    const bool is_float = seen.dtype.code == uint8_t(nb::dlpack::dtype_code::Float);
    const int bits = seen.dtype.bits;
    if (!is_float || (bits != 32 && bits != 64) || seen.dtype.lanes != 1) return false;
    if (seen.device.device_type != cpu) return false;
    char* data = static_cast<char*>(seen.data);
    view = {data ? data + seen.byte_offset : nullptr, seen.ndim, seen.shape, seen.strides, bits};
    return true;
}

static bool says_no(PyObject* tensor, PyObject* method) {
    nb::object answer = nb::steal(PyObject_CallMethodNoArgs(tensor, method));
    if (!answer.is_valid()) throw nb::python_error();
    return answer.ptr() == Py_False;
}

bool is_as_it_lies(PyObject* tensor) {
    static PyObject* const is_negative = PyUnicode_InternFromString("is_neg");
    static PyObject* const is_zero = PyUnicode_InternFromString("_is_zerotensor");
    return says_no(tensor, is_negative) && says_no(tensor, is_zero);
}

bool TensorView::has_shape(std::initializer_list<int64_t> shape) const {
    return axes == int(shape.size()) && std::equal(shape.begin(), shape.end(), sizes);
}

bool TensorView::is_contiguous() const {
    if (std::find(sizes, sizes + axes, 0) != sizes + axes) return true;
    int64_t step = 1;
    for (int axis = axes - 1; axis >= 0; --axis) {
        if (sizes[axis] != 1 && strides[axis] != step) return false;
        step *= sizes[axis];
    }
    return true;
}

}  // namespace unrolled
