"""From the ids of a text to an n-gram table: count, smooth, prune, and put it together."""

import math

import numpy as np
from numpy.typing import NDArray

from unrolled.ngrams.counts import Grams, count_ngrams
from unrolled.ngrams.prune import kept, kept_begin, kept_places
from unrolled.ngrams.scratch import Scratch
from unrolled.ngrams.settings import NgramSettings
from unrolled.ngrams.smoothing import Estimate, estimate
from unrolled.ngrams.table import ZERO, Discounts, Floats, Level, NgramTable


def build(
    ids: NDArray[np.int32],
    vocabulary_size: int,
    settings: NgramSettings,
    scratch: Scratch | None = None,
) -> tuple[NgramTable, list[Discounts]]:
    """The table of a text of ids (N,), each line closed by END, and what was discounted."""
    scratch = scratch or Scratch()
    grams = count_ngrams(ids, settings.order, vocabulary_size, scratch)
    return table_of(grams, settings, scratch)


def table_of(
    grams: list[Grams], settings: NgramSettings, scratch: Scratch | None = None
) -> tuple[NgramTable, list[Discounts]]:
    """The same from n-grams that are counted already."""
    scratch = scratch or Scratch()
    estimates = list(estimate(grams, settings, scratch))
    places = [
        kept_places(level, cutoff, scratch)
        for level, cutoff in zip(grams, settings.cutoffs, strict=True)
    ]
    levels = []
    for k, level in enumerate(grams):
        words = kept(level.words, places[k], scratch)
        log_p = logs(kept(estimates[k].p, places[k], scratch))
        log_b: Floats = np.zeros(0)
        begin: NDArray[np.int64] = np.zeros(0, np.int64)
        if k + 1 < len(grams):
            log_b = logs(kept(estimates[k + 1].back, places[k], scratch))
            begin = kept_begin(grams[k + 1].begin, places[k], places[k + 1], scratch)
        levels.append(Level(words, log_p, log_b, begin))
    return NgramTable(tuple(levels), weight_if_missing(settings)), discounts_of(estimates)


def weight_if_missing(settings: NgramSettings) -> float:
    """The log weight of a context that is not in the table."""
    return math.log(settings.stupid_factor) if settings.smoothing == "stupid" else 0.0


def discounts_of(estimates: list[Estimate]) -> list[Discounts]:
    """What was discounted in each order."""
    return [Discounts(found.discounts, found.fallback) for found in estimates]


def logs(values: Floats) -> Floats:
    """Logarithms, in place."""
    with np.errstate(divide="ignore"):
        np.log(values, out=values)
    return np.maximum(values, ZERO, out=values)
