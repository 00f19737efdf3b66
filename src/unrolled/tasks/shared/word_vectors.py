"""Word vectors of a model folder or of any vector file, and what can be asked of them.

Cosine of a vector of zeros with any other is 0. Words that are asked about are left out of the
answers unless they are asked for too.
"""

from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from functools import cached_property
from itertools import islice
from pathlib import Path
from typing import NamedTuple, Self

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from unrolled.errors import ConfigError, ModelError, not_one_of
from unrolled.store.files import read_folder
from unrolled.store.names import WEIGHTS
from unrolled.store.tensors import read_tensors
from unrolled.text.subwords import Subwords
from unrolled.text.vectors import WordVectors as VectorTable
from unrolled.text.vectors import read_vectors
from unrolled.text.vocabulary import parse_object

WORDS_FILE = "words.json"
SUBWORDS_FILE = "subwords.json"  # of a model that has them
VECTORS = "input"  # the name of their tensor
SPELLINGS_AMONG = 200_000  # most frequent words
SMALL = 1e-3  # keeps the quotient of 3CosMul finite, as Levy & Goldberg have it

Floats = NDArray[np.float32]


class Near(NamedTuple):
    """A word, and how like the one that was asked for it is: the more, the liker."""

    word: str
    similarity: float


@dataclass(frozen=True, eq=False)
class WordParts:
    """The vectors of character n-grams: any word that has a known one has a vector by them."""

    subwords: Subwords
    used: NDArray[np.int64]  # (G,): numbers of n-grams, rising
    vectors: Floats  # (G, E)

    @classmethod
    def of(cls, subwords: Subwords, words: Sequence[str], rows: Floats) -> Self:
        """Of a model's rows: those of its words, then those of their n-grams."""
        used = np.unique(subwords.of(words)[0])
        if len(rows) != len(words) + len(used):
            raise ValueError(f"there must be {len(words) + len(used)} rows, but {len(rows)} are")
        return cls(subwords, used, rows[len(words) :])

    def vector(self, word: str) -> Floats | None:
        """The mean of its n-grams' vectors (E,); None where no n-gram is known."""
        numbers, _ = self.subwords.of([word])
        places = np.searchsorted(self.used, numbers).clip(max=max(len(self.used) - 1, 0))
        known = places[self.used[places] == numbers] if len(self.used) else places[:0]
        return np.asarray(self.vectors[known].mean(0)) if len(known) else None

    def with_words(self, words: Sequence[str], rows: Floats) -> Floats:
        """The vectors of known words: the means of their own rows and those of their n-grams."""
        numbers, starts = self.subwords.of(words)
        places = np.searchsorted(self.used, numbers)
        total = rows.astype(np.float32, copy=True)
        counts = np.diff(starts)
        np.add.at(total, np.repeat(np.arange(len(words)), counts), self.vectors[places])
        return np.asarray(total / (1 + counts)[:, None], dtype=np.float32)


@dataclass(frozen=True, eq=False)
class WordVectors(VectorTable):
    """Words, the most frequent first, their vectors (N, E), and perhaps those of n-grams."""

    parts: WordParts | None = None

    @classmethod
    def load(cls, path: Path | str, *, limit: int | None = None, encoding: str = "utf-8") -> Self:
        """Of a model folder or a vector file; `limit`: the first so many words alone."""
        if Path(path).is_dir():
            return cls._of_folder(Path(path), limit)
        table = read_vectors(path, most=limit, encoding=encoding)
        return cls(table.words, table.vectors)

    @classmethod
    def _of_folder(cls, folder: Path, limit: int | None) -> Self:
        files = read_folder(folder, required=(WEIGHTS, WORDS_FILE))
        try:
            words, _ = parse_words(files)
        except ValueError as error:
            raise ModelError(folder, f"does not describe word vectors: {error}") from error
        found = _table(read_tensors(folder / WEIGHTS, None))
        if found is not None and found.ndim == 2 and SUBWORDS_FILE in files:
            try:
                parts = WordParts.of(parse_subwords(files), words, found.numpy())
            except ValueError as error:
                raise ModelError(folder, f"does not describe word vectors: {error}") from error
            rows = found[: len(words)].numpy()
            return cls(words[:limit], parts.with_words(words[:limit], rows[:limit]), parts)
        if found is None or found.ndim != 2 or len(found) != len(words):
            raise ModelError(folder / WEIGHTS, f"does not hold a vector for each of {len(words)}")
        return cls(words[:limit], found[:limit].numpy())

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
            row = self._rows.get(word, self._rows.get(word.lower()))
            made = self.parts.vector(word) if row is None and self.parts else None
            if made is None:
                row = self.row(word)
                rows.append(row)
                made = self.vectors[row]
            found.append(made)
        return rows, np.asarray(found, dtype=np.float32)

    def row(self, word: str) -> int:
        """Which row a word has; an unknown one is a ConfigError with the nearest spellings."""
        rows = self._rows
        found = rows.get(word, rows.get(word.lower()))
        if found is None:
            raise self._unknown(word)
        return found

    def similarity(self, first: str, second: str) -> float:
        """The cosine of two words."""
        a, b = _units(self._with_unseen([first, second])[1])
        return float(a @ b)

    def cosine(self, first: int, second: int) -> float:
        """The cosine of two rows."""
        return float(self._units[first] @ self._units[second])

    def neighbours(
        self, text: str, count: int = 10, *, measure: str = "cosine", include_inputs: bool = False
    ) -> list[Near]:
        """The nearest words; of several words, those nearest to their mean direction."""
        rows, given = self._with_unseen(text.split())
        if measure == "cosine":
            scores = self._units @ _unit(_units(given).mean(0))
        elif measure == "euclidean":
            scores = -np.linalg.norm(self.vectors - given.mean(0), axis=1)
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
        table = given if method == "raw" else _units(given)
        a, b, c = (table[:, k] for k in range(3))
        if method in ("add", "raw"):
            wanted = b - a + c
            lengths = np.linalg.norm(wanted, axis=1, keepdims=True)
            return np.asarray((wanted / np.maximum(lengths, 1e-30)) @ self._units.T)
        if method != "multiply":
            raise not_one_of("method", method, ("add", "raw", "multiply"))
        near_a, near_b, near_c = ((1.0 + (x @ self._units.T)) / 2.0 for x in (a, b, c))
        return np.asarray(near_b * near_c / (near_a + SMALL))

    def odd_one_out(self, words: Sequence[str]) -> list[Near]:
        """The words from the least to the most like the mean of all of them."""
        if len(words) < 2:
            raise ConfigError(f"there is {len(words)} word, but one can only be odd among several.")
        units = _units(self._with_unseen(words)[1])
        scores = units @ _unit(units.mean(0))
        return [Near(words[k], float(scores[k])) for k in np.argsort(scores, kind="stable")]

    def _best(self, scores: Floats, left_out: Sequence[int], count: int) -> list[Near]:
        scores = scores.astype(np.float32, copy=True)
        scores[list(left_out)] = -np.inf
        some = min(count, len(scores) - len(set(left_out)))
        places = np.argpartition(-scores, max(some - 1, 0))[:some]
        order = sorted(places.tolist(), key=lambda row: (-scores[row], row))
        return [Near(self.words[row], float(scores[row])) for row in order]

    def _unknown(self, word: str) -> ConfigError:
        among = [w for w in islice(self.words, SPELLINGS_AMONG) if abs(len(w) - len(word)) < 3]
        near = get_close_matches(word, among, n=3, cutoff=0.7)
        hint = f" Did you mean {' or '.join(map(repr, near))}?" if near else ""
        return ConfigError(f"there is no vector of {word!r} among {len(self):,} words.{hint}")

    @cached_property
    def _rows(self) -> dict[str, int]:
        return {word: row for row, word in enumerate(self.words)}

    @cached_property
    def _units(self) -> Floats:
        return _units(self.vectors)


