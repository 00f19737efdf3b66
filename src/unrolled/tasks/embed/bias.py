"""Take a direction out of word vectors, and measure what they associate.

    1 the direction g   first principal axis of pairs of words about their means (she he, …)
    2 neutralise        e − (eᵀg) g for words that should not have it
    3 equalise          words of a pair differ along g alone: equally far from neutral words

Bolukbasi et al. 2016, arXiv:1607.06520. WEAT: Caliskan et al. 2017, arXiv:1608.07187.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from unrolled.errors import ConfigError

Floats = NDArray[np.float64]


def units(table: Floats) -> Floats:
    """Rows at length 1; zeros stay zeros."""
    lengths = np.linalg.norm(table, axis=1, keepdims=True)
    return np.asarray(table / np.where(lengths > 0, lengths, 1.0))


def direction(first: Floats, second: Floats) -> Floats:
    """The axis along which the words of pairs (P, E) differ most: (E,), length 1."""
    half = (first - second) / 2.0
    _, scale, axes = np.linalg.svd(np.concatenate([half, -half]), full_matrices=False)
    if scale[0] == 0.0:
        raise ConfigError("the words of every pair have the same vector: there is no direction.")
    axis = axes[0]
    return np.asarray(axis if half.mean(0) @ axis >= 0 else -axis)


def neutralised(table: Floats, g: Floats) -> Floats:
    """Rows (N, E) without their part along g, at length 1."""
    without = table - np.outer(table @ g, g)
    return units(without)


def equalised(first: Floats, second: Floats, g: Floats) -> tuple[Floats, Floats]:
    """Pairs (P, E) that share all but their part along g, of length 1."""
    mean = (first + second) / 2.0
    shared = mean - np.outer(mean @ g, g)
    left = np.sqrt(np.maximum(0.0, 1.0 - (shared * shared).sum(1)))
    signs = np.sign((first - second) @ g)
    along = np.outer(signs * left, g)
    return shared + along, shared - along


def weat(x: Floats, y: Floats, a: Floats, b: Floats) -> float:
    """Effect size: how much more X than Y goes with A rather than B, in standard deviations."""
    x, y, a, b = map(units, (x, y, a, b))

    def associations(words: Floats) -> Floats:
        return np.asarray((words @ a.T).mean(1) - (words @ b.T).mean(1))

    of_x, of_y = associations(x), associations(y)
    spread = float(np.std(np.concatenate([of_x, of_y]), ddof=1))
    return float(of_x.mean() - of_y.mean()) / spread if spread > 0 else 0.0


def debiased(table: Floats, pairs: Sequence[tuple[int, int]], kept: Sequence[int]) -> Floats:
    """All rows (N, E) at length 1: pairs equalised, all others but `kept` neutralised."""
    table = units(table)
    first, second = (np.array(side) for side in zip(*pairs, strict=True))
    g = direction(table[first], table[second])
    made = neutralised(table, g)
    made[list(kept)] = table[list(kept)]
    made[first], made[second] = equalised(table[first], table[second], g)
    return made
