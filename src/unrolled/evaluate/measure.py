"""A score together with what it is made of, example by example, so that it can be taken again.

Each measure is a function of counts summed over examples (lines, sentences, texts). A resample is
then a sum with weights, two models can be compared on the same examples, and nothing is scored
twice.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple, Union

import numpy as np
from numpy.typing import NDArray

from unrolled.evaluate.bootstrap import Estimate, Floats, bootstrap
from unrolled.evaluate.score import Score

if TYPE_CHECKING:
    from scipy.sparse import csr_array

Counts = Union[Floats, "csr_array"]  # (N, …), a row an example


class Measure(NamedTuple):
    """A score, and how to take it of other sums of the same counts."""

    score: Score
    counts: Counts
    of_sums: Callable[[Floats], Floats]  # (R, …) -> (R,)

    def values(self, weights: Floats) -> Floats:
        """Over examples that count `weights` (R, N) times each: (R,)."""
        return self.of_sums(summed(weights, self.counts))


class Recipe(NamedTuple):
    """What a score is called, how it was taken, and which way is better."""

    name: str
    signature: str
    higher_is_better: bool = True


def measured(
    recipe: Recipe,
    counts: Floats,
    of_sums: Callable[[Floats], Floats],
    value: float | None = None,
) -> Measure:
    """A measure whose score has the interval of the bootstrap.

    `value` is that of another's program, where it has the last word.
    """

    def sums(weights: Floats) -> Floats:
        return summed(weights, counts)

    found = bootstrap(sums, {recipe.name: of_sums}, len(counts))[recipe.name]
    if value is not None:
        found = Estimate(value, min(found.low, value), max(found.high, value))
    name, signature, higher = recipe
    return Measure(Score.of(name, found, signature, higher_is_better=higher), counts, of_sums)


def ratio_measure(
    score: Score, amounts: NDArray[np.generic], counts: NDArray[np.generic]
) -> Measure:
    """A score that is Σ amounts / Σ counts of examples (N,) both; 0 where nothing is counted."""
    return Measure(score, np.stack([amounts, counts], axis=1).astype(np.float64), quotient)


def quotient(sums: Floats) -> Floats:
    """The first column over the second (R, 2) -> (R,); 0 where there is nothing below."""
    part, whole = sums.T
    return np.asarray(np.divide(part, whole, out=np.zeros_like(part), where=whole > 0))


def summed(weights: Floats, counts: Counts) -> Floats:
    """Counts (N, …) summed over examples that count `weights` (R, N) times: (R, …)."""
    if isinstance(counts, np.ndarray):
        return np.asarray(np.tensordot(weights, counts, axes=1))
    return np.asarray(weights @ counts)
