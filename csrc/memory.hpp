// Memory that a call needs for a while, aligned to a cache line and not filled, and what the machine has
// of the fastest. Compiled once, for every machine.
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

// Lets the process keep what it frees, as far as the C library does so for programs with large tensors.
void keep_freed_memory();

// Bytes of the second-level cache of a core.
size_t core_cache();

}  // namespace unrolled
