"""Rows of unequal length, bucketed so that little is padding.

What a batch is made of beside rows of ids (labels, characters) is for the classes below `Buckets`.
"""

from abc import ABC, abstractmethod
from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise
from typing import Generic, TypeVar

import numpy as np

from unrolled.errors import ConfigError
from unrolled.text.ragged import Places as Places

Made = TypeVar("Made", covariant=True)  # what a batch is

POOL = 100  # batches' worth of rows that are sorted by length together


class Epoch(Sequence[Made]):
    """The batches of one pass over the data, each built when it is asked for."""

    def __init__(self, size: int, build: Callable[[int], Made]) -> None:
        self._size, self._build = size, build

    def __len__(self) -> int:
        return self._size

    def __getitem__(self, index: int) -> Made:  # type: ignore[override]
        return self._build(range(self._size)[index])


class Buckets(ABC, Generic[Made]):
    """Rows of similar length in each batch.

    A batch has at most `batch_tokens` places, padding counted; a row longer than that is a batch of
    its own.
    """

    def __init__(self, lengths: Places, *, batch_tokens: int) -> None:
        check_at_least("batch_tokens", batch_tokens, 1)
        self.lengths, self.batch_tokens = lengths, batch_tokens

    @abstractmethod
    def build(self, rows: Places) -> Made:
        """The batch of these rows (B,), in this order."""

    def epoch(self, seed: int, epoch: int) -> Epoch[Made]:
        """Every row once, in an order that (seed, epoch) decides."""
        batches = self._shuffled(seed, epoch)
        return Epoch(len(batches), lambda index: self.build(batches[index]))

    def in_order(self) -> Iterator[tuple[Places, Made]]:
        """Which rows (B,) and their batch, from the shortest rows to the longest."""
        order = np.argsort(self.lengths, kind="stable")
        for rows in self._cut_into_batches(order):
            yield rows, self.build(rows)

    def padding_share(self, seed: int, epoch: int) -> float:
        """The share of an epoch's places that hold padding, 0 to 1."""
        batches = self._shuffled(seed, epoch)
        places = sum(len(rows) * int(self.lengths[rows].max()) for rows in batches)
        return 1.0 - int(self.lengths.sum()) / places if places else 0.0

    def _shuffled(self, seed: int, epoch: int) -> list[Places]:
        generator = np.random.default_rng([seed, epoch])
        order = generator.permutation(len(self.lengths))
        lengths = self.lengths[order]
        pool = np.cumsum(lengths) // (POOL * self.batch_tokens)
        by_length = order[np.lexsort((lengths, pool))]  # stable: equal lengths stay shuffled
        edges = np.searchsorted(pool, np.unique(pool)).tolist()
        pools = [by_length[a:b] for a, b in pairwise([*edges, len(order)])]
        batches = [rows for part in pools for rows in self._cut_into_batches(part)]
        return [batches[i] for i in generator.permutation(len(batches))]

    def _cut_into_batches(self, order: Places) -> Iterator[Places]:
        """Rows, given from short to long, in runs whose rectangle keeps to the budget."""
        lengths, start = self.lengths[order].tolist(), 0

        def places(rows: int) -> int:
            return rows * int(lengths[start + rows - 1])

        while start < len(lengths):
            sizes = range(1, len(lengths) - start + 1)
            size = max(1, bisect_right(sizes, self.batch_tokens, key=places))
            yield order[start : start + size]
            start += size


def check_at_least(name: str, value: int | None, least: int) -> None:
    """ConfigError for a size below the least."""
    if value is not None and value < least:
        raise ConfigError(f"{name} is {value}, but must be at least {least}.")
