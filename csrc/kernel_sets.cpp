#include "kernel_sets.hpp"

#include <atomic>
#include <stdexcept>

#define UNROLLED_DECLARE(isa)                \
    namespace isa {                          \
    extern const unrolled::KernelSet kernels; \
    }
#ifdef UNROLLED_X86
UNROLLED_DECLARE(avx512)
UNROLLED_DECLARE(avx2)
#endif
UNROLLED_DECLARE(portable)

namespace unrolled {

std::vector<const KernelSet*> supported_sets() {
    std::vector<const KernelSet*> result{&portable::kernels};
#ifdef UNROLLED_X86
    __builtin_cpu_init();
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"))
        result.push_back(&avx2::kernels);
    if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
        __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl") &&
        __builtin_cpu_supports("avx512cd"))
        result.push_back(&avx512::kernels);
#endif
    return result;
}

static std::atomic<const KernelSet*>& chosen() {
    static std::atomic<const KernelSet*> set{supported_sets().back()};
    return set;
}

const KernelSet& current_set() { return *chosen().load(std::memory_order_relaxed); }

void use_set(const std::string& name) {
    for (const KernelSet* set : supported_sets())
        if (set->name == name) return chosen().store(set, std::memory_order_relaxed);
    throw std::invalid_argument("there are no kernels of the name '" + name + "' for this machine");
}

}  // namespace unrolled
