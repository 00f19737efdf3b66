"""The table of an n-gram model: a trie of log-probabilities and backoff weights, a level an order.

    log P(w | h) = log p(h w)                     where h w is in the table
                 = log b(h) + log P(w | h')       elsewhere; b is 1 where h is not in the table

Natural logarithms. A log of ZERO or less stands for −∞, as −99 to base 10 does in ARPA files.
"""

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

ZERO = -99.0 * math.log(10.0)


class Level(NamedTuple):
    """The n-grams of one order, N of them, sorted by prefix and last token."""

    words: NDArray[np.int32]  # (N,) last tokens, ascending within a prefix
    log_p: Floats  # (N,)
    log_b: Floats  # (N,) of the n-gram as a context; (0,) in the highest order
    begin: NDArray[np.int64]  # (N + 1,) where its continuations begin in the next level; (0,) too


@dataclass(frozen=True, eq=False)
class NgramTable:
    """All levels, the lowest first; there every token stands in its own place."""

    levels: tuple[Level, ...]
    missing: float = 0.0  # log weight of a context that is not in the table

    @property
    def order(self) -> int:
        return len(self.levels)


class Discounts(NamedTuple):
    """What was taken from counts of 1, 2, and 3 or more in one order; empty if nothing was."""

    values: tuple[float, ...]
    fallback: bool  # whether they are fixed ones, since the text is too small to tell
