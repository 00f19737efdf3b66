"""Word vectors of a model folder or of any vector file, and what can be asked of them.

Cosine of a vector of zeros with any other is 0. Words that are asked about are left out of the
answers unless they are asked for too.
"""

from collections.abc import Container, Iterable, Iterator, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from functools import cached_property
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple, Self

import numpy as np
import torch
from numpy.typing import NDArray

from unrolled.errors import ConfigError, ModelError, not_one_of, shown, whole
from unrolled.store.files import read_folder
from unrolled.store.names import WEIGHTS, as_path
from unrolled.tasks.shared.texts import one_text, several
from unrolled.tasks.shared.vector_folder import (
    SUBWORDS_FILE,
    WORDS_FILE,
    parse_subwords,
    parse_words,
    vector_rows,
)
from unrolled.text.vectors import WordVectors as VectorTable
from unrolled.text.vectors import read_vectors
from unrolled.text.word_parts import WordParts

SPELLINGS_AMONG = 200_000  # most frequent words
ROWS_AT_ONCE = 1 << 14
LARGE = 1e15  # float32 can hold the squares of such numbers, and sums of those
SMALL = 1e-3  # keeps the quotient of 3CosMul finite, as Levy & Goldberg have it

Floats = NDArray[np.float32]


class Near(NamedTuple):
    """A word, and how like the one that was asked for it is: the more, the liker."""

    word: str
    similarity: float


