// Compiled once an instruction set; UNROLLED_ISA names it.
#include "tree_backward.hpp"
#include "tree_greedy.hpp"

namespace UNROLLED_ISA {

extern const unrolled::TreeKernels tree_kernels;
const unrolled::TreeKernels tree_kernels = {{tree_forward<float>, tree_backward<float>, tree_greedy<float>},
                                            {tree_forward<double>, tree_backward<double>, tree_greedy<double>}};

}  // namespace UNROLLED_ISA
