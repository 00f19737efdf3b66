// Vectors of floats as wide as the instruction set has them, and the functions that gates need.
//
// Written with the vector types of GCC and Clang: the same lines become AVX-512, AVX2, SSE or NEON,
// as the compiler is told. This header is compiled once an instruction set, each time in a
// namespace of its own (UNROLLED_ISA), so that no two of them mix at link time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <type_traits>

#if defined(__AVX512F__)
#include <immintrin.h>
#define UNROLLED_VECTOR_BYTES 64
#define UNROLLED_ACCUMULATORS 24  // of 32 registers
#elif defined(__AVX2__)
#define UNROLLED_VECTOR_BYTES 32
#define UNROLLED_ACCUMULATORS 12  // of 16 registers
#elif defined(__aarch64__)
#define UNROLLED_VECTOR_BYTES 16
#define UNROLLED_ACCUMULATORS 24
#else
#define UNROLLED_VECTOR_BYTES 16
#define UNROLLED_ACCUMULATORS 12
#endif

#define UNROLLED_INLINE __attribute__((always_inline)) inline  // a call would spill every vector
#define UNROLLED_FLAT __attribute__((flatten))  // all that is called within is inlined

namespace UNROLLED_ISA {

template <class T>
struct Lanes {
    static constexpr int count = UNROLLED_VECTOR_BYTES / sizeof(T);
    typedef T vec __attribute__((vector_size(UNROLLED_VECTOR_BYTES)));
    using bits = std::conditional_t<sizeof(T) == 4, uint32_t, uint64_t>;
    typedef bits ivec __attribute__((vector_size(UNROLLED_VECTOR_BYTES)));
};

template <class T>
using Vec = typename Lanes<T>::vec;

template <class T>
inline Vec<T> splat(T value) {
    return value - Vec<T>{};
}

template <class T>
inline Vec<T> load(const T* from) {
    Vec<T> value;
    std::memcpy(&value, from, sizeof value);
    return value;
}

template <class T>
inline void store(T* to, Vec<T> value) {
    std::memcpy(to, &value, sizeof value);
}

// The first `count` lanes alone; the others are 0. For the last units of a layer.
template <class T>
inline Vec<T> load(const T* from, int count) {
    if (count >= Lanes<T>::count) return load(from);
    Vec<T> value{};
    std::memcpy(&value, from, count * sizeof(T));
    return value;
}

template <class T>
inline void store(T* to, Vec<T> value, int count) {
    if (count >= Lanes<T>::count) return store(to, value);
    std::memcpy(to, &value, count * sizeof(T));
}

// Past the caches, where the machine can: for what will not be read again before it has left them.
template <class T>
inline void stream(T* to, Vec<T> value, int count) {
#if defined(__AVX512F__)
    if (count >= Lanes<T>::count && reinterpret_cast<uintptr_t>(to) % sizeof value == 0)
        return _mm512_stream_si512(reinterpret_cast<__m512i*>(to), (__m512i)value);
#endif
    store(to, value, count);
}

// What was streamed is there for every thread.
inline void end_stream() {
#if defined(__AVX512F__)
    _mm_sfence();
#endif
}

template <class T>
inline T sum(Vec<T> value) {
    T part[Lanes<T>::count];
    store(part, value);
#pragma GCC unroll 8
    for (int width = Lanes<T>::count / 2; width; width /= 2)
#pragma GCC unroll 8
        for (int lane = 0; lane < width; ++lane) part[lane] += part[lane + width];
    return part[0];
}

template <class T>
struct ExpConstants;

template <>
struct ExpConstants<float> {
    static constexpr float log2e = 1.44269504f;
    static constexpr float ln2_high = 0.693145752f;
    static constexpr float ln2_low = 1.42860677e-6f;
    static constexpr float round = 12582912.0f;  // 1.5 · 2^23: adding it leaves the integer part
    static constexpr int mantissa = 23;
    static constexpr float least = -87.0f;
    static constexpr float most = 88.0f;
    static constexpr int terms = 7;
};

template <>
struct ExpConstants<double> {
    static constexpr double log2e = 1.4426950408889634;
    static constexpr double ln2_high = 0.69314718036912382;
    static constexpr double ln2_low = 1.9082149292705877e-10;
    static constexpr double round = 6755399441055744.0;  // 1.5 · 2^52
    static constexpr int mantissa = 52;
    static constexpr double least = -708.0;
    static constexpr double most = 709.0;
    static constexpr int terms = 13;
};

template <class T>
constexpr T inverse_factorial(int n) {
    double product = 1;
    for (int factor = 2; factor <= n; ++factor) product *= factor;
    return T(1 / product);
}

// e^x = 2^n e^r with x = n log 2 + r, |r| ≤ log(2)/2, and e^r − 1 by its series in Horner's form. For x up
// to `most`: beyond, 2^n is none of T's numbers.
template <class T>
struct Power {
    Vec<T> scale;    // 2^n
    Vec<T> above_1;  // e^r − 1
};

template <class T>
UNROLLED_INLINE Power<T> power(Vec<T> x) {
    using C = ExpConstants<T>;
    using Bits = typename Lanes<T>::ivec;
    x = x < C::least ? splat<T>(C::least) : x;
    Vec<T> shifted = x * C::log2e + C::round;
    Vec<T> n = shifted - C::round;
    Vec<T> r = (x - n * C::ln2_high) - n * C::ln2_low;
    Vec<T> series = splat<T>(inverse_factorial<T>(C::terms));  // 1/1! + r/2! + r²/3! + …
#pragma GCC unroll 16
    for (int term = C::terms - 1; term >= 1; --term)
        series = series * r + inverse_factorial<T>(term);
    Bits exponent = ((Bits)shifted << C::mantissa);  // the integer n sits in the low bits
    return {(Vec<T>)(exponent + (Bits)splat<T>(T(1))), series * r};
}

template <class T>
UNROLLED_INLINE Vec<T> vexp(Vec<T> x) {
    Power<T> p = power<T>(x);
    return p.scale * p.above_1 + p.scale;
}

// Near 0, n is 0 and nothing cancels: the relative error stays small.
template <class T>
UNROLLED_INLINE Vec<T> vexpm1(Vec<T> x) {
    Power<T> p = power<T>(x);
    return p.scale * p.above_1 + (p.scale - T(1));
}

// log x for x of 1 and more: x = 2^n m with m in [√½, √2), and log m = 2 (s + s³/3 + s⁵/5 + …), where
// s = (m − 1) / (m + 1).
template <class T>
UNROLLED_INLINE Vec<T> vlog(Vec<T> x) {
    using C = ExpConstants<T>;
    using Bits = typename Lanes<T>::ivec;
    Bits least = (Bits)splat<T>(T(0.70710678118654752)), above = (Bits)x - least;
    Bits whole = above >> C::mantissa;
    Vec<T> n = __builtin_convertvector(whole, Vec<T>);
    Vec<T> m = (Vec<T>)(above - (whole << C::mantissa) + least);
    Vec<T> s = (m - T(1)) / (m + T(1)), square = s * s;
    constexpr int terms = sizeof(T) == 4 ? 5 : 11;
    Vec<T> series = splat<T>(T(2.0 / (2 * terms - 1)));
#pragma GCC unroll 16
    for (int term = terms - 2; term >= 0; --term) series = series * square + T(2.0 / (2 * term + 1));
    Vec<T> y = n * C::ln2_high + (n * C::ln2_low + s * series);
    return x != x ? x : y;
}

// 1 / x for x of 1 and more. A division takes as long as eight products: where the machine can guess
// 14 bits, one step of Newton's gives the others.
template <class T>
UNROLLED_INLINE Vec<T> inverse(Vec<T> x) {
#if defined(__AVX512F__)
    if constexpr (sizeof(T) == 4) {
        __m512 guess = _mm512_maskz_rcp14_ps(__mmask16(-1), (__m512)x);
        __m512 off = _mm512_fnmadd_ps((__m512)x, guess, _mm512_set1_ps(1));
        return (Vec<T>)_mm512_fmadd_ps(guess, off, guess);
    }
#endif
    return T(1) / x;
}

template <class T>
UNROLLED_INLINE Vec<T> vsigmoid(Vec<T> x) {
    Vec<T> y = inverse<T>(T(2) + vexpm1<T>(-x));
    return x < -ExpConstants<T>::most ? Vec<T>{} : y;
}

// tanh x = −e / (2 + e) with e = e^(−2x) − 1, on |x| so that e stays in [−1, 0]; then the sign of x.
template <class T>
UNROLLED_INLINE Vec<T> vtanh(Vec<T> x) {
    using Bits = typename Lanes<T>::ivec;
    Bits minus = (Bits)splat<T>(T(-0.0));
    Vec<T> e = vexpm1<T>(T(2) * (Vec<T>)((Bits)x | minus));
    Vec<T> y = (T(0) - e) * inverse<T>(T(2) + e);
    return (Vec<T>)((Bits)y | ((Bits)x & minus));
}

}  // namespace UNROLLED_ISA
