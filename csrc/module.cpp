// The compiled module as Python sees it: addresses and sizes in, nothing out.
//
// It trusts its callers: nn/kernels.py and models/ngram_kernels.py check shapes, types and layout.
#include <nanobind/nanobind.h>
#include <nanobind/stl/vector.h>

#include <numeric>
#include <stdexcept>
#include <string>

#include "memory.hpp"
#include "plan.hpp"
#include "recurrent.hpp"
#include "threads.hpp"

namespace nb = nanobind;
using namespace unrolled;

#define UNROLLED_DECLARE(isa)   \
    namespace isa {             \
    extern const Kernels kernels; \
    }
#ifdef UNROLLED_X86
UNROLLED_DECLARE(avx512)
UNROLLED_DECLARE(avx2)
#endif
UNROLLED_DECLARE(portable)

void bind_ngram(nb::module_& module);

namespace {

// What this machine can run, the best last.
std::vector<const Kernels*> supported() {
    std::vector<const Kernels*> result{&portable::kernels};
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

const Kernels* kernels = supported().back();

std::vector<const char*> available() {
    std::vector<const char*> names;
    for (const Kernels* each : supported()) names.push_back(each->name);
    return names;
}

const size_t cache = core_cache();

using Numbers = std::vector<int64_t>;

template <class T>
T* at(int64_t address) {
    return reinterpret_cast<T*>(address);
}

// A call's sizes: B, H, threads and T; lengths: none where all are T.
struct Sizes {
    Shape shape;
    Numbers lengths, offsets;

    Sizes(const Numbers& n, const Numbers& given)
        : shape{int(n[0]), int(n[1]), has_threads ? int(n[2]) : 1, n[3], nullptr, nullptr, cache},
          lengths(given.empty() ? Numbers(n[0], n[3]) : given), offsets(n[0]) {
        std::exclusive_scan(lengths.begin(), lengths.end(), offsets.begin(), int64_t(0));
        shape.lengths = lengths.data();
        shape.offsets = offsets.data();
    }
};

template <class T>
std::vector<Forward<T>> forwards(const std::vector<Numbers>& directions) {
    std::vector<Forward<T>> result;
    for (const Numbers& d : directions)
        result.push_back({d[0], at<T>(d[1]), at<T>(d[2]), at<T>(d[3]), at<T>(d[4]), at<T>(d[5]),
                          at<T>(d[6]), at<T>(d[7]), at<T>(d[8]), at<T>(d[9]), at<T>(d[10]),
                          at<T>(d[11]), d[12], d[13], at<T>(d[14]), at<T>(d[15]), at<T>(d[16]),
                          d[17], d[18], at<T>(d[19]), at<T>(d[20]), at<T>(d[21]), d[22]});
    return result;
}

template <class T>
std::vector<Backward<T>> backwards(const std::vector<Numbers>& directions) {
    std::vector<Backward<T>> result;
    for (const Numbers& d : directions)
        result.push_back({d[0], at<T>(d[1]), at<T>(d[2]), at<T>(d[3]), at<T>(d[4]), at<T>(d[5]),
                          at<T>(d[6]), at<T>(d[7]), at<T>(d[8]), d[9], d[10], at<T>(d[11]),
                          at<T>(d[12]), at<T>(d[13]), at<T>(d[14]), at<T>(d[15]), d[16], d[17],
                          at<T>(d[18]), d[19], at<T>(d[20]), at<T>(d[21]), at<T>(d[22]), at<T>(d[23]),
                          at<T>(d[24]), at<T>(d[25]), at<T>(d[26]), at<T>(d[27]), d[28], d[29]});
    return result;
}

Cell cell_of(const Numbers& cell) { return {int(cell[0]), int(cell[1]), int(cell[2])}; }

void forward(bool wide, const Numbers& cell_numbers, const Numbers& sizes, const Numbers& lengths,
             const std::vector<Numbers>& directions) {
    Cell cell = cell_of(cell_numbers);
    Sizes known(sizes, lengths);
    int D = int(directions.size());
    Plan plan = make_plan(cell, known.shape, D, wide ? 8 : 4);
    if (wide)
        kernels->forward64(cell, known.shape, plan, forwards<double>(directions).data(), D);
    else
        kernels->forward32(cell, known.shape, plan, forwards<float>(directions).data(), D);
}

void backward(bool wide, const Numbers& cell_numbers, const Numbers& sizes, const Numbers& lengths,
              const std::vector<Numbers>& directions) {
    Cell cell = cell_of(cell_numbers);
    Sizes known(sizes, lengths);
    int D = int(directions.size());
    Plan plan = make_plan(cell, known.shape, D, wide ? 8 : 4);
    if (wide)
        kernels->backward64(cell, known.shape, plan, backwards<double>(directions).data(), D);
    else
        kernels->backward32(cell, known.shape, plan, backwards<float>(directions).data(), D);
}

// How many numbers weights (G·H, K) take when they are packed.
int64_t packed_size(bool wide, int G, int H, int K) {
    int lanes = kernels->bytes / (wide ? 8 : 4);
    return int64_t(G) * ((H + lanes - 1) / lanes) * lanes * K;
}

void pack(bool wide, int64_t weights, int G, int H, int K, int64_t packed) {
    if (wide)
        kernels->pack64(at<double>(weights), G, H, K, at<double>(packed));
    else
        kernels->pack32(at<float>(weights), G, H, K, at<float>(packed));
}

template <class T>
Softmax<T> softmax_of(const Numbers& n, double smoothing) {
    return {at<T>(n[0]), at<T>(n[1]), at<int64_t>(n[2]), at<T>(n[3]), n[4], n[5], T(smoothing)};
}

void softmax(bool wide, const Numbers& numbers, double smoothing, int threads) {
    if (wide)
        kernels->softmax64(softmax_of<double>(numbers, smoothing), threads);
    else
        kernels->softmax32(softmax_of<float>(numbers, smoothing), threads);
}

template <class T>
Chain<T> chain_of(const Numbers& n) {
    return {at<T>(n[0]), at<T>(n[1]), at<int64_t>(n[2]), n[3], n[4], n[5], at<double>(n[6]),
            at<T>(n[7]), at<T>(n[8]), at<int64_t>(n[9]), at<T>(n[10])};
}

void chain_sums(bool wide, const Numbers& numbers, int threads) {
    if (wide)
        kernels->chain_sums64(chain_of<double>(numbers), threads);
    else
        kernels->chain_sums32(chain_of<float>(numbers), threads);
}

void chain_best(bool wide, const Numbers& numbers, int threads) {
    if (wide)
        kernels->chain_best64(chain_of<double>(numbers), threads);
    else
        kernels->chain_best32(chain_of<float>(numbers), threads);
}

void use(const char* name) {
    for (const Kernels* candidate : supported())
        if (std::string(candidate->name) == name) {
            kernels = candidate;
            return;
        }
    throw std::invalid_argument("there are no kernels of this name for this machine");
}

}  // namespace

NB_MODULE(_kernels, module) {
    nb::set_leak_warnings(false);
    keep_freed_memory();
    module.def("name", [] { return kernels->name; });
    module.def("available", [] { return available(); });
    module.def("use", &use);
    module.def("forward", &forward, nb::call_guard<nb::gil_scoped_release>());
    module.def("backward", &backward, nb::call_guard<nb::gil_scoped_release>());
    module.def("packed_size", &packed_size);
    module.def("pack", &pack, nb::call_guard<nb::gil_scoped_release>());
    module.def("softmax", &softmax, nb::call_guard<nb::gil_scoped_release>());
    module.def("chain_sums", &chain_sums, nb::call_guard<nb::gil_scoped_release>());
    module.def("chain_best", &chain_best, nb::call_guard<nb::gil_scoped_release>());
    bind_ngram(module);
}
