"""Two or more models on the same examples: what they differ by, and whether chance could do it.

    d      the score of a model less that of the first
    boot   the paired bootstrap (Efron & Tibshirani 1993, ch. 16; Koehn 2004): examples are drawn
           with replacement, the same ones for both models. p is how often a resample's difference
           lies as far from the mean of all of them as d lies from 0
    rand   approximate randomisation (Noreen 1989; Riezler & Maxwell 2005): for each example a coin
           says whether the models change outputs. p is how often that gives a difference as large
           as d

Both are two-sided, and count the data as they are as one more draw, so no p is 0. Only scores that
count the same things are compared.
"""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from unrolled.errors import ConfigError
from unrolled.evaluate.bootstrap import NUMBERS_AT_ONCE, RESAMPLES, Floats, estimate, resamples
from unrolled.evaluate.measure import Measure, summed
from unrolled.evaluate.report import cell
from unrolled.evaluate.score import Score, check_comparable
from unrolled.evaluate.shown import columns

SWAPS = 10_000
ROUNDING = 1e-12  # of the larger score: differences closer than this are equal

Measures = Mapping[str, Sequence[Measure]]  # of each model, by its name


class Difference(NamedTuple):
    """What a model's score is above the first one's."""

    difference: float
    low: float  # of the 95 % interval
    high: float
    p_bootstrap: float
    p_randomisation: float

    def cells(self) -> list[str]:
        """A row of the table."""
        interval = f"[{self.low:+.3g}, {self.high:+.3g}]"
        chances = (f"{self.p_bootstrap:.4f}", f"{self.p_randomisation:.4f}")
        return [f"{self.difference:+.3g} {interval}", *chances]


class Compared(NamedTuple):
    """One measure of every model that can be compared with the first."""

    measure: str
    scores: dict[str, Score]
    differences: dict[str, Difference]  # of all but the first

    def text(self) -> str:
        """A table: a row a model."""
        lines = [[self.measure, "score", "difference", "p boot", "p rand"]]
        for name, short in zip(self.scores, _called(list(self.scores)), strict=True):
            found = self.differences.get(name)
            cells = found.cells() if found else ["", "", ""]
            lines.append([short, cell(self.scores[name]), *cells])
        return columns(lines)

    def as_json(self) -> dict[str, Any]:
        """Plain values."""
        models = {
            name: {
                **score._asdict(),
                **(self.differences[name]._asdict() if name in self.differences else {}),
            }
            for name, score in self.scores.items()
        }
        return {"measure": self.measure, "models": models}


class Comparison(NamedTuple):
    """Every measure that can be compared, and why others cannot."""

    compared: list[Compared]
    refused: list[str]

    def text(self) -> str:
        """A table a measure, then how to read them."""
        how = (
            "Differences are to the first model; 95 % intervals in brackets. p is the chance\n"
            "of a difference as large where there is none, by the paired bootstrap (p boot,\n"
            f"{RESAMPLES:,} resamples) and by approximate randomisation (p rand, {SWAPS:,} swaps)."
        )
        return "\n".join([*(f"{each.text()}\n" for each in self.compared), how, *self.refused])

    def as_json(self) -> dict[str, Any]:
        """Plain values."""
        recipe = {"resamples": RESAMPLES, "swaps": SWAPS}
        measures = [each.as_json() for each in self.compared]
        return {"measures": measures, **recipe, "not_compared": self.refused}

    def chart(self) -> Any:
        """There is none."""
        raise ConfigError("there is no picture of a comparison. Leave --out out.")


def _called(folders: list[str]) -> list[str]:
    """The folders' own names, where these tell them apart."""
    names = [Path(folder).name or folder for folder in folders]
    return names if len({*names}) == len(names) else folders


def compare(models: Measures) -> Comparison:
    """All models beside the first; a ConfigError where nothing can be compared."""
    (first, mine), *others = models.items()
    compared, refused = [], []
    for measure in mine:
        name, fitting = measure.score.name, {first: measure}
        for other, measures in others:
            try:
                fitting[other] = _fitting(measure, measures, other)
            except ConfigError as error:
                refused.append(f"{name} of {other}: {error}")
        if len(fitting) > 1:
            compared.append(_compared(name, fitting))
    if not compared:
        why = refused[0] if refused else "they have no measure that can be taken line by line."
        raise ConfigError(f"{', '.join(models)} cannot be compared: {why}")
    return Comparison(compared, refused)


def _fitting(measure: Measure, others: Sequence[Measure], name: str) -> Measure:
    """The one of these that counts what the measure counts."""
    for other in others:
        if other.score.name == measure.score.name:
            check_comparable(measure.score, other.score)
            return other
    raise ConfigError(f"{name} is of another kind and has no such measure.")


def _compared(name: str, models: Mapping[str, Measure]) -> Compared:
    first, *others = models.values()
    found = [difference(first, other) for other in others]
    scores = {name: measure.score for name, measure in models.items()}
    return Compared(name, scores, dict(zip(list(models)[1:], found, strict=True)))


def difference(first: Measure, other: Measure) -> Difference:
    """The other's score less the first one's, on the same examples."""
    N = _examples(first, other)
    value = other.score.value - first.score.value
    least = abs(value) - ROUNDING * max(abs(first.score.value), abs(other.score.value))
    drawn = np.concatenate([other.values(w) - first.values(w) for w in resamples(N)])
    boot = np.abs(drawn - drawn.mean()) >= least
    rand = np.concatenate([_swapped(first, other, coins) for coins in _coins(N)]) >= least
    return Difference(*estimate(value, drawn), _chance(boot), _chance(rand))


def _swapped(first: Measure, other: Measure, coins: Floats) -> Floats:
    """How far the two are apart where coins (R, N) say which of them gave which output: (R,)."""
    own, their = first.counts, other.counts
    stay = first.of_sums(summed(coins, own) + summed(1.0 - coins, their))
    swap = first.of_sums(summed(1.0 - coins, own) + summed(coins, their))
    return np.abs(stay - swap)


def _coins(N: int) -> Iterator[Floats]:
    """Heads or tails for each of N examples: SWAPS rows in all, some at a time."""
    generator, at_once = np.random.default_rng(0), max(1, NUMBERS_AT_ONCE // N)
    for start in range(0, SWAPS, at_once):
        shape = (min(at_once, SWAPS - start), N)
        yield generator.integers(2, size=shape, dtype=np.int8).astype(np.float64)


def _chance(as_large: np.ndarray[Any, np.dtype[np.bool_]]) -> float:
    return (int(np.count_nonzero(as_large)) + 1) / (len(as_large) + 1)


def _examples(first: Measure, other: Measure) -> int:
    sizes = [measure.counts.shape[0] for measure in (first, other)]
    if sizes[0] != sizes[1]:
        raise ConfigError(
            f"one model has {sizes[0]} examples and the other {sizes[1]}, but both must have "
            "answered the same ones."
        )
    return int(sizes[0])
