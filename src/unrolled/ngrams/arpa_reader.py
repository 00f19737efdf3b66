"""Read ARPA files, whoever wrote them; ngram_arpa.py shows what they look like.

The table must hold every n-gram inside one of its n-grams. A file from which some were pruned gets
them back with the probability that backing off gives them, so that nothing changes.
"""

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import repeat
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from unrolled.errors import DataError, shown
from unrolled.ngrams.arpa import BETWEEN, GAP, LOG10
from unrolled.ngrams.query import Places, find
from unrolled.ngrams.settings import MAX_ORDER
from unrolled.ngrams.table import ZERO, Floats, Level, NgramTable
from unrolled.text.corpus import read_lines
from unrolled.text.tokens import END, PAD, SPECIALS, START, UNK

LINES_AT_ONCE = 1 << 16
MOST_LOG10 = 99.0  # as −99 stands for −∞, so no weight is larger
SIZE = re.compile(r"ngram\s+([0-9]{1,3})\s*=\s*([0-9]{1,15})")


@dataclass(eq=False)
class NgramRows:
    """The n-grams of one order as the file gives them."""

    words: NDArray[np.int32]  # (N, k)
    log_p: Floats  # (N,) natural; NaN where backing off is to tell
    log_b: Floats  # (N,) natural
    lines: Places  # (N,) of the file; 0 where it has none


class ArpaFile:
    """The lines of a file that hold something, and where they stand."""

    def __init__(self, path: Path | str, encoding: str) -> None:
        self.path, self.number = path, 0
        self._lines = read_lines(path, encoding=encoding)

    def __iter__(self) -> Iterator[str]:
        for line in self._lines:
            self.number += 1
            if line := line.strip(BETWEEN):
                yield line

    def error(self, problem: str, line: int | None = None) -> DataError:
        return DataError(self.path, problem, line=line or self.number)


def read_table(path: Path | str, *, encoding: str = "utf-8") -> tuple[NgramTable, list[str]]:
    """The table of an ARPA file, and the names of its tokens: the special ones, then the file's."""
    file = ArpaFile(path, encoding)
    lines = iter(file)
    sizes, header = _sizes(file, lines)
    ids = {name: i for i, name in enumerate(SPECIALS)}
    orders: list[NgramRows] = []
    for k, size in enumerate(sizes, 1):
        _expect(file, header, f"\\{k}-grams:")
        rows, header = _section(file, lines, k, ids)
        if len(rows.log_p) != size:
            raise file.error(f"{len(rows.log_p)} {k}-grams end here, but the head says {size}.")
        if k == 1:
            first = _unigrams(file, rows, ids)
        else:
            orders.append(_usable(rows))
    _expect(file, header, "\\end\\")
    levels = _levels(file, first, orders) or _levels(file, first, _closed(orders))
    assert levels is not None
    return NgramTable(levels), list(ids)


def _expect(file: ArpaFile, seen: str, wanted: str) -> None:
    if seen != wanted:
        raise file.error(f"the line is '{seen[:40]}', but must be '{wanted}' here.")


def _sizes(file: ArpaFile, lines: Iterator[str]) -> tuple[list[int], str]:
    """How many n-grams each order has, and the line after that."""
    if not any(line == "\\data\\" for line in lines):
        raise file.error("the file ends without a line '\\data\\': it is no ARPA file.")
    sizes: list[int] = []
    for line in lines:
        if line.startswith("\\") and sizes:
            return sizes, line
        found = SIZE.fullmatch(line)
        if not found or int(found[1]) != len(sizes) + 1 or len(sizes) == MAX_ORDER:
            raise file.error(
                f"the line is '{line[:40]}', but must be 'ngram {len(sizes) + 1}=' and a number; "
                f"at most {MAX_ORDER} orders can be read."
            )
        sizes.append(int(found[2]))
    raise file.error("the file ends here, without n-grams.")


