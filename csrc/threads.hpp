// Threads are OpenMP's. Where the compiler has none, its pragmas say nothing, and one thread does all.
#pragma once

#ifdef _OPENMP
#include <omp.h>
constexpr bool has_threads = true;
#else
constexpr bool has_threads = false;
static inline int omp_get_num_threads() { return 1; }
static inline int omp_get_thread_num() { return 0; }
#endif
