// What the bindings share. A struct of a kernel's arguments is a class in Python whose constructor takes its
// fields by name: addresses of tensors and sizes as integers. What a caller leaves out is null or 0.
//
// Addresses and not arrays: asking a torch tensor for a capsule (DLPack) takes longer than a small call.
// The kernels trust them; nn/kernels.py compares shapes, types and layout.
#pragma once

#include <nanobind/nanobind.h>

#include <stdexcept>
#include <string>
#include <vector>

#include "recurrent.hpp"

void bind_recurrent(nanobind::module_& module);
void bind_softmax(nanobind::module_& module);
void bind_chain(nanobind::module_& module);
void bind_ngram(nanobind::module_& module);
void bind_words(nanobind::module_& module);
void bind_embed(nanobind::module_& module);
void bind_tree(nanobind::module_& module);
void bind_glove(nanobind::module_& module);

namespace unrolled {

[[noreturn]] inline void refuse_field(const char* name, const char* kind) {
    throw nanobind::type_error((std::string(name) + " must be " + kind).c_str());
}

template <class T>
void set_field(const char* name, T& field, nanobind::handle value) {
    if (!nanobind::try_cast(value, field)) refuse_field(name, "a number that fits");
}

template <class T>
void set_field(const char* name, T*& field, nanobind::handle value) {
    uintptr_t address;
    if (!nanobind::try_cast(value, address)) refuse_field(name, "an address");
    field = reinterpret_cast<T*>(address);
}

// The names of a struct's fields as Python has them, made once: looking them up then costs no new strings.
template <class Struct>
const std::vector<PyObject*>& field_names() {
    static const std::vector<PyObject*> names = [] {
        std::vector<PyObject*> result;
        Struct none{};
        each_field(none, [&](const char* name, auto&) {
            result.push_back(PyUnicode_InternFromString(name));
            if (!result.back()) throw nanobind::python_error();
        });
        return result;
    }();
    return names;
}

// Binds a struct whose fields `each_field` lists: visit(name, field) for each.
template <class Struct>
void bind_fields(nanobind::module_& module, const char* name) {
    auto init = [](Struct* self, nanobind::kwargs given) {
        new (self) Struct{};
        PyObject* const* next = field_names<Struct>().data();
        size_t used = 0;
        each_field(*self, [&](const char* field_name, auto& field) {
            PyObject* value = PyDict_GetItemWithError(given.ptr(), *next++);
            if (!value) return;
            set_field(field_name, field, value);
            ++used;
        });
        if (used != given.size()) throw nanobind::type_error("there is no field of this name");
    };
    nanobind::class_<Struct>(module, name).def("__init__", init);
}

inline void require(bool holds, const char* rule) {
    if (!holds) throw std::invalid_argument(rule);
}

}  // namespace unrolled
