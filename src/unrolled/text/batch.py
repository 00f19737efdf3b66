"""Batches of token rows: padded on the right, bucketed by length, or cut from one long stream.

Order is a pure function of (seed, epoch), and each batch can be built without those before it:
to resume in the middle of an epoch, (seed, epoch, batch number) is all there is to know.
"""

from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, pairwise

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from unrolled.errors import ConfigError
from unrolled.text.tokens import END, PAD, START, EncodedLines

Places = NDArray[np.int64]

POOL = 100  # batches' worth of rows that are sorted by length together


@dataclass(frozen=True)
class Batch:
    """Token rows of unequal length, padded on the right."""

    tokens: Tensor  # (B, T) int64
    lengths: Tensor  # (B,) int64, each in 0..T

    @classmethod
    def collate(cls, rows: Sequence[Sequence[int]]) -> "Batch":
        """Pad rows to the longest of them."""
        if not rows:
            raise ValueError("a batch needs at least one row, but there is none")
        flat = np.fromiter(chain.from_iterable(rows), np.int64)
        lengths = np.fromiter(map(len, rows), np.int64, len(rows))
        return _gather(flat, np.cumsum(lengths) - lengths, lengths)

    @property
    def mask(self) -> Tensor:
        """(B, T) bool, True where there is a token."""
        places = torch.arange(self.tokens.size(1), device=self.tokens.device)
        return places < self.lengths[:, None]

    def shifted(self) -> tuple[Tensor, Tensor]:
        """Teacher forcing: (inputs, targets), both (B, T-1); position t is asked for token t+1."""
        return self.tokens[:, :-1], self.tokens[:, 1:]

    def reversed(self) -> "Batch":
        """Each row backwards between its first token and its END, which stay: S a b E, S b a E."""
        last = (self.lengths - 1).clamp(min=0)[:, None]  # (B, 1)
        last = last - (self.tokens.gather(1, last) == END).long()
        places = torch.arange(self.tokens.size(1), device=self.tokens.device).expand_as(self.tokens)
        inner = (places >= 1) & (places <= last)
        return Batch(
            self.tokens.gather(1, torch.where(inner, last + 1 - places, places)), self.lengths
        )


class Epoch(Sequence[Batch]):
    """The batches of one pass over the data, each built when it is asked for."""

    def __init__(self, size: int, build: Callable[[int], Batch]) -> None:
        self._size, self._build = size, build

    def __len__(self) -> int:
        return self._size

    def __getitem__(self, index: int) -> Batch:  # type: ignore[override]
        return self._build(range(self._size)[index])


class LineBatches:
    """Rows `first` + line + END, of similar length in each batch.

    A batch has at most `batch_tokens` places, padding counted; a row longer than that is a batch of
    its own. A row longer than `max_length` is cut there and has no END; `cut` says how many are.
    """

    def __init__(
        self,
        encoded: EncodedLines,
        *,
        first: int = START,
        batch_tokens: int,
        max_length: int | None = None,
    ) -> None:
        _check_at_least("batch_tokens", batch_tokens, 1)
        _check_at_least("max_length", max_length, 2)
        self.first, self.batch_tokens = first, batch_tokens
        self._ids, self._starts = encoded.ids, encoded.ends - encoded.lengths
        whole = encoded.lengths + 1
        self.lengths = whole if max_length is None else np.minimum(whole, max_length)
        self.cut = int(np.count_nonzero(self.lengths < whole))

    def epoch(self, seed: int, epoch: int) -> Epoch:
        """Every row once, in an order that (seed, epoch) decides."""
        batches = self._shuffled(seed, epoch)
        return Epoch(len(batches), lambda index: self._batch(batches[index]))

    def in_order(self) -> Iterator[tuple[Places, Batch]]:
        """Which rows (B,) and their batch, from the shortest rows to the longest."""
        order = np.argsort(self.lengths, kind="stable")
        for rows in self._cut_into_batches(order):
            yield rows, self._batch(rows)

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

    def _batch(self, rows: Places) -> Batch:
        lines = _gather(self._ids, self._starts[rows], self.lengths[rows] - 1)
        first = torch.full((len(rows), 1), self.first)
        return Batch(torch.cat([first, lines.tokens], dim=1), lines.lengths + 1)  # (B, 1 + T)


class StreamBatches:
    """One long text in `columns` side by side, read `steps` tokens at a time (truncated BPTT).

    Row b of a batch continues row b of the batch before: it begins with that one's last token, and
    the caller carries the state. Every token is predicted once; before the first stands `first`.
    The last column may be shorter: its missing places lie beyond the row's length.
    """

    def __init__(
        self, encoded: EncodedLines, *, columns: int, steps: int, first: int = END
    ) -> None:
        _check_at_least("columns", columns, 1)
        _check_at_least("steps", steps, 1)
        self.steps = steps
        self._ids = np.concatenate([np.array([first], dtype=np.int32), encoded.ids])  # (N + 1,)
        size = len(encoded.ids)
        self._height = -(-size // columns)
        self._starts = np.arange(0, size, max(1, self._height))  # (B,) the token before each column
        self._heights = np.minimum(self._height, size - self._starts)  # (B,)

    def epoch(self, seed: int, epoch: int) -> Epoch:
        """One pass; (seed, epoch) decides how long the first piece is, so that the cuts move."""
        generator = np.random.default_rng([seed, epoch])
        return self._pieces(first_steps=1 + int(generator.integers(self.steps)))

    def padding_share(self, seed: int, epoch: int) -> float:
        """The share of an epoch's places that hold padding, 0 to 1: the same for all epochs."""
        places = len(self._heights) * self._height
        return 1.0 - int(self._heights.sum()) / places if places else 0.0

    def in_order(self) -> Epoch:
        """One pass, for evaluation: every piece but the last has all its steps."""
        return self._pieces(first_steps=self.steps)

    def _pieces(self, first_steps: int) -> Epoch:
        cuts = [0, *range(first_steps, self._height, self.steps), self._height]
        return Epoch(
            len(cuts) - 1 if self._height else 0, lambda i: self._batch(cuts[i], cuts[i + 1])
        )

    def _batch(self, begin: int, end: int) -> Batch:
        predicted = np.clip(self._heights - begin, 0, end - begin)
        return _gather(self._ids, self._starts + begin, predicted + 1)


def _gather(flat: NDArray[np.integer], starts: Places, lengths: Places) -> Batch:
    """The runs of `flat` with these starts and lengths (B,), as a batch."""
    steps = np.arange(lengths.max())  # (T,)
    inside = steps < lengths[:, None]  # (B, T)
    tokens = np.full(inside.shape, PAD, dtype=np.int64)
    places = np.minimum(starts[:, None] + steps, len(flat) - 1)  # a row of nothing may lie beyond
    tokens[inside] = flat[places[inside]]
    return Batch(torch.from_numpy(tokens), torch.from_numpy(lengths))


def _check_at_least(name: str, value: int | None, least: int) -> None:
    if value is not None and value < least:
        raise ConfigError(f"{name} is {value}, but must be at least {least}.")