def pretrained(
    path: Path | str,
    *,
    wanted: Container[str] = (),
    most: int | None = None,
    encoding: str = "utf-8",
) -> VectorTable:
    """Of a folder or a file the first `most` words (None: all), and those `wanted` that follow."""
    if not Path(path).is_dir():
        return read_vectors(path, wanted=wanted, most=most, encoding=encoding)
    table = WordVectors.load(path)
    kept = [
        row for row, word in enumerate(table.words) if most is None or row < most or word in wanted
    ]
    words, vectors = [table.words[row] for row in kept], table.vectors[kept]
    return _with_made(table, VectorTable(words, vectors), wanted)


def _with_made(table: WordVectors, found: VectorTable, wanted: Container[str]) -> VectorTable:
    """The same, and the wanted words that have a vector by their n-grams alone."""
    if table.parts is None or not isinstance(wanted, Iterable):
        return found
    made = {word: table.parts.vector(word) for word in sorted(wanted) if word not in table}
    known = {word: vector for word, vector in made.items() if vector is not None}
    if not known:
        return found
    return VectorTable([*found.words, *known], np.vstack([found.vectors, *known.values()]))


def _units(vectors: Floats) -> Floats:
    """Each vector (…, E) at length 1, but zeros stay zeros."""
    lengths = np.linalg.norm(vectors, axis=-1, keepdims=True)
    return np.asarray(vectors / np.where(lengths > 0, lengths, 1), dtype=np.float32)


def _table(tensors: Mapping[str, Tensor]) -> Tensor | None:
    """The vectors of a model: its one table, or GloVe's two, summed."""
    if {"word", "context"} <= tensors.keys() and tensors["word"].shape == tensors["context"].shape:
        return tensors["word"] + tensors["context"]
    return tensors.get(VECTORS)


def _unit(vector: Floats) -> Floats:
    length = np.linalg.norm(vector)
    return np.asarray(vector / length if length > 0 else vector, dtype=np.float32)


def parse_words(files: Mapping[str, bytes]) -> tuple[list[str], NDArray[np.int64]]:
    """The words of a model folder, each once, and their counts; ValueError if they are wrong."""
    if WORDS_FILE not in files:
        raise ValueError(f"{WORDS_FILE} is missing")
    value = parse_object(files[WORDS_FILE].decode(), keys={"words", "counts"})
    words, counts = value["words"], value["counts"]
    if not isinstance(words, list) or not all(type(word) is str and word for word in words):
        raise ValueError(f"{WORDS_FILE}: the words must be a list of strings")
    if len(set(words)) != len(words) or len(words) < 1:
        raise ValueError(f"{WORDS_FILE}: there must be words, each of them once")
    right = isinstance(counts, list) and len(counts) == len(words)
    if not right or not all(type(n) is int and 0 <= n < 2**63 for n in counts):
        raise ValueError(f"{WORDS_FILE}: there must be a count for each of {len(words)} words")
    return words, np.array(counts, dtype=np.int64)


def parse_subwords(files: Mapping[str, bytes]) -> Subwords:
    """Which n-grams a model has; ValueError if it is wrong."""
    value = parse_object(files[SUBWORDS_FILE].decode(), keys={"least", "most", "buckets"})
    if not all(type(number) is int and 0 < number < 2**31 for number in value.values()):
        raise ValueError(f"{SUBWORDS_FILE}: lengths and buckets must be positive numbers")
    found = Subwords(value["least"], value["most"], value["buckets"])
    if not found.least <= found.most <= 100:
        raise ValueError(f"{SUBWORDS_FILE}: {found.least} to {found.most} are no lengths")
    return found
