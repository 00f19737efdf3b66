"""Batches of token rows: padded on the right, bucketed by length, or cut from one long stream.

Order is a pure function of (seed, epoch), and each batch can be built without those before it:
to resume in the middle of an epoch, (seed, epoch, batch number) is all there is to know.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from unrolled.text.buckets import Buckets, Epoch, check_at_least
from unrolled.text.buckets import Places as Places
from unrolled.text.ragged import padded
from unrolled.text.tokens import END, START, EncodedLines


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


class LineBatches(Buckets[Batch]):
    """Rows `first` + line + END, of similar length in each batch.

    A row longer than `max_length` is cut there and has no END; `cut` says how many are.
    """

    def __init__(
        self,
        encoded: EncodedLines,
        *,
        first: int = START,
        batch_tokens: int,
        max_length: int | None = None,
    ) -> None:
        check_at_least("max_length", max_length, 2)
        whole = encoded.lengths + 1
        kept = whole if max_length is None else np.minimum(whole, max_length)
        super().__init__(kept, batch_tokens=batch_tokens)
        self.first = first
        self._ids, self._starts = encoded.ids, encoded.starts
        self.cut = int(np.count_nonzero(kept < whole))

    def build(self, rows: Places) -> Batch:
        """The batch of these rows (B,), in this order."""
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
        check_at_least("columns", columns, 1)
        check_at_least("steps", steps, 1)
        self.steps = steps
        self._ids = np.concatenate([np.array([first], dtype=np.int32), encoded.ids])  # (N + 1,)
        size = len(encoded.ids)
        self._height = -(-size // columns)
        self._starts = np.arange(0, size, max(1, self._height))  # (B,) the token before each column
        self._heights = np.minimum(self._height, size - self._starts)  # (B,)

    def epoch(self, seed: int, epoch: int) -> Epoch[Batch]:
        """One pass; (seed, epoch) decides how long the first piece is, so that the cuts move."""
        generator = np.random.default_rng([seed, epoch])
        return self._pieces(first_steps=1 + int(generator.integers(self.steps)))

    def padding_share(self, seed: int, epoch: int) -> float:
        """The share of an epoch's places that hold padding, 0 to 1: the same for all epochs."""
        places = len(self._heights) * self._height
        return 1.0 - int(self._heights.sum()) / places if places else 0.0

    def in_order(self) -> Epoch[Batch]:
        """One pass, for evaluation: every piece but the last has all its steps."""
        return self._pieces(first_steps=self.steps)

    def _pieces(self, first_steps: int) -> Epoch[Batch]:
        cuts = [0, *range(first_steps, self._height, self.steps), self._height]
        return Epoch(
            len(cuts) - 1 if self._height else 0, lambda i: self._batch(cuts[i], cuts[i + 1])
        )

    def _batch(self, begin: int, end: int) -> Batch:
        predicted = np.clip(self._heights - begin, 0, end - begin)
        return _gather(self._ids, self._starts + begin, predicted + 1)


def _gather(flat: NDArray[np.integer], starts: Places, lengths: Places) -> Batch:
    """The runs of `flat` with these starts and lengths (B,), as a batch."""
    return Batch(torch.from_numpy(padded(flat, starts, lengths)), torch.from_numpy(lengths))
