"""Batches of sentence pairs: two texts, line for line, each side padded on its own."""

from dataclasses import dataclass

import numpy as np
import torch

from unrolled.text.batch import Batch
from unrolled.text.buckets import Buckets, Places
from unrolled.text.ragged import Ragged
from unrolled.text.tokens import START, EncodedLines


@dataclass(frozen=True)
class PairBatch:
    """Sources end with END; targets begin with START and end with END."""

    source: Batch  # (B, S)
    target: Batch  # (B, T)


class SourceBatches(Buckets[Batch]):
    """Sources alone, of similar length in each batch."""

    def __init__(self, encoded: EncodedLines, *, batch_tokens: int) -> None:
        super().__init__(encoded.lengths, batch_tokens=batch_tokens)
        self._sources = encoded.rows

    def build(self, rows: Places) -> Batch:
        """The batch of these rows (B,), in this order."""
        return _batch(self._sources, rows)


class PairBatches(Buckets[PairBatch]):
    """Pairs whose longer sides are of similar length in each batch."""

    def __init__(self, source: EncodedLines, target: EncodedLines, *, batch_tokens: int) -> None:
        super().__init__(np.maximum(source.lengths, target.lengths), batch_tokens=batch_tokens)
        self._sides = (source.rows, target.rows)

    def build(self, rows: Places) -> PairBatch:
        """The batch of these rows (B,), in this order."""
        source, target = (_batch(side, rows) for side in self._sides)
        first = torch.full((len(rows), 1), START)
        begun = torch.cat([first, target.tokens], dim=1)  # (B, 1 + T)
        return PairBatch(source, Batch(begun, target.lengths + 1))


def _batch(side: Ragged, rows: Places) -> Batch:
    return Batch(torch.from_numpy(side.padded(rows)), torch.from_numpy(side.lengths[rows]))
