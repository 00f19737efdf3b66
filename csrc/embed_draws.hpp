// Chance for word vectors: each number a function of a key and a place (the splitmix64 of Steele et al. 2014).
#pragma once

#include <cstdint>

#include "embed.hpp"

namespace unrolled {

inline uint64_t draw(uint64_t key, uint64_t place) {
    uint64_t z = key + (place + 1) * 0x9E3779B97F4A7C15ull;
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9ull;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBull;
    return z ^ (z >> 31);
}

// 24 bits of a draw as a number of [0, 1).
inline float uniform(uint64_t drawn) { return float(drawn & 0xffffff) * (1.0f / (1 << 24)); }

// The upper 32 bits of a draw as a number below `count`.
inline int64_t below(uint64_t drawn, int64_t count) { return int64_t(((drawn >> 32) * uint64_t(count)) >> 32); }

inline int64_t noise(const EmbedRun& run, uint64_t place) {
    const uint64_t drawn = draw(~run.key, place);
    const int64_t word = below(drawn, run.V), other = run.alias_other[word];  // read in any case: no branch
    return uniform(drawn) < run.alias_share[word] ? word : other;
}

}  // namespace unrolled
