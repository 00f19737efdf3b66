// Compiled once an instruction set; UNROLLED_ISA names it.
#include "chain.hpp"
#include "layer.hpp"
#include "softmax.hpp"

#define UNROLLED_TEXT_(name) #name
#define UNROLLED_TEXT(name) UNROLLED_TEXT_(name)

namespace UNROLLED_ISA {

extern const unrolled::Kernels kernels;
const unrolled::Kernels kernels = {
    UNROLLED_TEXT(UNROLLED_ISA), forward<float>,     forward<double>,   backward<float>,
    backward<double>,            pack_gates<float>,  pack_gates<double>, softmax<float>,
    softmax<double>,             chain_sums<float>,  chain_sums<double>, chain_best<float>,
    chain_best<double>,          UNROLLED_VECTOR_BYTES,
};

}  // namespace UNROLLED_ISA