def _section(
    file: ArpaFile, lines: Iterator[str], k: int, ids: dict[str, int]
) -> tuple[NgramRows, str]:
    """The n-grams of an order, and the line after them."""
    parts: list[NgramRows] = []
    pending: list[str] = []
    numbers: list[int] = []
    for line in lines:
        if line.startswith("\\"):
            parts.append(_parsed(file, pending, numbers, k=k, ids=ids))
            return _joined(parts), line
        pending.append(line)
        numbers.append(file.number)
        if len(pending) == LINES_AT_ONCE:
            parts.append(_parsed(file, pending, numbers, k=k, ids=ids))
            pending, numbers = [], []
    raise file.error(f"the file ends among the {k}-grams, without '\\end\\': it is cut off.")


def _parsed(
    file: ArpaFile, lines: list[str], numbers: list[int], *, k: int, ids: dict[str, int]
) -> NgramRows:
    """Lines of an order, those with a backoff weight first."""
    gaps = np.array([line.count(" ") + line.count("\t") for line in lines], dtype=np.int64)
    for i in np.flatnonzero((gaps != k) & (gaps != k + 1)).tolist():
        lines[i] = GAP.sub(" ", lines[i])
        gaps[i] = lines[i].count(" ")
        if gaps[i] not in (k, k + 1):
            raise file.error(
                f"the line has {gaps[i] + 1} columns, but a {k}-gram needs a log-probability, "
                f"{k} {'word' if k == 1 else 'words'} and at most a backoff weight.",
                numbers[i],
            )
    where = [np.flatnonzero(gaps == columns) for columns in (k + 1, k)]
    at = [np.array(numbers, dtype=np.int64)[places] for places in where]
    fields = [
        " ".join([lines[i] for i in places.tolist()]).replace("\t", " ").split(" ")
        if len(places)
        else []
        for places in where
    ]
    return _joined(
        [
            _columns(file, fields[0], at[0], k=k, ids=ids, weighted=True),
            _columns(file, fields[1], at[1], k=k, ids=ids, weighted=False),
        ]
    )


def _columns(
    file: ArpaFile,
    fields: list[str],
    numbers: Places,
    *,
    k: int,
    ids: dict[str, int],
    weighted: bool,
) -> NgramRows:
    """Lines of an order, all with or all without a backoff weight, given as their fields."""
    width = k + 1 + weighted
    log_p = _decimals(file, fields[::width], numbers, "log-probability")
    if len(positive := np.flatnonzero(log_p > 0.0)):
        i = int(positive[0])
        raise file.error(
            f"the log-probability is {fields[i * width][:40]}, but must be 0 or less.",
            int(numbers[i]),
        )
    weights = fields[width - 1 :: width] if weighted else []
    log_b = _decimals(file, weights, numbers, "backoff weight") if weighted else 0.0 * log_p
    words = np.empty((len(numbers), k), dtype=np.int32)
    for column in range(k):
        names = fields[1 + column :: width]
        found = _new_ids(file, names, numbers, ids) if k == 1 else map(ids.get, names, repeat(-1))
        words[:, column] = np.fromiter(found, np.int32, len(names))
        if len(strange := np.flatnonzero(words[:, column] < 0)):
            i = int(strange[0])
            raise file.error(
                f"{shown(names[i])} is not among the 1-grams, but every word must be.",
                int(numbers[i]),
            )
    return NgramRows(words, log_p, log_b, numbers)


def _decimals(file: ArpaFile, texts: list[str], numbers: Places, what: str) -> Floats:
    """Base-10 logarithms as natural ones, −99 or less as ZERO."""
    try:
        values = np.fromiter(map(float, texts), np.float64, len(texts))
    except ValueError:
        values = np.array([_decimal(text) for text in texts])
    if len(wrong := np.flatnonzero(~(values <= MOST_LOG10))):  # NaN among them
        i = int(wrong[0])
        raise file.error(
            f"the {what} is {shown(texts[i])}, but must be a number, {MOST_LOG10:g} at the most.",
            int(numbers[i]),
        )
    return np.maximum(values, -MOST_LOG10) * LOG10


