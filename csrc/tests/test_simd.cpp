// The gates' functions against long double, on a dense grid and at the ends of the number line.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <initializer_list>
#include <limits>

#include "../simd.hpp"

namespace {

using namespace UNROLLED_ISA;

int failures = 0;

long double true_sigmoid(long double x) { return 1 / (1 + std::exp(-x)); }
long double true_tanh(long double x) { return std::tanh(x); }

// How far y is from what it should be, in units of the last place; numbers below the smallest
// normal one count as 0.
template <class T>
double error(T y, long double wanted) {
    long double least = std::numeric_limits<T>::min();
    long double size = std::max(std::abs(wanted), least);
    long double unit = std::ldexp((long double)std::numeric_limits<T>::epsilon(), std::ilogb(size));
    long double off = std::abs(y - wanted);
    return off < least ? 0 : double(off / unit);
}

template <class T>
struct Worst {
    double error = 0;
    T at = 0;
};

template <class T, class Function, class True>
void compare(T x, Function function, True wanted, Worst<T>& worst) {
    Vec<T> y = function(splat<T>(x));
    double off = error<T>(y[Lanes<T>::count - 1], wanted((long double)x));
    if (!(off <= worst.error)) worst = {off, x};
}

template <class T, class Function, class True>
void check_grid(const char* name, Function function, True wanted) {
    Worst<T> worst;
    for (int i = -400000; i <= 400000; ++i) compare<T>(T(i) * T(2.5e-4), function, wanted, worst);
    for (double size = std::numeric_limits<T>::min() * 4.0; size < 1e3; size *= 1.003)
        for (double x : {size, -size}) compare<T>(T(x), function, wanted, worst);
    std::printf("%s, %d bits: at most %.2f units in the last place, at %.9g\n", name,
                int(8 * sizeof(T)), worst.error, double(worst.at));
    if (!(worst.error <= 3)) ++failures;
}

template <class T, class Function>
void check_value(const char* name, Function function, T x, T wanted) {
    Vec<T> y = function(splat<T>(x));
    for (int lane = 0; lane < Lanes<T>::count; ++lane) {
        bool same = std::isnan(wanted) ? std::isnan(y[lane])
                                       : y[lane] == wanted &&
                                             std::signbit(y[lane]) == std::signbit(wanted);
        if (same) continue;
        ++failures;
        std::printf("%s(%g) is %g, not %g\n", name, double(x), double(y[lane]), double(wanted));
        return;
    }
}

template <class T>
void check() {
    auto s = [](Vec<T> x) { return vsigmoid<T>(x); };
    auto t = [](Vec<T> x) { return vtanh<T>(x); };
    check_grid<T>("sigmoid", s, true_sigmoid);
    check_grid<T>("tanh", t, true_tanh);
    // Of what is not above 0, down to where e^x is held.
    const T least = ExpConstants<T>::least;
    check_grid<T>("exp", [](Vec<T> x) { return vexp<T>(x < T(0) ? x : -x); },
                  [=](long double x) { return std::exp(std::max<long double>(-std::abs(x), least)); });
    check_value<T>("exp", [](Vec<T> x) { return vexp<T>(x); }, 0, 1);
    check_grid<T>("log", [](Vec<T> x) { return vlog<T>(T(1) + (x < T(0) ? -x : x)); },
                  [](long double x) { return std::log((long double)T(1 + std::abs(T(x)))); });
    const T infinity = std::numeric_limits<T>::infinity(), most = std::numeric_limits<T>::max();
    const T none = std::numeric_limits<T>::quiet_NaN();
    for (T huge : {infinity, most, T(1e4)}) {
        check_value<T>("sigmoid", s, huge, 1);
        check_value<T>("sigmoid", s, -huge, 0);
        check_value<T>("tanh", t, huge, 1);
        check_value<T>("tanh", t, -huge, -1);
    }
    for (T zero : {T(0.0), T(-0.0)}) {
        check_value<T>("sigmoid", s, zero, T(0.5));
        check_value<T>("tanh", t, zero, zero);
    }
    check_value<T>("sigmoid", s, none, none);
    check_value<T>("tanh", t, none, none);
    check_value<T>("log", [](Vec<T> x) { return vlog<T>(x); }, none, none);
}

}  // namespace

int main() {
    check<float>();
    check<double>();
    std::printf("simd, vectors of %d bytes: %d failures\n", UNROLLED_VECTOR_BYTES, failures);
    return failures != 0;
}
