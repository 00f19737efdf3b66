"""Sentence pairs: read, split, and encoded for a model."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Self

import numpy as np
from numpy.typing import NDArray

from unrolled.config.data import PairedTexts
from unrolled.errors import DataError
from unrolled.text.holdout import draw_groups
from unrolled.text.pair_batch import PairBatches
from unrolled.text.parallel import DEFAULT, Pair, ReadPairs, read_pairs, read_parallel
from unrolled.text.source import Fingerprint, Source
from unrolled.text.tokens import EncodedLines, TextEncoder

NOTHING = ReadPairs([], [])


@dataclass(frozen=True, eq=False)
class Pairs:
    """Sentence pairs of a source."""

    pairs: Sequence[Pair]
    source: Path | str
    known_by: Fingerprint
    found: ReadPairs = NOTHING

    @classmethod
    def read(
        cls,
        source: Source,
        languages: tuple[str, str] | None = None,
        data: PairedTexts = DEFAULT,
    ) -> Self:
        """One file with a tab between the sides, or two parallel files, named by languages."""
        if languages is None:
            lines = source.lines()
            found, known_by = read_pairs(lines, source=source.path, data=data), lines.fingerprint()
        else:
            found, known_by = read_parallel(source.path, *languages, encoding=source.encoding)
        return cls(found.pairs, source.path, known_by, found)

    def fingerprint(self) -> Fingerprint:
        """By what to know the files again."""
        return self.known_by

    @property
    def sources(self) -> list[str]:
        """One side."""
        return [pair.source for pair in self.pairs]

    @property
    def targets(self) -> list[str]:
        """The other."""
        return [pair.target for pair in self.pairs]

    def split(self, share: float, seed: int) -> tuple[Self, Self]:
        """Draw a share of the *sources*: all pairs of one go to the same side."""
        drawn = draw_groups(self.sources, share, seed)
        if not drawn:
            raise DataError(
                self.source,
                f"holds {len(set(self.sources))} different sources, so none can be kept for "
                "development. Give more, or name --dev.",
            )
        kept = [pair for pair in self.pairs if pair.source not in drawn]
        dev = [pair for pair in self.pairs if pair.source in drawn]
        return replace(self, pairs=kept), replace(self, pairs=dev)


@dataclass(frozen=True, eq=False)
class PairData:
    """Pairs to train or evaluate on, encoded once."""

    pairs: Sequence[Pair]
    source: EncodedLines
    target: EncodedLines

    @classmethod
    def of(cls, source: TextEncoder, target: TextEncoder, pairs: Sequence[Pair]) -> Self:
        """Made ready for a model that reads and writes so."""
        sources = source.encode_lines([pair.source for pair in pairs])
        return cls(pairs, sources, target.encode_lines([pair.target for pair in pairs]))

    def kept(self, wanted: NDArray[np.bool_]) -> Self:
        """The wanted pairs (N,)."""
        pairs = [self.pairs[number] for number in np.flatnonzero(wanted).tolist()]
        source, target = (
            EncodedLines(side.rows.kept(wanted), 0) for side in (self.source, self.target)
        )
        return replace(self, pairs=pairs, source=source, target=target)

    @property
    def places(self) -> int:
        """Tokens of the longer side of each pair, together."""
        return int(np.maximum(self.source.lengths, self.target.lengths).sum())

    def batches(self, batch_tokens: int) -> PairBatches:
        """In batches of at most so many places a side."""
        return PairBatches(self.source, self.target, batch_tokens=batch_tokens)
