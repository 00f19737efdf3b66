// The kernels that this machine can run, and which of them a call runs that does not say.
#pragma once

#include <string>
#include <vector>

#include "recurrent.hpp"

namespace unrolled {

// The best last.
std::vector<const KernelSet*> supported_sets();

// The default: the best, or what `use_set` has chosen. A call asks once, at its beginning.
const KernelSet& current_set();

// For the calls that begin from now on; std::invalid_argument where the machine has none of this name.
void use_set(const std::string& name);

template <class T>
const NumberKernels<T>& kernels_of(const KernelSet& set) {
    if constexpr (sizeof(T) == 4) {
        return set.float32;
    } else {
        return set.float64;
    }
}

}  // namespace unrolled
