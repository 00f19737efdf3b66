"""ARPA files, by which n-gram tools exchange models (Doug Paul's format at MIT Lincoln Labs).

    \\data\\
    ngram 1=3                         how many n-grams of each order follow
    \\1-grams:
    -0.4771213<TAB>cat<TAB>-0.30103   log10 probability, n-gram, log10 backoff weight if any
    \\end\\

A weight that is left out is 1. −99 stands for −∞. The names <s>, </s> and <unk> mean what they
mean here.
"""

import math
import re
from collections.abc import Iterable, Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from unrolled.errors import ConfigError, shown
from unrolled.ngrams.query import Places
from unrolled.ngrams.table import Floats, NgramTable
from unrolled.text.tokens import PAD

BETWEEN = " \t\r\n\f\v"  # a no-break space is a character like any other
GAP = re.compile(f"[{BETWEEN}]+")
LOG10 = math.log(10.0)
LINES_AT_ONCE = 1 << 16


def arpa_lines(table: NgramTable, tokens: Sequence[str]) -> Iterator[str]:
    """The file in pieces of many lines; `tokens` (V,) are the names of the table's tokens."""
    for token in tokens:
        if not token or GAP.search(token):
            raise ConfigError(
                f"the token {shown(token)} holds white space, which parts the tokens of an ARPA "
                "file. Export a model of words or byte pairs."
            )
    sizes = [len(level.words) - (k == 1) for k, level in enumerate(table.levels, 1)]  # no <pad>
    yield "\\data\\\n" + "".join(f"ngram {k}={size}\n" for k, size in enumerate(sizes, 1))
    names = np.array(tokens, dtype=object)
    for k, level in enumerate(table.levels, 1):
        yield f"\n\\{k}-grams:\n"
        for start in range(PAD + 1 if k == 1 else 0, len(level.words), LINES_AT_ONCE):
            at = np.arange(start, min(start + LINES_AT_ONCE, len(level.words)))
            columns = (names[column].tolist() for column in _columns(table, k, at))
            words = map(" ".join, zip(*columns, strict=True))
            yield "".join(
                _rows(words, level.log_p[at], level.log_b[at] if k < table.order else None)
            )
    yield "\n\\end\\\n"


def _rows(words: Iterable[str], log_p: Floats, log_b: Floats | None) -> Iterator[str]:
    p = (log_p / LOG10).tolist()
    if log_b is None:
        return (f"{p:.12g}\t{w}\n" for p, w in zip(p, words, strict=True))
    b = (log_b / LOG10).tolist()
    return (f"{p:.12g}\t{w}\t{b:.12g}\n" for p, w, b in zip(p, words, b, strict=True))


def _columns(table: NgramTable, k: int, at: Places) -> list[NDArray[np.int32]]:
    """The tokens of n-grams of order k at places (N,), a column each."""
    columns = [table.levels[k - 1].words[at]]
    for level in reversed(table.levels[: k - 1]):
        at = np.searchsorted(level.begin, at, side="right") - 1
        columns.insert(0, level.words[at])
    return columns
