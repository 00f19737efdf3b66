"""Scores: numbers that carry their recipe.

cross-entropy   J = −(1/N) Σ_t log P(x_t | x_<t)        in nats, over N real tokens
perplexity      exp(J)                                   which is 2^J only where J is in bits
bits/character  Σ nats / (log 2 · characters)            comparable over token levels
"""

import math
from collections.abc import Sequence
from importlib.metadata import version
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from unrolled.errors import ConfigError

RESAMPLES = 1000
TOKEN_COUNTS = ("lines", "tokens", "unknown", "level", "end", "base")
EXAMPLES = ("examples", "tokens", "labels")
COMPARED = {  # what two scores must have in common to be compared
    "perplexity": TOKEN_COUNTS,
    "cross_entropy": TOKEN_COUNTS,
    "bits_per_character": ("lines", "characters"),
    "bleu": (*EXAMPLES, "nrefs", "case", "tok", "smooth"),
    "chrf": (*EXAMPLES, "nrefs", "case", "nc", "nw", "space"),
}
HIGHER_IS_BETTER = {
    *("accuracy", "balanced_accuracy", "macro_f1", "unknown_accuracy", "exact_match"),
    *("span_f1", "span_precision", "span_recall", "bleu", "chrf", "token_accuracy"),
}
Floats = NDArray[np.float64]


class Score(NamedTuple):
    """A number, its 95 % interval, and all that is needed to obtain it again."""

    name: str
    value: float
    low: float
    high: float
    signature: str

    def __str__(self) -> str:
        interval = f"({self.low:.4g} to {self.high:.4g})"
        return f"{self.name} = {self.value:.4g} {interval}  [{self.signature}]"


class Counted(NamedTuple):
    """What a language model's surprise was summed over; scores compare only where it is equal."""

    lines: int
    tokens: int  # line ends among them
    unknown: int
    characters: int  # line ends among them
    level: str
    context: str

    def signature(self) -> str:
        """The counts as `key:value` pairs."""
        pairs = self._asdict() | {"end": "counted", "base": "e"}
        return "|".join(f"{key}:{value}" for key, value in pairs.items())


def surprise_scores(
    nats: Floats, tokens: NDArray[np.int64], counted: Counted, *, note: str = ""
) -> list[Score]:
    """Perplexity, cross-entropy, bits per character from each line's nats and tokens (lines,)."""
    value, low, high = resampled_ratio(nats, tokens)
    bits = counted.tokens / counted.characters / math.log(2)  # a character, for a nat a token
    recipe = (
        f"{counted.signature()}{note}|ci:bootstrap-{RESAMPLES}-lines|version:{version('unrolled')}"
    )
    return [
        Score("perplexity", safe_exp(value), safe_exp(low), safe_exp(high), recipe),
        Score("cross_entropy", value, low, high, recipe),
        Score("bits_per_character", value * bits, low * bits, high * bits, recipe),
    ]


def resampled_ratio(amounts: Floats, counts: NDArray[np.int64]) -> tuple[float, float, float]:
    """Σ amounts / Σ counts, with the 2.5 % and 97.5 % points over resampled lines (Efron 1979)."""
    value = float(amounts.sum() / counts.sum())
    generator = np.random.default_rng(0)
    ratios = []
    for _ in range(RESAMPLES):
        rows = generator.integers(len(counts), size=len(counts))
        ratios.append(amounts[rows].sum() / counts[rows].sum())
    low, high = np.quantile(ratios, [0.025, 0.975])
    return value, min(float(low), value), max(float(high), value)


def safe_exp(nats: float) -> float:
    """exp that ends at the largest numbers rather than in an exception."""
    return math.exp(min(nats, 709.0))


def better(first: Score, second: Score) -> bool:
    """Whether the first score is the better one; measures or counts that differ are refused."""
    if first.name != second.name:
        raise ConfigError(
            f"{first.name} and {second.name} are unlike measures: compare equal ones."
        )
    mine, other = _pairs(first.signature), _pairs(second.signature)
    for key in COMPARED.get(first.name, EXAMPLES):
        if mine.get(key) != other.get(key):
            raise ConfigError(
                f"two values of {first.name} cannot be compared: one counts {key}:{mine.get(key)}, "
                f"the other {key}:{other.get(key)}. Score both models on the same tokens."
            )
    if first.name in HIGHER_IS_BETTER:
        return first.value > second.value
    return first.value < second.value


def named(scores: Sequence[Score], name: str) -> Score:
    """The score of that name."""
    return next(score for score in scores if score.name == name)


def _pairs(signature: str) -> dict[str, str]:
    return dict(pair.split(":", 1) for pair in signature.split("|"))
