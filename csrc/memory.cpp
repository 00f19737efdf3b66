#include "memory.hpp"

#include <algorithm>
#include <atomic>
#include <limits>
#include <new>

#ifdef __linux__
#include <sys/mman.h>
#include <unistd.h>
#endif

namespace unrolled {

namespace {

constexpr std::align_val_t line{64}, page{1 << 21};  // a large page
constexpr size_t large = 1 << 20;                    // bytes from which large pages pay
constexpr size_t most_bytes = std::numeric_limits<size_t>::max() / 2;
constexpr int most_buffers = 32;
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr size_t usually_kept = 0;  // so that every misuse shows
#else
constexpr size_t usually_kept = 1 << 26;
#endif

std::atomic<size_t> most_kept{usually_kept};

bool is_large(size_t bytes) { return bytes >= large; }

Memory allocate(size_t bytes) {
    if (!is_large(bytes)) return {operator new[](bytes, line), bytes};
    bytes = (bytes + size_t(page) - 1) / size_t(page) * size_t(page);
    Memory memory{operator new[](bytes, page), bytes};
#ifdef __linux__
    madvise(memory.data, bytes, MADV_HUGEPAGE);  // where it is refused, nothing is lost
#endif
    return memory;
}

void free_memory(Memory memory) noexcept {
    operator delete[](memory.data, is_large(memory.bytes) ? page : line);
}

// What a thread has released, the oldest first. It never allocates: releasing must not fail.
class BufferPool {
   public:
    ~BufferPool() {
        while (count_) drop_oldest();
    }

    // The smallest that is large enough, and not much too large; no data: there is none.
    Memory take(size_t bytes) noexcept {
        int best = -1;
        for (int i = 0; i < count_; ++i) {
            bool fits = buffers_[i].bytes >= bytes && buffers_[i].bytes / 4 <= std::max(bytes, large);
            if (fits && (best < 0 || buffers_[i].bytes < buffers_[best].bytes)) best = i;
        }
        return best < 0 ? Memory{} : removed(best);
    }

    void put(Memory memory) noexcept {
        size_t most = most_kept.load(std::memory_order_relaxed);
        while (count_ && (count_ == most_buffers || bytes_ + memory.bytes > most)) drop_oldest();
        if (memory.bytes > most) return free_memory(memory);
        buffers_[count_++] = memory;
        bytes_ += memory.bytes;
    }

   private:
    void drop_oldest() noexcept { free_memory(removed(0)); }

    Memory removed(int i) noexcept {
        Memory memory = buffers_[i];
        std::copy(buffers_ + i + 1, buffers_ + count_, buffers_ + i);
        --count_;
        bytes_ -= memory.bytes;
        return memory;
    }

    Memory buffers_[most_buffers];
    int count_ = 0;
    size_t bytes_ = 0;
};

thread_local BufferPool pool;

}  // namespace

Memory acquire(size_t count, size_t size) {
    if (count > most_bytes / size) throw std::bad_alloc();
    Memory memory = pool.take(count * size);
    return memory.data ? memory : allocate(count * size);
}

void release(Memory memory) noexcept { pool.put(memory); }

void keep_buffers(size_t bytes) noexcept { most_kept.store(bytes, std::memory_order_relaxed); }

size_t core_cache() {
    constexpr long usual = 1 << 20, least = 1 << 18, most = 1 << 22;
    long bytes = 0;
#ifdef _SC_LEVEL2_CACHE_SIZE
    bytes = sysconf(_SC_LEVEL2_CACHE_SIZE);
#endif
    return size_t(bytes > 0 ? std::clamp(bytes, least, most) : usual);
}

}  // namespace unrolled
