// Memory that a call needs for a while, aligned to a cache line and not filled.
#pragma once

#include <cstddef>

namespace unrolled {

struct Block {
    void* data = nullptr;
    size_t bytes = 0;
};

// Of at least so many bytes. What a thread gave back serves it again: fresh memory costs a page fault
// for every 4 KB, which took as long as half of the work on large weights.
Block borrow(size_t bytes);
void give_back(Block block);

// So many numbers of a type, for as long as this lives.
template <class T>
class Buffer {
   public:
    explicit Buffer(size_t size = 0) : block_(size ? borrow(size * sizeof(T)) : Block{}) {}
    Buffer(const Buffer&) = delete;
    Buffer& operator=(const Buffer&) = delete;
    ~Buffer() {
        if (block_.data) give_back(block_);
    }

    T* data() const { return static_cast<T*>(block_.data); }

   private:
    Block block_;
};

}  // namespace unrolled
