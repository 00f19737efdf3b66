"""Sentence pairs: two files that agree line for line, or one file with a tab between the sides.

PREFIX.de and PREFIX.en     `read_parallel`
source<TAB>target           `read_pairs`

Blank lines are passed over; a side alone may not be empty. White space around a side is dropped.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from unrolled.errors import DataError, StorageError
from unrolled.text.corpus import PACKINGS, read_lines
from unrolled.text.source import Fingerprint, fingerprint_of

ENDINGS = ("", *PACKINGS)  # plain, or compressed
Counts = NDArray[np.integer]
Kept = NDArray[np.bool_]


class Pair(NamedTuple):
    """A sentence and its counterpart."""

    source: str
    target: str
    line: int  # where it stands in its file, from 1


def read_parallel(
    prefix: Path | str, source: str, target: str, *, encoding: str = "utf-8"
) -> tuple[list[Pair], Fingerprint]:
    """The pairs of PREFIX.source and PREFIX.target (or .gz, .xz), and by what to know them again.

    A tab inside a side becomes a space: the fingerprint is that of one file with a tab between.
    """
    paths = [_the_file(f"{prefix}.{side}") for side in (source, target)]
    sides = [
        [line.replace("\t", " ") for line in read_lines(path, encoding=encoding)] for path in paths
    ]
    if len(sides[0]) != len(sides[1]):
        raise DataError(
            prefix,
            f"{paths[0]} has {len(sides[0])} lines and {paths[1]} has {len(sides[1])}, but line n "
            "of one must be the counterpart of line n of the other. Mend the files so that they "
            "have equally many.",
        )
    rows = list(zip(*sides, strict=True))
    return _pairs(rows, prefix), fingerprint_of(map("\t".join, rows))


def _the_file(name: str) -> Path:
    """The one file of this name, plain or compressed."""
    there = [path for path in (Path(name + ending) for ending in ENDINGS) if path.exists()]
    if not there:
        raise StorageError(
            name,
            "there is no such file, and none with .gz or .xz behind it; check the path before the "
            "last dot, and the names of the two sides.",
        )
    if len(there) > 1:
        raise DataError(
            name,
            f"there are {' and '.join(path.name for path in there)}, but it must be clear which is "
            "meant. Move all but one of them elsewhere.",
        )
    return there[0]


def read_pairs(lines: Iterable[str], *, source: Path | str) -> list[Pair]:
    """The pairs of a file's lines, a tab between the sides; errors name `source`, the file."""
    return _pairs((line.split("\t") for line in lines), source)


def _pairs(rows: Iterable[Sequence[str]], path: Path | str) -> list[Pair]:
    """The rows that are not blank; each must have two sides, and both must have text."""
    pairs = []
    for number, row in enumerate(rows, 1):
        sides = [side.strip() for side in row]
        if any(sides):
            pairs.append(_pair(sides, path, number))
    if not pairs:
        raise DataError(path, "holds no pair, but there must be some: source, tab, target.")
    return pairs


def _pair(sides: Sequence[str], path: Path | str, number: int) -> Pair:
    if len(sides) != 2:
        problem = "has 1 column" if len(sides) == 1 else f"has {len(sides)} columns"
        remedy = (
            "Put a tab between the sides"
            if len(sides) == 1
            else "Keep two columns with `cut -f1,2`"
        )
        raise DataError(
            path,
            f"{problem}, but must have 2: the source, a tab, the target. {remedy}.",
            line=number,
        )
    if not all(sides):
        raise DataError(
            path,
            f"the {'target' if sides[0] else 'source'} is empty, but both sides must have text. "
            "Complete the pair, or take it out on both sides.",
            line=number,
        )
    return Pair(sides[0], sides[1], number)


@dataclass(frozen=True)
class Dropped:
    """How many pairs are left out of training, each for the first reason that holds."""

    pairs: int  # of all, before
    empty: int
    too_long: int
    ratio: int
    max_length: int
    max_ratio: float

    @property
    def total(self) -> int:
        """For whatever reason."""
        return self.empty + self.too_long + self.ratio

    def __str__(self) -> str:
        reasons = {
            "with a side of no tokens": self.empty,
            f"longer than {self.max_length:,} tokens": self.too_long,
            f"with one side over {self.max_ratio:g} times as long as the other": self.ratio,
        }
        found = ", ".join(f"{count:,} {reason}" for reason, count in reasons.items() if count)
        return f"left out {self.total:,} of {self.pairs:,} pairs" + (f": {found}" if found else "")


def keep_lengths(
    source: Counts, target: Counts, *, max_length: int, max_ratio: float
) -> tuple[Kept, Dropped]:
    """Which pairs to learn from (N,), by the tokens of their sides (N,), line ends not counted."""
    longer, shorter = np.maximum(source, target), np.minimum(source, target)
    empty = shorter < 1
    too_long = ~empty & (longer > max_length)
    unlike = ~empty & ~too_long & (longer > max_ratio * shorter)
    dropped = Dropped(
        len(longer), int(empty.sum()), int(too_long.sum()), int(unlike.sum()), max_length, max_ratio
    )
    return ~(empty | too_long | unlike), dropped
