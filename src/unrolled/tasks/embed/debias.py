"""Debias word vectors by files of words, and show what it changed."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from unrolled.errors import ConfigError, DataError
from unrolled.evaluate.shown import columns, visible
from unrolled.tasks.embed.bias import debiased, direction, units, weat
from unrolled.tasks.shared.word_vectors import WordVectors
from unrolled.text.corpus import read_lines

SHOWN = 10  # words that leaned most


@dataclass(frozen=True)
class Debiased:
    """How far words leaned along the direction, before and after; and WEAT, where it was asked."""

    rows: Sequence[tuple[str, float, float]]
    effect: tuple[float, float] | None

    def text(self) -> str:
        """A table."""
        head = ["word", "before", "after"]
        lines = [[visible(word), f"{a:+.4f}", f"{b:+.4f}"] for word, a, b in self.rows]
        told = columns([head, *lines])
        if self.effect is not None:
            told += f"\nWEAT effect size: {self.effect[0]:+.3f} before, {self.effect[1]:+.3f} after"
        return told

    def as_json(self) -> Any:
        """Plain values."""
        words = [{"word": word, "before": a, "after": b} for word, a, b in self.rows]
        effect = None
        if self.effect is not None:
            effect = {"before": self.effect[0], "after": self.effect[1]}
        return {"words": words, "weat": effect}

    def chart(self) -> Any:
        """There is none."""
        raise ConfigError("there is no picture of this table. Leave --out out.")


def debias_words(
    vectors: WordVectors, pairs: Path, *, keep: Path | None, weat_file: Path | None
) -> tuple[WordVectors, Debiased]:
    """The vectors without the direction of the pairs, and what that changed."""
    rows = _pairs(vectors, pairs)
    kept = [] if keep is None else [vectors.row(w) for line in _words(keep) for w in line]
    before = units(vectors.vectors.astype(np.float64))
    after = debiased(before, rows, kept)
    g = direction(*(before[list(side)] for side in zip(*rows, strict=True)))
    lean, left = before @ g, after @ g
    order = np.argsort(-np.abs(lean), kind="stable")
    paired = {row for pair in rows for row in pair} | {*kept}
    most = [row for row in order.tolist() if row not in paired][:SHOWN]
    table = [(vectors.words[row], float(lean[row]), float(left[row])) for row in most]
    effect = None if weat_file is None else _effects(vectors, weat_file, before, after)
    made = WordVectors(vectors.words, after.astype(np.float32))
    return made, Debiased(table, effect)


def _words(path: Path) -> list[list[str]]:
    return [line.split() for line in read_lines(path) if line.strip()]


def _pairs(vectors: WordVectors, path: Path) -> list[tuple[int, int]]:
    found = []
    for number, words in enumerate(_words(path), 1):
        if len(words) != 2:
            raise DataError(path, f"has {len(words)} words, but must have two.", line=number)
        found.append((vectors.row(words[0]), vectors.row(words[1])))
    if not found:
        raise DataError(path, "holds no pair: two words a line.")
    return found


def _effects(vectors: WordVectors, path: Path, *tables: Any) -> tuple[float, float]:
    sets = [[vectors.row(word) for word in words] for words in _words(path)]
    if len(sets) != 4:
        raise DataError(path, f"has {len(sets)} lines of words, but must have four: X, Y, A, B.")
    before, after = (weat(*(table[rows] for rows in sets)) for table in tables)
    return before, after
