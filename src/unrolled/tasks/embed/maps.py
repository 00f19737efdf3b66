"""Word vectors in the plane, and what the plane keeps of them.

t-SNE (van der Maaten & Hinton 2008) keeps neighbours, PCA directions of the largest variance.
How many of each word's nearest neighbours are still among its nearest is counted and told. What
becomes of analogies in fewer dimensions can be asked of projected vectors.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from unrolled.errors import ConfigError, not_one_of, shown
from unrolled.evaluate.shown import columns, visible
from unrolled.tasks.embed.bias import units as at_length_one
from unrolled.tasks.shared.word_vectors import WordVectors

NEIGHBOURS = 10
METHODS = ("t-sne", "pca")
MOST = 5000  # words of a map
PCA = re.compile(r"pca-([1-9][0-9]{0,3})")

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class WordMap:
    """Words and where they are: (N, 2)."""

    words: Sequence[str]
    places: Floats
    method: str
    kept: float  # share of neighbours

    def text(self) -> str:
        """The places, and what survives."""
        rows = [
            [visible(word), f"{x:.3f}", f"{y:.3f}"]
            for word, (x, y) in zip(self.words, self.places, strict=True)
        ]
        return f"{columns(rows)}\n{self._told()}"

    def _told(self) -> str:
        return f"{self.method}: {self.kept:.1%} of nearest neighbours are nearest on the map too."

    def as_json(self) -> Any:
        """Plain values."""
        places = [[float(x), float(y)] for x, y in self.places]
        return {
            "method": self.method,
            "neighbours_kept": self.kept,
            "words": dict(zip(self.words, places, strict=True)),
        }

    def chart(self) -> Any:
        """A map."""
        from unrolled.charts.words import word_map

        return word_map(self.words, self.places[:, 0], self.places[:, 1], title=self._told())


def map_words(vectors: WordVectors, words: Sequence[str], *, method: str, seed: int) -> WordMap:
    """These words in the plane."""
    if method not in METHODS:
        raise not_one_of("--method", method, METHODS)
    words = list(dict.fromkeys(words))
    if not 3 <= len(words) <= MOST:
        raise ConfigError(f"there are {len(words)} words, but a map has 3 to {MOST:,}.")
    units = at_length_one(vectors.vectors[[vectors.row(word) for word in words]].astype(np.float64))
    places = _by_pca(units, 2) if method == "pca" else _by_tsne(units, seed)
    return WordMap(words, places, method, kept_neighbours(units, places))


def projected(vectors: WordVectors, space: str, *, seed: int) -> WordVectors:
    """The same words in fewer dimensions: "original" (none fewer), "pca-K" or "t-sne" (two)."""
    if space == "original":
        return vectors
    found = PCA.fullmatch(space)
    if space != "t-sne" and not found:
        raise ConfigError(
            f"--space is {shown(space)}, but must be original, t-sne or pca-K, as pca-10."
        )
    if not found and not 3 <= len(vectors) <= MOST:
        raise ConfigError(
            f"there are {len(vectors):,} words, but t-SNE places 3 to {MOST:,}. Use --limit."
        )
    units = at_length_one(vectors.vectors.astype(np.float64))
    places = _by_pca(units, int(found[1])) if found else _by_tsne(units, seed)
    return WordVectors(vectors.words, places.astype(np.float32))


def _by_pca(units: Floats, dimensions: int) -> Floats:
    """The same number of dimensions where there are not so many: the others are 0."""
    centred = units - units.mean(0)
    left, scale, _ = np.linalg.svd(centred, full_matrices=False)
    places = np.zeros((len(units), dimensions))
    some = min(dimensions, len(scale))
    places[:, :some] = left[:, :some] * scale[:some]
    return places


def _by_tsne(units: Floats, seed: int) -> Floats:
    from sklearn.manifold import TSNE

    perplexity = min(30.0, (len(units) - 1) / 3)
    made = TSNE(perplexity=perplexity, init="pca", random_state=seed % 2**32).fit_transform(
        units if units.shape[1] > 1 else np.repeat(units, 2, axis=1)
    )
    return np.asarray(made, dtype=np.float64)


def kept_neighbours(before: Floats, after: Floats, count: int = NEIGHBOURS) -> float:
    """The share of each row's nearest rows that are still among its nearest."""
    count = min(count, len(before) - 1)
    nearest = []
    for table in (before, after):
        square = (table * table).sum(1)
        apart = square[:, None] + square[None, :] - 2 * table @ table.T
        np.fill_diagonal(apart, np.inf)
        nearest.append(np.argsort(apart, axis=1, kind="stable")[:, :count])
    same = [len({*a} & {*b}) for a, b in zip(*map(np.ndarray.tolist, nearest), strict=True)]
    return float(np.mean(same) / count)
