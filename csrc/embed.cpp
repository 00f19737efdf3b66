// Compiled once an instruction set; UNROLLED_ISA names it.
#include "embed_step.hpp"

namespace UNROLLED_ISA {

extern const unrolled::EmbedKernels embed_kernels;
const unrolled::EmbedKernels embed_kernels = {embed_train};

}  // namespace UNROLLED_ISA
