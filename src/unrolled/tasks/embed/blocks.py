"""Examples of a run of lines, a block at a time: words, their windows, the negatives they share."""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from unrolled.nn.embed_kernels import Chances, Step
from unrolled.tasks.embed.draws import below, draws, noise, uniform

Longs = NDArray[np.int64]


class Block(NamedTuple):
    """Pairs of a word and a neighbour, P in all, of the B words of a block."""

    words: Tensor  # (B,)
    pair_word: Tensor  # (P,): which of the words
    pair_neighbour: Tensor  # (P,): its neighbour, as an id
    negatives: Tensor  # (N,): as ids
    weight: float  # of each negative, for each prediction

    @property
    def pairs_of(self) -> Tensor:
        """How many neighbours each word has: (B,)."""
        return torch.bincount(self.pair_word, minlength=len(self.words))


class Kept(NamedTuple):
    """The words of some lines that are not skipped."""

    words: Longs  # ids (n,)
    places: Longs  # in the corpus
    low: Longs  # first and last of those of the same line
    high: Longs


def kept_words(
    ids: NDArray[np.int32], starts: Longs, lines: tuple[int, int], chances: Chances, key: int
) -> Kept:
    """Frequent words are skipped by chance, before windows are laid."""
    bounds = starts[lines[0] : lines[1] + 1]
    places = np.arange(bounds[0], bounds[-1])
    line = np.repeat(np.arange(len(bounds) - 1), np.diff(bounds))
    words = ids[bounds[0] : bounds[-1]].astype(np.int64)
    kept = uniform(draws(key, 2 * places)) < chances.keep[words]
    words, places, line = words[kept], places[kept], line[kept]
    low = np.searchsorted(line, line, side="left")
    high = np.searchsorted(line, line, side="right") - 1
    return Kept(words, places, low, high)


def blocks(kept: Kept, chances: Chances, step: Step) -> Iterator[Block]:
    """The blocks of kept words, one after the other."""
    reach = 1 + below(draws(step.key, 2 * kept.places + 1), step.window)
    at = np.arange(len(kept.words))
    first, last = np.maximum(kept.low, at - reach), np.minimum(kept.high, at + reach)
    for begin in range(0, len(at), step.words):
        inside = slice(begin, begin + step.words)
        widths = last[inside] - first[inside] + 1
        word = np.repeat(np.arange(len(widths)), widths)
        offset = np.arange(len(word)) - np.repeat(np.cumsum(widths) - widths, widths)
        position = first[inside][word] + offset
        real = position != begin + word
        drawn = int(kept.places[begin]) * step.shared + np.arange(step.shared)
        yield Block(
            torch.from_numpy(kept.words[inside]),
            torch.from_numpy(word[real]),
            torch.from_numpy(kept.words[position[real]]),
            torch.from_numpy(noise(chances, step.key, drawn)),
            step.negatives / step.shared,
        )
