"""The table of an n-gram model: a trie of log-probabilities and backoff weights, a level an order.

    log P(w | h) = log p(h w)                     where h w is in the table
                 = log b(h) + log P(w | h')       elsewhere; b is 1 where h is not in the table

Natural logarithms. A log of ZERO or less stands for −∞, as −99 to base 10 does in ARPA files.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from unrolled.config.ngram import NgramSettings
from unrolled.models.ngram_counts import Grams
from unrolled.models.ngram_scratch import Scratch
from unrolled.models.ngram_smoothing import AT_ONCE, estimate

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


def build_table(
    grams: Sequence[Grams], settings: NgramSettings, scratch: Scratch | None = None
) -> tuple[NgramTable, list[Discounts]]:
    """Probabilities from counts, with what the settings prune left out."""
    scratch = scratch or Scratch()
    estimates = list(estimate(grams, settings, scratch))
    places = [
        _kept_places(level, cutoff, scratch)
        for level, cutoff in zip(grams, settings.cutoffs, strict=True)
    ]
    levels = []
    for k, (level, found) in enumerate(zip(grams, estimates, strict=True)):
        log_b: Floats = np.zeros(0)
        begin: NDArray[np.int64] = np.zeros(0, np.int64)
        if k + 1 < len(grams):
            log_b = _logs(_kept(estimates[k + 1].back, places[k], scratch))
            begin = _kept_begin(grams[k + 1].begin, places[k], places[k + 1], scratch)
        words = _kept(level.words, places[k], scratch)
        levels.append(Level(words, _logs(_kept(found.p, places[k], scratch)), log_b, begin))
    missing = math.log(settings.stupid_factor) if settings.smoothing == "stupid" else 0.0
    return NgramTable(tuple(levels), missing), [
        Discounts(e.discounts, e.fallback) for e in estimates
    ]


def _kept_places(level: Grams, cutoff: int, scratch: Scratch) -> NDArray[np.int64] | None:
    """Which n-grams are seen more often than that; None: all."""
    if cutoff == 0:
        return None
    starts = range(0, len(level), AT_ONCE)
    pieces = (
        start + np.flatnonzero(level.count[start : start + AT_ONCE] > cutoff) for start in starts
    )
    return scratch.joined(pieces, np.int64)


def _kept(values: NDArray[Any], places: NDArray[np.int64] | None, scratch: Scratch) -> NDArray[Any]:
    if places is None:
        return values
    kept = scratch.empty(len(places), values.dtype)
    np.take(values, places, out=kept)
    return kept


def _kept_begin(
    begin: NDArray[np.int64],
    places: NDArray[np.int64] | None,
    next_places: NDArray[np.int64] | None,
    scratch: Scratch,
) -> NDArray[np.int64]:
    """Where continuations begin, when only those at `next_places` are left of them."""
    if next_places is None:
        return begin
    ends = _kept(begin[1:], places, scratch)
    kept = scratch.zeros(len(ends) + 1, np.int64)
    for start in range(0, len(ends), AT_ONCE):
        here = slice(start, start + AT_ONCE)
        kept[1:][here] = np.searchsorted(next_places, ends[here])
    return kept


def _logs(values: Floats) -> Floats:
    """Logarithms, in place."""
    with np.errstate(divide="ignore"):
        np.log(values, out=values)
    return np.maximum(values, ZERO, out=values)
