// Memory that a call needs for a while, aligned to a cache line and not filled, and what the machine has
// of the fastest. Compiled once, for every machine.
#pragma once

#include <cstddef>

namespace unrolled {

struct Memory {
    void* data = nullptr;
    size_t bytes = 0;
};

// Room for `count` numbers of `size` bytes; std::bad_alloc where there is none. What a thread has released
// serves it again: fresh memory costs a page fault for every 4 KB, which took as long as half of the work on
// large weights. No kernel acquires memory within a parallel region: an exception could not leave it.
Memory acquire(size_t count, size_t size);
void release(Memory memory) noexcept;

// How many bytes each thread keeps of what it has released: 64 MB unless told, 0 for none. Less takes
// effect when a thread next releases something.
void keep_buffers(size_t bytes) noexcept;

// Bytes of the second-level cache of a core.
size_t core_cache();

}  // namespace unrolled
