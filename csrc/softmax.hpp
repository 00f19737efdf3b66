// The softmax of many rows, its cross-entropy and its gradient: each row is read and written while it
// is in the cache, instead of six times over all rows.
#pragma once

#include <algorithm>
#include <cmath>

#include "recurrent.hpp"
#include "simd.hpp"

namespace UNROLLED_ISA {

using unrolled::Softmax;

// One row z of V numbers, without its bias. Leaves ∂nats/∂z there and returns the nats:
//
//     nats = log Σ_v exp(z_v) − Σ_v q_v z_v,   ∂nats/∂z_v = softmax(z)_v − q_v,
//
// where q is 1 − ε at the right token, and ε / V is added everywhere.
template <class T>
class SoftmaxRow {
   public:
    SoftmaxRow(const Softmax<T>& rows, int64_t row)
        : z_(rows.z + row * rows.V), bias_(rows.bias), V_(rows.V), right_(rows.targets[row]),
          smoothing_(T(rows.smoothing)) {}

    T operator()() {
        T z_right = z_[right_] + bias_[right_];
        T mean = smoothing_ ? total() / V_ : 0;
        T top = most();
        T sum = exponentials(top);
        T wanted = (1 - smoothing_) * (z_right - top) + smoothing_ * (mean - top);
        scale(1 / sum, smoothing_ / V_);
        z_[right_] -= 1 - smoothing_;
        return std::log(sum) - wanted;
    }

   private:
    static constexpr int L = Lanes<T>::count;
    static constexpr int chains = 4;  // sums side by side, that none waits for another

    // For every vector of the row: each(chain, where it is, how many lanes are real).
    template <class Each>
    void sweep(Each each) {
        int64_t v = 0;
        for (; v + chains * L <= V_; v += chains * L)
#pragma GCC unroll 4
            for (int chain = 0; chain < chains; ++chain) each(chain, v + chain * L, L);
        for (; v < V_; v += L) each(0, v, int(std::min<int64_t>(L, V_ - v)));
    }

    Vec<T> score(int64_t v, int n) const { return load(z_ + v, n) + load(bias_ + v, n); }

    T total() {
        Vec<T> sums[chains] = {};
        sweep([&](int chain, int64_t v, int n) { sums[chain] += score(v, n); });
        return sum<T>((sums[0] + sums[1]) + (sums[2] + sums[3]));
    }

    T most() {
        Vec<T> tops[chains];
        for (Vec<T>& top : tops) top = splat<T>(z_[0] + bias_[0]);
        sweep([&](int chain, int64_t v, int n) {
            Vec<T> value = n == L ? score(v, n) : last_scores(v, n);
            tops[chain] = value > tops[chain] ? value : tops[chain];
        });
        T top = tops[0][0];
        for (const Vec<T>& some : tops)
            for (int lane = 0; lane < L; ++lane) top = std::max(top, T(some[lane]));
        return top;
    }

    // Fewer than a vector's; the first again where there are none.
    Vec<T> last_scores(int64_t v, int n) const {
        Vec<T> value = score(v, n);
        for (int lane = n; lane < L; ++lane) value[lane] = z_[v] + bias_[v];
        return value;
    }

    // z becomes exp(z + b − top); their sum.
    T exponentials(T top) {
        Vec<T> sums[chains] = {};
        sweep([&](int chain, int64_t v, int n) {
            Vec<T> value = vexp<T>(score(v, n) - top);
            store(z_ + v, value, n);
            sums[chain] += n == L ? value : load(z_ + v, n);
        });
        return sum<T>((sums[0] + sums[1]) + (sums[2] + sums[3]));
    }

    void scale(T by, T less) {
        sweep([&](int, int64_t v, int n) { store(z_ + v, load(z_ + v, n) * by - less, n); });
    }

    T* z_;
    const T* bias_;
    int64_t V_;
    int64_t right_;  // the target
    T smoothing_;
};

template <class T>
void softmax(const Softmax<T>& rows, [[maybe_unused]] int threads) {
#pragma omp parallel for num_threads(threads) schedule(static)
    for (int64_t row = 0; row < rows.N; ++row) rows.nats[row] = SoftmaxRow<T>(rows, row)();
}

}  // namespace UNROLLED_ISA
