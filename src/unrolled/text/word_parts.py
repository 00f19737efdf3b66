"""Vectors of character n-grams: a word that has a known one has a vector by them."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import NDArray

from unrolled.text.subwords import Subwords

AT_ONCE = 10_000  # words whose n-grams are summed

Floats = NDArray[np.float32]
Longs = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class WordParts:
    """Which n-grams there are, and their vectors."""

    subwords: Subwords
    used: Longs  # (G,): numbers of n-grams, rising
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
        total, count = self.sums([word])
        return np.asarray(total[0] / count[0], dtype=np.float32) if count[0] else None

    def with_words(self, words: Sequence[str] | Sequence[bytes], rows: Floats) -> Floats:
        """The vectors of known words: the means of their own rows and those of their n-grams."""
        made = np.empty(rows.shape, np.float32)
        for begin in range(0, len(words), AT_ONCE):
            some = slice(begin, begin + AT_ONCE)
            total, count = self.sums(words[some])
            made[some] = (rows[some] + total) / (1 + count)[:, None]
        return made

    def without_words(self, words: Sequence[str], vectors: Floats) -> Floats:
        """The rows of their own that words of such vectors have: `with_words` the other way.

        All n-grams count, for a file has rows of zeros for those that are not known.
        """
        rows = np.empty(vectors.shape, np.float32)
        for begin in range(0, len(words), AT_ONCE):
            some = slice(begin, begin + AT_ONCE)
            total, _ = self.sums(words[some])
            count = np.diff(self.subwords.of(words[some])[1])
            rows[some] = vectors[some].astype(np.float64) * (1 + count)[:, None] - total
        return rows

    def sums(self, words: Sequence[str] | Sequence[bytes]) -> tuple[NDArray[np.float64], Longs]:
        """Of the vectors of each word's known n-grams (B, E), and how many those are (B,)."""
        from scipy.sparse import csr_matrix

        numbers, starts = self.subwords.of(words)
        places = np.searchsorted(self.used, numbers).clip(max=max(len(self.used) - 1, 0))
        known = self.used[places] == numbers if len(self.used) else np.zeros(len(places), bool)
        needed, column = np.unique(places[known], return_inverse=True)
        ends = np.concatenate([[0], np.cumsum(known)])[starts]
        shape = (len(words), len(needed))
        which = csr_matrix((np.ones(len(column)), column, ends), shape=shape)
        return which @ self.vectors[needed].astype(np.float64), np.diff(ends)
