"""What a language model must beat: the same chance for every token, and its frequency alone."""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from unrolled.text.tokens import PAD, START, EncodedLines, Vocabulary

Floats = NDArray[np.float64]


def uniform_nats(vocabulary: Vocabulary) -> Floats:
    """Surprise at each token id (V,) when all are equally likely."""
    nats = np.full(len(vocabulary), np.log(len(vocabulary) - 2))
    nats[[PAD, START]] = np.inf  # these are never asked for
    return nats


def unigram_nats(vocabulary: Vocabulary) -> Floats:
    """Surprise at each token id (V,) by its count in the training text, plus one."""
    counts = np.asarray(vocabulary.counts, dtype=np.float64) + 1.0
    counts[[PAD, START]] = 0.0
    with np.errstate(divide="ignore"):
        return np.asarray(np.log(counts.sum()) - np.log(counts))


def nats_of_lines(nats: Floats, encoded: EncodedLines) -> Floats:
    """Token surprises (V,) summed over the tokens of each line (lines,)."""
    return np.asarray(np.add.reduceat(nats[encoded.ids], encoded.starts))


class Baseline(NamedTuple):
    """Token surprises from a vocabulary, and what the signature says of them."""

    nats: Callable[[Vocabulary], Floats]
    note: str


BASELINES = {
    "uniform": Baseline(uniform_nats, ""),
    "unigram": Baseline(unigram_nats, "|smoothing:add-one"),
}


def known_baselines(vocabulary: Vocabulary) -> dict[str, Baseline]:
    """Those that can be told: a model read from an ARPA file knows no frequencies.

    The file's own probabilities of single tokens cannot stand in: they are made to be backed off
    to, and in Kneser–Ney tell after how many different tokens one comes, not how often.
    """
    counted = any(vocabulary.counts)
    return {name: found for name, found in BASELINES.items() if counted or name != "unigram"}
