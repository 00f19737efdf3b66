"""Sentence pairs: two files that agree line for line, or one file with a tab between the sides.

PREFIX.de and PREFIX.en     `read_parallel`
source<TAB>target           `read_pairs`

Blank lines are passed over, and so are those with text on one side alone, which are counted. White
space around a side is dropped.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, islice
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from unrolled.config.data import PairedTexts
from unrolled.errors import DataError, StorageError
from unrolled.text.columns import Columns, Wanted, named_columns, numbered_columns
from unrolled.text.corpus import PACKINGS, read_lines
from unrolled.text.formats import HEAD, recognise
from unrolled.text.names import SOURCE_NAMES, TARGET_NAMES
from unrolled.text.records import json_objects, table_rows
from unrolled.text.source import Fingerprint, fingerprint_of
from unrolled.text.texts import json_key, json_text

ENDINGS = ("", *PACKINGS)  # plain, or compressed
FORMATS = ("tsv", "csv", "jsonl", "json")
DEFAULT = PairedTexts()
Counts = NDArray[np.integer]
Kept = NDArray[np.bool_]


class Pair(NamedTuple):
    """A sentence and its counterpart."""

    source: str
    target: str
    line: int  # where it stands in its file, from 1


class ReadPairs(NamedTuple):
    """The pairs of a source."""

    pairs: list[Pair]
    one_sided: list[int]  # lines of which one side is empty: passed over
    columns: tuple[str, str] | None = None  # of source and target, where they had to be found

    def remarks(self) -> list[str]:
        """What is to be known of how they were read, if anything."""
        found = []
        if self.columns is not None:
            columns = "sources are read from column {}, targets from column {}"
            found.append(columns.format(*self.columns))
        if count := len(self.one_sided):
            lines = f"{count:,} lines" if count > 1 else "1 line"
            found.append(
                f"{lines} with text on one side alone left out, the first being line "
                f"{self.one_sided[0]}"
            )
        return found

    def settled(self, data: PairedTexts) -> PairedTexts:
        """The settings by which later files are read alike."""
        if self.columns is None:
            return data
        source, target = self.columns
        return data.model_copy(update={"source_column": source, "target_column": target})


def read_parallel(
    prefix: Path | str, source: str, target: str, *, encoding: str = "utf-8"
) -> tuple[ReadPairs, Fingerprint]:
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
    return _pairs(enumerate(rows, 1), prefix), fingerprint_of(map("\t".join, rows))


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


def read_pairs(
    lines: Iterable[str], *, source: Path | str, data: PairedTexts = DEFAULT
) -> ReadPairs:
    """The pairs of a file's lines, a tab between the sides; errors name `source`, the file.

    A table may have other columns beside them if its header, or the settings, name the two.
    """
    waiting = iter(lines)
    head = list(islice(waiting, HEAD))
    layout = recognise(head, name=source, among=FORMATS, otherwise="tsv", wanted=data.format)
    every, wanted = chain(head, waiting), side_columns(data)
    if not layout.is_table:
        return _from_objects(json_objects(every, layout, source=source), wanted, source)
    rows = table_rows(every, layout, source=source)
    if (first := next(rows, None)) is None:
        return _pairs([], source)
    columns = named_columns(first[1], wanted)
    if columns is None and any(want.given for want in wanted):
        columns = numbered_columns([first[1]], wanted, source=source, line=first[0])
    rows = rows if columns and columns.header else chain([first], rows)
    if columns is None:
        return _pairs(rows, source)
    chosen = ((line, _cells(row, columns, source, line)) for line, row in rows)
    source_name, target_name = columns.names()
    return _pairs(chosen, source)._replace(columns=(source_name, target_name))


def side_columns(data: PairedTexts) -> tuple[Wanted, Wanted]:
    """The columns of the two sides."""
    return (
        Wanted("sources", "--source-column", data.source_column, SOURCE_NAMES, 0),
        Wanted("targets", "--target-column", data.target_column, TARGET_NAMES, 1),
    )


def _cells(row: Sequence[str], columns: Columns, path: Path | str, line: int) -> list[str]:
    if len(row) <= max(columns.places):
        raise DataError(
            path, f"has {len(row)} columns, but {max(columns.places) + 1} are needed.", line=line
        )
    return [row[place] for place in columns.places]


def _from_objects(
    objects: Iterable[tuple[int, Mapping[str, Any]]], wanted: Sequence[Wanted], path: Path | str
) -> ReadPairs:
    keys: list[str] = []
    rows = []
    for line, value in objects:
        keys = keys or [json_key(value, want) or want.usual[0] for want in wanted]
        rows.append((line, [json_text(value, key, path, line) for key in keys]))
    found = _pairs(rows, path)
    return found._replace(columns=(keys[0], keys[1]))


def _pairs(rows: Iterable[tuple[int, Sequence[str]]], path: Path | str) -> ReadPairs:
    """The rows that are not blank; each must have two sides, and those with text on both count."""
    found = ReadPairs([], [])
    for number, row in rows:
        sides = [side.strip() for side in row]
        if any(sides) and len(sides) != 2:
            raise _wrong_sides(len(sides), path, number)
        if all(sides):
            found.pairs.append(Pair(sides[0], sides[1], number))
        elif any(sides):
            found.one_sided.append(number)
    if not found.pairs:
        raise DataError(path, "holds no pair, but there must be some: source, tab, target.")
    return found


def _wrong_sides(count: int, path: Path | str, number: int) -> DataError:
    problem = "has 1 column" if count == 1 else f"has {count} columns"
    remedy = (
        "Put a tab between the sides"
        if count == 1
        else "Keep two columns with `cut -f1,2`, or name them with --source-column and "
        "--target-column"
    )
    return DataError(
        path, f"{problem}, but must have 2: the source, a tab, the target. {remedy}.", line=number
    )


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
