"""Chance in training word vectors: which words are skipped, how wide windows are, which negatives.

Each number is a function of a key and a place in the corpus (splitmix64, as csrc/embed_draws.hpp
has it), so the compiled trainer and its twin in torch see the same examples.
"""

import numpy as np
from numpy.typing import NDArray

from unrolled.nn.embed_kernels import MASK, Chances

Longs = NDArray[np.int64]
Draws = NDArray[np.uint64]

GOLDEN = 0x9E3779B97F4A7C15


def draws(key: int, places: Longs) -> Draws:
    """A number of 64 bits for each place."""
    with np.errstate(over="ignore"):
        z = np.uint64(key) + (places.astype(np.uint64) + np.uint64(1)) * np.uint64(GOLDEN)
        z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        return np.asarray(z ^ (z >> np.uint64(31)))


def key_of(seed: int, epoch: int) -> int:
    """The key of an epoch's draws."""
    return int(draws(seed & MASK, np.array([epoch]))[0])


def uniform(drawn: Draws) -> NDArray[np.float32]:
    """24 bits of each as a number of [0, 1)."""
    return (drawn & np.uint64(0xFFFFFF)).astype(np.float32) * np.float32(2.0**-24)


def below(drawn: Draws, count: int) -> Longs:
    """The upper 32 bits of each as a number below `count`."""
    return (((drawn >> np.uint64(32)) * np.uint64(count)) >> np.uint64(32)).astype(np.int64)


def noise(chances: Chances, key: int, places: Longs) -> Longs:
    """Words drawn from the noise distribution, one a place."""
    drawn = draws(~key & MASK, places)
    words = below(drawn, len(chances.alias_share))
    return np.where(uniform(drawn) < chances.alias_share[words], words, chances.alias_other[words])


def chances_of(counts: Longs, *, subsample: float, noise_power: float) -> Chances:
    """Of words that come so often.

    A word of frequency f is kept with probability (√(f/t) + 1) t/f where that is below 1, t being
    `subsample` (as word2vec's code does it; Mikolov et al. 2013, arXiv:1310.4546, has √(t/f)).
    """
    f = counts / counts.sum()
    keep = np.ones(len(counts))
    if subsample:
        keep = np.minimum((np.sqrt(f / subsample) + 1.0) * subsample / f, 1.0)
    share, other = alias_table(counts.astype(np.float64) ** noise_power)
    return Chances(keep.astype(np.float32), share.astype(np.float32), other)


def alias_table(weights: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.int32]]:
    """To draw k with probability weights[k] / Σ weights: a place, then it or its other (Vose 1991).

    Draw a place at random; it is taken with probability share[place], else other[place].
    """
    scaled = weights * (len(weights) / weights.sum())
    share, other = [1.0] * len(weights), list(range(len(weights)))
    left, small = scaled.tolist(), np.flatnonzero(scaled < 1.0).tolist()
    large = np.flatnonzero(scaled >= 1.0).tolist()
    while small and large:
        little, much = small.pop(), large[-1]
        share[little], other[little] = left[little], much
        left[much] -= 1.0 - left[little]
        if left[much] < 1.0:
            small.append(large.pop())
    return np.array(share), np.array(other, dtype=np.int32)
