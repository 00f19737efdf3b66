#include "memory.hpp"

#include <algorithm>
#include <cstdlib>
#include <new>
#include <vector>

#ifdef __linux__
#include <sys/mman.h>
#include <unistd.h>
#endif

namespace unrolled {

namespace {

constexpr std::align_val_t line{64}, page{1 << 21};  // a large page
constexpr size_t large = 1 << 20;                    // bytes from which large pages pay
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr size_t most_kept = 0;  // so that every misuse shows
#else
constexpr size_t most_kept = 1 << 26;
#endif
constexpr size_t most_blocks = 32;

bool is_large(size_t bytes) { return bytes >= large; }

Block allocate(size_t bytes) {
    if (!is_large(bytes)) return {operator new[](bytes, line), bytes};
    bytes = (bytes + size_t(page) - 1) / size_t(page) * size_t(page);
    Block block{operator new[](bytes, page), bytes};
#ifdef __linux__
    madvise(block.data, bytes, MADV_HUGEPAGE);  // where it is refused, nothing is lost
#endif
    return block;
}

void release(Block block) { operator delete[](block.data, is_large(block.bytes) ? page : line); }

// What a thread has given back.
struct Shelf {
    std::vector<Block> blocks;
    size_t bytes = 0;

    ~Shelf() {
        for (Block block : blocks) release(block);
    }
};

thread_local Shelf shelf;

}  // namespace

Block borrow(size_t bytes) {
    auto best = shelf.blocks.end();
    for (auto block = shelf.blocks.begin(); block != shelf.blocks.end(); ++block) {
        bool fits = block->bytes >= bytes && block->bytes / 4 <= std::max(bytes, large);
        if (fits && (best == shelf.blocks.end() || block->bytes < best->bytes)) best = block;
    }
    if (best == shelf.blocks.end()) return allocate(bytes);
    Block found = *best;
    shelf.blocks.erase(best);
    shelf.bytes -= found.bytes;
    return found;
}

void give_back(Block block) {
    while (!shelf.blocks.empty() &&
           (shelf.blocks.size() >= most_blocks || shelf.bytes + block.bytes > most_kept)) {
        shelf.bytes -= shelf.blocks.front().bytes;  // the one that waits longest
        release(shelf.blocks.front());
        shelf.blocks.erase(shelf.blocks.begin());
    }
    if (block.bytes > most_kept) return release(block);
    shelf.blocks.push_back(block);
    shelf.bytes += block.bytes;
}

// glibc hands memory back to the system beyond twice the largest block that was ever freed (at most 32 MB
// count). A training step of a small layer lies just above, and had 200 to 1,000 pages anew at every
// step, a tenth of its time and more. One such block, never touched, raises the mark; who has set the
// marks with MALLOC_ variables keeps them.
void keep_freed_memory() {
    void* volatile never_touched = std::malloc(size_t(31) << 20);
    std::free(never_touched);
}

size_t core_cache() {
    constexpr long usual = 1 << 20, least = 1 << 18, most = 1 << 22;
    long bytes = 0;
#ifdef _SC_LEVEL2_CACHE_SIZE
    bytes = sysconf(_SC_LEVEL2_CACHE_SIZE);
#endif
    return size_t(bytes > 0 ? std::clamp(bytes, least, most) : usual);
}

}  // namespace unrolled
