// Numbers that a call needs for a while. Compiled once an instruction set, as simd.hpp.
#pragma once

#include "memory.hpp"

namespace UNROLLED_ISA {

// So many numbers, not filled, for as long as this lives; std::bad_alloc where there is no room.
template <class T>
class Buffer {
   public:
    explicit Buffer(size_t count = 0) {
        if (count) memory_ = unrolled::acquire(count, sizeof(T));
    }
    Buffer(const Buffer&) = delete;
    Buffer& operator=(const Buffer&) = delete;
    ~Buffer() {
        if (memory_.data) unrolled::release(memory_);
    }

    T* data() const { return static_cast<T*>(memory_.data); }

    // Where slice i begins, of slices of so many numbers; null where there are none at all.
    T* slice(size_t i, size_t size) const { return memory_.data ? data() + i * size : nullptr; }

   private:
    unrolled::Memory memory_;
};

}  // namespace UNROLLED_ISA
