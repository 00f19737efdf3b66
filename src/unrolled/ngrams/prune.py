"""Leave n-grams out of a table: those that were seen no more often than a count."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from unrolled.ngrams.counts import Grams
from unrolled.ngrams.scratch import Scratch
from unrolled.ngrams.smoothing import AT_ONCE

Kept = NDArray[np.int64] | None  # which n-grams of an order stay; None: all


def kept_places(level: Grams, cutoff: int, scratch: Scratch) -> Kept:
    """Which n-grams are seen more often than that; None: all."""
    if cutoff == 0:
        return None
    starts = range(0, len(level), AT_ONCE)
    pieces = (
        start + np.flatnonzero(level.count[start : start + AT_ONCE] > cutoff) for start in starts
    )
    return scratch.joined(pieces, np.int64)


def kept(values: NDArray[Any], places: Kept, scratch: Scratch) -> NDArray[Any]:
    """What an array (N,) says of the n-grams that stay."""
    if places is None:
        return values
    found = scratch.empty(len(places), values.dtype)
    np.take(values, places, out=found)
    return found


def kept_begin(
    begin: NDArray[np.int64],
    places: Kept,
    next_places: Kept,
    scratch: Scratch,
) -> NDArray[np.int64]:
    """Where continuations begin, when only those at `next_places` are left of them."""
    if next_places is None:
        return begin
    ends = kept(begin[1:], places, scratch)
    found = scratch.zeros(len(ends) + 1, np.int64)
    for start in range(0, len(ends), AT_ONCE):
        here = slice(start, start + AT_ONCE)
        found[1:][here] = np.searchsorted(next_places, ends[here])
    return found