@dataclass(frozen=True, eq=False)
class WordVectors(VectorTable):
    """Words, the most frequent first, their vectors (N, E), and perhaps those of n-grams."""

    def __post_init__(self) -> None:
        shape = np.shape(self.vectors)
        if len(shape) != 2 or shape[0] != len(self.words) or not shape[1]:
            raise ConfigError(
                f"vectors has the shape {shape}, but must have a row for each of {len(self.words)} "
                "words."
            )

    @classmethod
    def load(cls, path: Path | str, *, limit: int | None = None, encoding: str = "utf-8") -> Self:
        """Of a model folder or a vector file; `limit`: the first so many words alone."""
        place = as_path(path, name="path")
        most = None if limit is None else _at_least_one("limit", limit)
        if place.is_dir():
            return cls._of_folder(place, most)
        table = read_vectors(place, most=most, encoding=encoding)
        return cls(table.words, table.vectors, table.parts)

    @classmethod
    def _of_folder(cls, folder: Path, limit: int | None) -> Self:
        files = read_folder(folder, required=(WEIGHTS, WORDS_FILE))
        try:
            words, _ = parse_words(files)
            rows = vector_rows(folder)
            if SUBWORDS_FILE in files:
                parts = WordParts.of(parse_subwords(files), words, rows)
                own = rows[: len(words)][:limit]
                return cls(words[:limit], parts.with_words(words[:limit], own), parts)
            if len(rows) != len(words):
                raise ValueError(f"there are {len(rows)} vectors for {len(words)} words")
        except ValueError as error:
            raise ModelError(folder, f"does not describe word vectors: {error}") from error
        return cls(words[:limit], rows[:limit])

    def __len__(self) -> int:
        return len(self.words)

    def __contains__(self, word: object) -> bool:
        return word in self._rows

    def __getitem__(self, word: str) -> Floats:
        """Its vector (E,), by its n-grams where there are some and it is unknown."""
        return np.asarray(self._with_unseen([word])[1][0])

    def _with_unseen(self, words: Sequence[str]) -> tuple[list[int], Floats]:
        """The rows of those that have one, and the vectors of all (n, E)."""
        rows, found = [], []
        for word in words:
            one_text(word, name="word")
            row = self._rows.get(word, self._rows.get(word.lower()))
            made = self.parts.vector(word) if row is None and self.parts else None
            if made is None:
                row = self.row(word)
                rows.append(row)
                made = self.vectors[row]
            found.append(made)
        return rows, _finite(np.asarray(found, dtype=np.float32))

    def row(self, word: str) -> int:
        """Which row a word has; an unknown one is a ConfigError with the nearest spellings."""
        rows = self._rows
        found = rows.get(one_text(word, name="word"), rows.get(word.lower()))
        if found is None:
            raise self._unknown(word)
        return found

    def similarity(self, first: str, second: str) -> float:
        """The cosine of two words."""
        a, b = _units(self._with_unseen([first, second])[1])
        return float(a @ b)

    def cosine(self, first: int, second: int) -> float:
        """The cosine of two rows."""
        a, b = _units(np.asarray(self.vectors[[first, second]]))
        return float(a @ b)

    def neighbours(
        self, text: str, count: int = 10, *, measure: str = "cosine", include_inputs: bool = False
    ) -> list[Near]:
        """The nearest words; of several words, those nearest to their mean direction."""
        if not one_text(text).split():
            raise ConfigError("there is no word whose neighbours could be found. Name one.")
        rows, given = self._with_unseen(text.split())
        if measure == "cosine":
            scores = self._cosines(_unit(_units(given).mean(0)))
        elif measure == "euclidean":
            scores = -self._distances(given.mean(0))
        else:
            raise not_one_of("measure", measure, ("cosine", "euclidean"))
        return self._best(scores, [] if include_inputs else rows, count)

    def analogy(
        self,
        a: str,
        b: str,
        c: str,
        count: int = 10,
        *,
        method: str = "add",
        include_inputs: bool = False,
    ) -> list[Near]:
        """What is to c as b is to a: king is to man as queen is to woman.

        "add": the cosine with b − a + c, all of length 1 (3CosAdd); "raw": the same of the vectors
        as they are; "multiply": cos(b) cos(c) / cos(a), each moved to 0..1 (3CosMul; Levy &
        Goldberg 2014).
        """
        rows, given = self._with_unseen([a, b, c])
        scores = self._analogy_scores(given[None], method)[0]
        return self._best(scores, [] if include_inputs else rows, count)

    def analogy_scores(self, rows: NDArray[np.int64], method: str = "add") -> Floats:
        """How well each word completes a : b :: c : ? of rows (Q, 3): (Q, N)."""
        return self._analogy_scores(np.asarray(self.vectors[rows]), method)

    def _analogy_scores(self, given: Floats, method: str) -> Floats:
        """The same of their vectors (Q, 3, E)."""
        table = given.astype(np.float64) if method == "raw" else _units(given)
        a, b, c = (table[:, k] for k in range(3))
        if method in ("add", "raw"):
            wanted = b - a + c
            lengths = np.linalg.norm(wanted, axis=1, keepdims=True)
            return self._cosines(wanted / np.where(lengths > 0, lengths, 1))
        if method != "multiply":
            raise not_one_of("method", method, ("add", "raw", "multiply"))
        near_a, near_b, near_c = ((1.0 + self._cosines(x)) / 2.0 for x in (a, b, c))
        return np.asarray(near_b * near_c / (near_a + SMALL))

    def odd_one_out(self, words: Sequence[str]) -> list[Near]:
        """The words from the least to the most like the mean of all of them."""
        words = list(several(words, "words"))
        if len(words) < 2:
            raise ConfigError(f"there is {len(words)} word, but one can only be odd among several.")
        units = _units(self._with_unseen(words)[1])
        scores = units @ _unit(units.mean(0))
        return [Near(words[k], float(scores[k])) for k in np.argsort(scores, kind="stable")]

    def _cosines(self, units: NDArray[Any]) -> Floats:
        """Of vectors of length 1 (…, E) with all words: (…, N), by one matrix product."""
        return np.asarray((self._table @ units.astype(np.float32).T).T / self._lengths)

    def _distances(self, vector: Floats) -> Floats:
        """Of a vector (E,) from all words: (N,)."""
        given = vector.astype(np.float64)
        return np.concatenate([_norms(rows - given) for rows in _blocks(self.vectors)])

    def _best(self, scores: NDArray[Any], left_out: Sequence[int], count: int) -> list[Near]:
        """Those of the highest scores, which are changed."""
        scores[list(left_out)] = -np.inf
        some = min(_at_least_one("count", count), len(scores) - len(set(left_out)))
        places = torch.topk(torch.from_numpy(scores), some, sorted=False).indices
        order = sorted(places.tolist(), key=lambda row: (-scores[row], row))
        return [Near(self.words[row], float(scores[row])) for row in order]

    def _unknown(self, word: str) -> ConfigError:
        among = [w for w in islice(self.words, SPELLINGS_AMONG) if abs(len(w) - len(word)) < 3]
        near = get_close_matches(word, among, n=3, cutoff=0.7)
        hint = f" Did you mean {' or '.join(map(shown, near))}?" if near else ""
        return ConfigError(f"there is no vector of {shown(word)} among {len(self):,} words.{hint}")

    @cached_property
    def _rows(self) -> dict[str, int]:
        return {word: row for row, word in enumerate(self.words)}

    @cached_property
    def _lengths(self) -> Floats:
        """Of all vectors; 1 where one is 0, so that its cosines are."""
        found = np.concatenate([_norms(rows) for rows in _blocks(self._table)])
        return np.where(found > 0, found, np.float32(1))

    @cached_property
    def _table(self) -> Floats:
        """The vectors; all multiplied by one number where squares would overflow or vanish."""
        ends = _finite([(rows.max(), -rows.min()) for rows in _blocks(self.vectors)])
        largest = float(ends.max())
        if 1 / LARGE < largest < LARGE or largest == 0:
            return self.vectors
        return self.vectors / np.float32(largest)


