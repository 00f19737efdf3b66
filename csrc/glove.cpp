// Compiled once an instruction set; UNROLLED_ISA names it.
#include "glove_step.hpp"

namespace UNROLLED_ISA {

extern const unrolled::GloveKernels glove_kernels;
const unrolled::GloveKernels glove_kernels = {glove_train};

}  // namespace UNROLLED_ISA
