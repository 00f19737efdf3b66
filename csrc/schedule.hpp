// Who does what: rows to threads, or units to threads, and how threads wait for one another.
//
// Two ways to split a layer. By rows: each thread runs its own rows, and its own direction where
// there are two, from the first step to the last and never waits. By units: all threads run all
// rows, each some of the hidden units, and wait at a barrier once or twice a step; for weights that one core's
// cache cannot hold this halves what each core has to fetch, and it also serves a single row.
#pragma once

#include <algorithm>
#include <atomic>
#include <thread>

#include "buffer.hpp"
#include "plan.hpp"
#include "product.hpp"
#include "recurrent.hpp"
#include "threads.hpp"

namespace UNROLLED_ISA {

using unrolled::Activation;
using unrolled::Backward;
using unrolled::Forward;
using unrolled::GruCell;
using unrolled::LstmCell;
using unrolled::Output;
using unrolled::Peephole;
using unrolled::Reset;
using unrolled::RnnCell;
using unrolled::RowGroup;
using unrolled::Shape;
using unrolled::Update;

// Row i of a matrix (rows, width) that may not be there.
template <class T>
inline T* row_of(T* matrix, int64_t i, int width) {
    return matrix ? matrix + i * width : nullptr;
}

// Threads that spin until all have come: steps are too short for the system's own waiting.
class Barrier {
   public:
    explicit Barrier(int size) : size_(size) {}

    void wait() {
        if (size_ == 1) return;
        int round = round_.load(std::memory_order_acquire);
        if (arrived_.fetch_add(1, std::memory_order_acq_rel) == size_ - 1) {
            arrived_.store(0, std::memory_order_relaxed);
            round_.store(round + 1, std::memory_order_release);
            return;
        }
        for (int spins = 0; round_.load(std::memory_order_acquire) == round; ++spins)
            if (spins > 4096) std::this_thread::yield();
    }

   private:
    int size_;
    std::atomic<int> arrived_{0};
    std::atomic<int> round_{0};
};

// The part of the units that one thread of a team computes, in vectors.
struct Part {
    int first;
    int last;
    bool fetch_ahead;  // the next weights while these are in use
    Barrier* barrier;
    int thread;  // which one it is: whose workspace it uses

    // These units of a row of H; null: zeros, and to nowhere.
    template <class T>
    void copy(const T* from, T* to, int H) const {
        constexpr int L = Lanes<T>::count;
        int begin = first * L, end = std::min(H, last * L);
        if (!to || end <= begin) return;
        if (from) std::memcpy(to + begin, from + begin, (end - begin) * sizeof(T));
        else std::fill(to + begin, to + end, T(0));
    }

    // Each(v, width, next) for pieces of at most `most` vectors, to and fro from step to step: what was
    // used last is still in the cache. next is where the following piece begins, or v itself at the end.
    template <class Each>
    void sweep(int64_t step, int most, Each each) const {
        int units = last - first;
        int count = (units + most - 1) / most;
        bool is_odd = step % 2;
        auto begin = [&](int piece) { return first + units * piece / count; };
        for (int i = 0; i < count; ++i) {
            int piece = is_odd ? count - 1 - i : i;
            int after = is_odd ? piece - 1 : piece + 1;
            bool ends = !fetch_ahead || after < 0 || after == count;
            each(begin(piece), begin(piece + 1) - begin(piece), begin(ends ? piece : after));
        }
    }
};

// Pack `columns` columns, then run every (direction, group, part), each by one thread; when all are done,
// finish `threads` shares: finish(share, thread). Nothing that runs here may throw: memory is acquired
// before, for `threads` threads, however many there will be.
template <class Pack, class Run, class Finish>
void run_plan(const unrolled::Plan& plan, int threads, int directions, int columns, int units,
              bool fetch_ahead, Pack pack, Run run, Finish finish) {
    int groups = plan.count();
    int items = directions * groups;
    Barrier alone(1), all(threads);
#pragma omp parallel num_threads(threads)
    {
        int team = omp_get_num_threads();
        int me = omp_get_thread_num();
#pragma omp for schedule(static)
        for (int column = 0; column < columns; ++column) pack(column);
        if (plan.by_units && team == threads) {
            run(0, 0, Part{units * me / team, units * (me + 1) / team, fetch_ahead, &all, me});
        } else {
#pragma omp for schedule(dynamic, 1)
            for (int item = 0; item < items; ++item)
                run(item / groups, item % groups, Part{0, units, fetch_ahead, &alone, me});
        }
#pragma omp barrier
#pragma omp for schedule(static, 1)
        for (int share = 0; share < threads; ++share) finish(share, me);
    }
}

}  // namespace UNROLLED_ISA