def pretrained(
    path: Path | str,
    *,
    wanted: Container[str] = (),
    most: int | None = None,
    encoding: str = "utf-8",
) -> VectorTable:
    """Of a folder or a file the first `most` words (None: all), and those `wanted` that follow."""
    if not Path(path).is_dir():
        return _with_made(read_vectors(path, wanted=wanted, most=most, encoding=encoding), wanted)
    table = WordVectors.load(path)
    kept = [
        row for row, word in enumerate(table.words) if most is None or row < most or word in wanted
    ]
    words, vectors = [table.words[row] for row in kept], table.vectors[kept]
    return _with_made(VectorTable(words, vectors, table.parts), wanted)


def _with_made(found: VectorTable, wanted: Container[str]) -> VectorTable:
    """The same, and the wanted words that have a vector by their n-grams alone."""
    if found.parts is None or not isinstance(wanted, Iterable):
        return found
    unseen = sorted({*wanted} - {*found.words})
    made = {word: found.parts.vector(word) for word in unseen}
    known = {word: vector for word, vector in made.items() if vector is not None}
    if not known:
        return found
    return VectorTable([*found.words, *known], np.vstack([found.vectors, *known.values()]))


def _at_least_one(name: str, value: object) -> int:
    number = whole(name, value)
    if number < 1:
        raise ConfigError(f"{name} is {number}, but must be 1 or more.")
    return number


def _finite(values: Any) -> Floats:
    """The same as an array; a ConfigError where one is NaN or infinite."""
    found = np.asarray(values, np.float32)
    if not np.isfinite(found).all():
        raise ConfigError(
            "a vector has a number that is NaN or infinite, so nothing is near to it."
        )
    return found


def _blocks(table: Floats) -> Iterator[Floats]:
    """All rows, so many at a time that what is made of them stays small."""
    return (table[begin : begin + ROWS_AT_ONCE] for begin in range(0, len(table), ROWS_AT_ONCE))


def _norms(rows: NDArray[Any]) -> NDArray[Any]:
    """The length of each (N, E), without a table of squares."""
    return np.asarray(np.sqrt(np.einsum("ij,ij->i", rows, rows)))


def _units(vectors: Floats) -> Floats:
    """Each vector (…, E) at length 1, but zeros stay zeros."""
    lengths = np.linalg.norm(vectors.astype(np.float64), axis=-1, keepdims=True)
    return np.asarray(vectors / np.where(lengths > 0, lengths, 1), dtype=np.float32)


def _unit(vector: Floats) -> Floats:
    length = np.linalg.norm(vector)
    return np.asarray(vector / length if length > 0 else vector, dtype=np.float32)
