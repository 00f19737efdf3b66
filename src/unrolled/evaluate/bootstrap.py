"""95 % intervals by the bootstrap (Efron 1979): every measure on the same resamples.

A measure is a function of sums over examples (lines, sentences, texts), so that a resample is a sum
with weights, how often each example was drawn, and no example is scored twice.
"""

from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

RESAMPLES = 1000
NUMBERS_AT_ONCE = 4_000_000  # of weights: bounds the memory
Floats = NDArray[np.float64]
Sums = TypeVar("Sums")


class Estimate(NamedTuple):
    """A value and its 95 % interval."""

    value: float
    low: float
    high: float


def bootstrap(
    sums: Callable[[Floats], Sums], measures: Mapping[str, Callable[[Sums], Floats]], count: int
) -> dict[str, Estimate]:
    """Each measure of `count` examples.

    `sums` takes weights (R, count) to the sums that the measures are made of, R ways at once, and
    a measure takes these to values (R,).
    """
    whole = sums(np.ones((1, count)))
    drawn = [sums(weights) for weights in resamples(count)]
    return {
        name: estimate(float(measure(whole)[0]), np.concatenate([measure(some) for some in drawn]))
        for name, measure in measures.items()
    }


def ratio(amounts: NDArray[Any], counts: NDArray[Any]) -> Estimate:
    """Σ amounts / Σ counts of examples (N,) both."""

    def quotients(weights: Floats) -> Floats:
        return np.asarray((weights @ amounts) / (weights @ counts))

    return bootstrap(quotients, {"ratio": lambda values: values}, len(counts))["ratio"]


def estimate(value: float, drawn: Floats) -> Estimate:
    """A value with the 2.5 % and 97.5 % points of what was drawn (R,); they enclose it."""
    low, high = np.quantile(drawn, [0.025, 0.975])
    return Estimate(value, min(float(low), value), max(float(high), value))


def resamples(count: int) -> Iterator[Floats]:
    """How often each of `count` examples is drawn: RESAMPLES rows in all, some at a time."""
    generator = np.random.default_rng(0)
    at_once = max(1, NUMBERS_AT_ONCE // count)
    for start in range(0, RESAMPLES, at_once):
        drawn = [
            np.bincount(generator.integers(count, size=count), minlength=count)
            for _ in range(min(at_once, RESAMPLES - start))
        ]
        yield np.stack(drawn).astype(np.float64)
