// Torch's tensors as they lie in memory, read by the C functions that torch offers for it (DLPack's exchange
// table): all that a tensor says of itself in one call, where Python would take one for each size.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <initializer_list>

namespace unrolled {

// Where a tensor's numbers are, how many there are and how far apart. Good while the tensor lives.
struct TensorView {
    void* data = nullptr;
    int axes = 0;
    const int64_t* sizes = nullptr;
    const int64_t* strides = nullptr;
    int bits = 0;  // of a number: 32 or 64

    bool has_shape(std::initializer_list<int64_t> shape) const;
    bool is_contiguous() const;
};

// Let tensors be those of this class and of parameters, and their table be in this capsule.
void read_tensors(nanobind::type_object tensor, nanobind::type_object parameter, nanobind::capsule table);

// Whether it is a plain tensor of float32 or float64 in the processor's memory; then it is looked at.
bool look(PyObject* value, TensorView& view);

// Whether its numbers are those in its memory: not their negatives, and not zeros without memory.
bool is_as_it_lies(PyObject* tensor);

}  // namespace unrolled
