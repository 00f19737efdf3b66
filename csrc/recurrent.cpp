// Compiled once an instruction set; UNROLLED_ISA names it.
#include "chain.hpp"
#include "embed.hpp"
#include "glove.hpp"
#include "layer.hpp"
#include "softmax.hpp"
#include "tree.hpp"

#define UNROLLED_TEXT_(name) #name
#define UNROLLED_TEXT(name) UNROLLED_TEXT_(name)

namespace UNROLLED_ISA {

template <class T>
constexpr unrolled::NumberKernels<T> number_kernels() {
    return {forward<T, RnnCell>,  forward<T, LstmCell>,  forward<T, GruCell>,
            backward<T, RnnCell>, backward<T, LstmCell>, backward<T, GruCell>,
            pack_gates<T>,        softmax<T>,            chain_sums<T>,
            chain_best<T>};
}

extern const unrolled::EmbedKernels embed_kernels;
extern const unrolled::GloveKernels glove_kernels;
extern const unrolled::TreeKernels tree_kernels;
extern const unrolled::KernelSet kernels;
const unrolled::KernelSet kernels = {UNROLLED_TEXT(UNROLLED_ISA), UNROLLED_VECTOR_BYTES,
                                     number_kernels<float>(), number_kernels<double>(),
                                     &embed_kernels, &tree_kernels, &glove_kernels};

}  // namespace UNROLLED_ISA
