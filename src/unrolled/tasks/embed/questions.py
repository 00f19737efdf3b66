"""Judge word vectors by questions: analogies by section, and likeness as people see it.

    analogies    : section        then lines of four words, a b c d: d is to c as b is to a
    likeness     two words and a number a line, parted by spaces, tabs or commas

Analogies are counted right where the word that is most alike, the three given ones left out, is d
(Mikolov et al. 2013, arXiv:1301.3781); likeness is judged by Spearman's rank correlation of the
numbers and the cosines. Only questions whose words are all known count; how many are is told.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from unrolled.errors import ConfigError, DataError
from unrolled.evaluate.bootstrap import RESAMPLES, Estimate, estimate
from unrolled.evaluate.shown import columns
from unrolled.tasks.shared.word_vectors import WordVectors
from unrolled.text.corpus import read_lines

AT_ONCE = 500  # analogies
Longs = NDArray[np.int64]


class Judged(NamedTuple):
    """A row of the result: how many questions are known of how many, and the measure of those."""

    name: str
    measure: str  # accuracy, spearman
    known: int
    of: int
    found: Estimate | None  # None: too few are known

    def as_json(self) -> dict[str, Any]:
        """Plain values."""
        value = self.found._asdict() if self.found else {"value": None}
        return {"name": self.name, "measure": self.measure, **value, "known": self.known} | {
            "of": self.of
        }

    def cells(self) -> list[str]:
        """As a row of a table."""
        shown = f"{self.found.value:.3f}" if self.found else "-"
        between = f"[{self.found.low:.3f}, {self.found.high:.3f}]" if self.found else ""
        return [self.name, self.measure, shown, between, f"{self.known:,} of {self.of:,}"]


@dataclass(frozen=True)
class Questions:
    """All rows."""

    rows: Sequence[Judged]

    def text(self) -> str:
        """A table."""
        head = ["", "measure", "value", "95 %", "questions known"]
        return columns([head, *(row.cells() for row in self.rows)])

    def as_json(self) -> Any:
        """Plain values."""
        return {"scores": [row.as_json() for row in self.rows]}

    def chart(self) -> Any:
        """There is none."""
        raise ConfigError("there is no picture of these scores. Leave --out out.")


def judge(vectors: WordVectors, path: Path | str, *, method: str = "add") -> list[Judged]:
    """What a file of questions says of the vectors."""
    lines = [(n, line.split()) for n, line in enumerate(_lines(path), 1)]
    lines = [(n, fields) for n, fields in lines if fields and not fields[0].startswith("#")]
    if not lines:
        raise DataError(path, "holds no question: four words, or two words and a number a line.")
    first = next((fields for _, fields in lines if fields[0] != ":"), [])
    if lines[0][1][0].startswith(":") or len(first) == 4:
        return _analogies(vectors, lines, path, method)
    return [_likeness(vectors, lines, path)]


def _lines(path: Path | str) -> Iterable[str]:
    return (line.replace(",", " ").replace(";", " ") for line in read_lines(path))


def _analogies(
    vectors: WordVectors, lines: Sequence[tuple[int, list[str]]], path: Path | str, method: str
) -> list[Judged]:
    sections: dict[str, list[list[int]]] = {}
    name = Path(path).stem
    for number, fields in lines:
        if fields[0].startswith(":"):
            name = " ".join(fields).lstrip(": ") or name
        elif len(fields) != 4:
            raise DataError(path, f"has {len(fields)} words, but must have four.", line=number)
        else:
            sections.setdefault(name, []).append([_row(vectors, word) for word in fields])
    right = {name: _right(vectors, np.array(rows), method) for name, rows in sections.items()}
    judged = [_shares(name, known, len(sections[name])) for name, known in right.items()]
    if len(judged) > 1:
        everything = np.concatenate([*right.values()])
        judged.append(_shares("all", everything, sum(map(len, sections.values()))))
    return judged


def _row(vectors: WordVectors, word: str) -> int:
    """Its row, in its own or in small letters; −1: unknown."""
    return next((vectors.row(form) for form in (word, word.lower()) if form in vectors), -1)


def _right(vectors: WordVectors, rows: Longs, method: str) -> NDArray[np.bool_]:
    """Whether each question whose words are known is answered right."""
    rows = rows[(rows >= 0).all(1)]
    found = np.zeros(len(rows), dtype=bool)
    for start in range(0, len(rows), AT_ONCE):
        some = rows[start : start + AT_ONCE]
        scores = vectors.analogy_scores(some[:, :3], method)
        np.put_along_axis(scores, some[:, :3], -np.inf, axis=1)
        found[start : start + AT_ONCE] = scores.argmax(1) == some[:, 3]
    return found


def _shares(name: str, right: NDArray[np.bool_], of: int) -> Judged:
    if not len(right):
        return Judged(name, "accuracy", 0, of, None)
    share = float(right.mean())
    drawn = np.random.default_rng(0).binomial(len(right), share, RESAMPLES) / len(right)
    return Judged(name, "accuracy", len(right), of, estimate(share, drawn))


def _likeness(
    vectors: WordVectors, lines: Sequence[tuple[int, list[str]]], path: Path | str
) -> Judged:
    asked = []
    for number, fields in lines:
        if len(fields) != 3 or not _is_number(fields[2]):
            if number == lines[0][0] and len(fields) >= 3:
                continue  # names of columns
            raise DataError(path, "must hold two words and a number.", line=number)
        asked.append((_row(vectors, fields[0]), _row(vectors, fields[1]), float(fields[2])))
    known = [(a, b, score) for a, b, score in asked if a >= 0 and b >= 0]
    name = Path(path).stem
    if len(known) < 3:
        return Judged(name, "spearman", len(known), len(asked), None)
    cosines = np.array([vectors.cosine(a, b) for a, b, _ in known])
    given = np.array([score for *_, score in known])
    return Judged(name, "spearman", len(known), len(asked), _spearman(cosines, given))


def _is_number(text: str) -> bool:
    try:
        return bool(np.isfinite(float(text)))
    except ValueError:
        return False


def _spearman(ours: NDArray[np.float64], given: NDArray[np.float64]) -> Estimate:
    """With the interval of the bootstrap over pairs of words."""
    from scipy.stats import rankdata

    def correlation(rows: Longs) -> float:
        a, b = rankdata(ours[rows]), rankdata(given[rows])
        a, b = a - a.mean(), b - b.mean()
        length = float(np.sqrt((a @ a) * (b @ b)))
        return float(a @ b) / length if length else 0.0

    generator = np.random.default_rng(0)
    drawn = [correlation(generator.integers(len(ours), size=len(ours))) for _ in range(RESAMPLES)]
    return estimate(correlation(np.arange(len(ours))), np.array(drawn))