def _decimal(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return math.nan


def _new_ids(
    file: ArpaFile, names: list[str], numbers: Places, ids: dict[str, int]
) -> Iterator[int]:
    for name, number in zip(names, numbers.tolist(), strict=True):
        if not name or GAP.search(name):
            raise file.error(f"the word {shown(name)} is empty or holds white space.", number)
        yield ids.setdefault(SPECIALS[UNK] if name == "<UNK>" else name, len(ids))


def _joined(parts: Sequence[NgramRows]) -> NgramRows:
    return NgramRows(
        *(
            np.concatenate([getattr(part, name) for part in parts])
            for name in NgramRows.__match_args__
        )
    )


def _unigrams(file: ArpaFile, rows: NgramRows, ids: Mapping[str, int]) -> Level:
    """Every token in its place; <s> and <pad> are never predicted."""
    words = rows.words[:, 0]
    _refuse_twins(file, words, rows.lines)
    if PAD in words or END not in words:
        problem = f"holds {SPECIALS[PAD]!r}" if PAD in words else f"lacks {SPECIALS[END]!r}"
        raise DataError(file.path, f"the list of 1-grams {problem}, so no text can be scored.")
    log_p, log_b = np.full(len(ids), ZERO), np.zeros(len(ids))
    log_p[words], log_b[words] = rows.log_p, rows.log_b
    log_p[START] = ZERO
    return Level(np.arange(len(ids), dtype=np.int32), log_p, log_b, np.zeros(0, np.int64))


def _usable(rows: NgramRows) -> NgramRows:
    """Without n-grams that no line has: <s> after another word, or one after </s>."""
    never = (rows.words[:, 1:] == START).any(axis=1) | (rows.words[:, :-1] == END).any(axis=1)
    return NgramRows(*(getattr(rows, name)[~never] for name in NgramRows.__match_args__))


def _levels(file: ArpaFile, first: Level, higher: Sequence[NgramRows]) -> tuple[Level, ...] | None:
    """The levels of a table; None if some n-gram lacks one inside it."""
    levels = [first]
    for rows in higher:
        prefix, suffix = _located(levels, rows.words[:, :-1]), _located(levels, rows.words[:, 1:])
        if (prefix < 0).any() or (suffix < 0).any():
            return None
        keys = prefix * len(first.words) + rows.words[:, -1]
        _refuse_twins(file, keys, rows.lines)
        below, order = levels[-1], np.argsort(keys)
        words, prefix, suffix = rows.words[order, -1], prefix[order], suffix[order]
        log_p, log_b = rows.log_p[order], rows.log_b[order]
        blank = np.isnan(log_p)
        log_p[blank] = below.log_b[prefix[blank]] + below.log_p[suffix[blank]]
        sizes = np.bincount(prefix, minlength=len(below.words))
        levels[-1] = below._replace(begin=np.concatenate([[0], np.cumsum(sizes)]))
        levels.append(Level(words, np.maximum(log_p, ZERO), log_b, np.zeros(0, np.int64)))
    levels[-1] = levels[-1]._replace(log_b=np.zeros(0))
    return tuple(levels)


def _located(levels: Sequence[Level], words: NDArray[np.int32]) -> Places:
    """Where n-grams (N, k) are in level k, or -1."""
    at = words[:, 0].astype(np.int64)
    for k in range(1, words.shape[1]):
        at = find(levels[k - 1], levels[k], at, words[:, k])
    return at


def _closed(higher: Sequence[NgramRows]) -> list[NgramRows]:
    """With every n-gram inside another; those that the file lacks are to be backed off to."""
    closed = [higher[-1]]
    for rows in reversed(higher[:-1]):
        above = closed[0].words
        needed = np.concatenate([rows.words, above[:, :-1], above[:, 1:]])
        distinct, first = np.unique(needed, axis=0, return_index=True)
        lacking = distinct[first >= len(rows.words)]
        none = np.zeros(len(lacking))
        blank = NgramRows(lacking, none * np.nan, none, none.astype(np.int64))
        closed.insert(0, _joined([rows, blank]))
    return closed


def _refuse_twins(file: ArpaFile, keys: NDArray[np.integer], lines: Places) -> None:
    """Keys (N,) must differ; those that do not are named by their lines."""
    ordered = np.sort(keys)
    if len(twins := np.flatnonzero(ordered[1:] == ordered[:-1])):
        once, again = lines[keys == ordered[twins[0]]][:2].tolist()
        raise file.error(f"the n-gram is that of line {once}, but each may stand once.", again)
