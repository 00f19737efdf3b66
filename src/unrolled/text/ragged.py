"""Rows of unequal length in one array."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from unrolled.text.vocabulary import PAD

Places = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Ragged:
    """Row r is values[starts[r] : starts[r] + lengths[r]]; rows may leave gaps between them."""

    values: NDArray[Any]  # (N,)
    starts: Places  # (rows,)
    lengths: Places  # (rows,)

    @classmethod
    def joined(cls, values: NDArray[Any], lengths: Places) -> "Ragged":
        """Rows that stand one after the other."""
        return cls(values, np.cumsum(lengths) - lengths, lengths)

    def __len__(self) -> int:
        return len(self.lengths)

    def padded(self, rows: Places) -> Places:
        """These rows (B,) side by side, PAD behind the shorter ones: (B, T)."""
        return padded(self.values, self.starts[rows], self.lengths[rows])

    def places(self) -> tuple[Places, Places]:
        """Where among the values every number of a row lies, and in which row: (n,) both."""
        rows = np.repeat(np.arange(len(self)), self.lengths)
        before = np.cumsum(self.lengths) - self.lengths
        return self.starts[rows] + np.arange(len(rows)) - before[rows], rows

    def kept(self, wanted: NDArray[np.bool_]) -> "Ragged":
        """The wanted rows (rows,), one after the other."""
        some = Ragged(self.values, self.starts[wanted], self.lengths[wanted])
        return Ragged.joined(self.values[some.places()[0]], some.lengths)


def padded(
    flat: NDArray[np.integer], starts: Places, lengths: Places, *, fill: int = PAD
) -> Places:
    """The runs of `flat` with these starts and lengths (B,), side by side: (B, T)."""
    steps = np.arange(lengths.max())  # (T,)
    inside = steps < lengths[:, None]  # (B, T)
    rows = np.full(inside.shape, fill, dtype=np.int64)
    places = np.minimum(starts[:, None] + steps, len(flat) - 1)  # a row of nothing may lie beyond
    rows[inside] = flat[places[inside]]
    return rows
