"""How many edits lie between an output and its reference, for many lines at once.

wer   words that are put in, left out or changed (Levenshtein 1966), over the words of the
      references; words are parted by spaces. Where these are phonemes it is their error rate
cer   the same of characters, one space between words among them
per   position-independent error rate (Tillmann et al. 1997): as wer, but words may stand anywhere:
      (max(words said, words true) − words in common) / words true

The table of the distance is filled a row at a time for all lines of a block: the best way to a
place by insertions alone is a running minimum, so no place waits for its left neighbour.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from unrolled.evaluate.bootstrap import Floats

NUMBERS_AT_ONCE = 2_000_000  # of one row of the tables of a block: bounds the memory
Ids = NDArray[np.int32]
Integers = NDArray[np.int64]
Line = Sequence[str]  # its words, or a text for its characters


def edit_counts(said: Sequence[Line], true: Sequence[Line]) -> Floats:
    """Edits from each output to its reference, and how long that is: (N, 2)."""
    lengths = np.array([[len(a), len(b)] for a, b in zip(said, true, strict=True)], np.int64)
    edits = np.zeros(len(said))
    for rows in _blocks(lengths.reshape(-1, 2)):
        numbers: dict[str, int] = {}
        a, b = (_padded([lines[row] for row in rows], numbers) for lines in (said, true))
        edits[rows] = _distances(a, b, lengths[rows])
    return np.stack([edits, lengths.reshape(-1, 2)[:, 1]], axis=1)


def any_order_counts(said: Sequence[Line], true: Sequence[Line]) -> Floats:
    """The same where the order does not count: (N, 2)."""
    pairs = zip(said, true, strict=True)
    rows = [(max(len(a), len(b)) - _in_common(a, b), len(b)) for a, b in pairs]
    return np.array(rows, np.float64).reshape(-1, 2)


def error_rate(sums: Floats) -> Floats:
    """Edits over what the references have (R, 2) -> (R,); of empty ones, the edits themselves."""
    edits, length = sums.T
    return np.asarray(edits / np.maximum(length, 1.0))


def _in_common(said: Line, true: Line) -> int:
    return (Counter(said) & Counter(true)).total()


def _blocks(lengths: Integers) -> Iterator[Integers]:
    """Rows of similar length, few enough that a row of their tables fits."""
    order = np.argsort(lengths.max(axis=1, initial=0), kind="stable")[::-1]  # the longest first
    start = 0
    while start < len(order):
        width = int(lengths[order[start]].max()) + 1
        end = start + max(1, NUMBERS_AT_ONCE // width)
        yield order[start:end]
        start = end


def _padded(lines: Sequence[Line], numbers: dict[str, int]) -> Ids:
    """Lines as ids (B, T), −1 beyond their ends; `numbers` grows by what is new."""
    table = np.full((len(lines), max(map(len, lines), default=0)), -1, np.int32)
    for row, line in zip(table, lines, strict=True):
        row[: len(line)] = _ids(line, numbers)
    return table


def _ids(line: Iterable[str], numbers: dict[str, int]) -> list[int]:
    return [numbers.setdefault(token, len(numbers)) for token in line]


def _distances(a: Ids, b: Ids, lengths: Integers) -> Integers:
    """Levenshtein's distance of a (B, S) and b (B, T), their lengths being (B, 2): (B,)."""
    rows, places = np.arange(len(b)), np.arange(b.shape[1] + 1)
    table = np.repeat(places[None], len(b), axis=0)  # (B, T + 1), of an empty beginning of a
    found = table[rows, lengths[:, 1]]
    for i in range(a.shape[1]):
        changed = table[:, :-1] + (b != a[:, i, None])  # (B, T)
        best = np.minimum(table + 1, np.concatenate([table[:, :1] + 1, changed], axis=1))
        table = np.minimum.accumulate(best - places, axis=1) + places
        here = lengths[:, 0] == i + 1
        found[here] = table[here, lengths[here, 1]]
    return found
