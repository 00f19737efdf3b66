"""How well a language model foresees a text.

cross-entropy   J = −(1/N) Σ_t log P(x_t | x_<t)        in nats, over N real tokens
perplexity      exp(J)                                   which is 2^J only where J is in bits
bits/character  Σ nats / (log 2 · characters)            comparable over token levels
"""

import math
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from unrolled.evaluate.bootstrap import Estimate, Floats, ratio
from unrolled.evaluate.measure import Measure
from unrolled.evaluate.score import Score, signature

MOST_NATS = 709.0  # whose exp is still a number


class Counted(NamedTuple):
    """What a language model's surprise was summed over; scores compare only where it is equal."""

    lines: int
    tokens: int  # line ends among them
    unknown: int
    characters: int  # line ends among them
    level: str
    context: str


def perplexity_scores(
    nats: Floats, tokens: NDArray[np.int64], counted: Counted, *, note: str = "", prefix: str = ""
) -> list[Score]:
    """Perplexity, cross-entropy, bits per character from each line's nats and tokens (lines,)."""
    mean = ratio(nats, tokens)
    bits = counted.tokens / counted.characters / math.log(2)  # a character, for a nat a token
    pairs = counted._asdict() | {"end": "counted", "base": "e"}
    recipe = signature(pairs, resampled="lines", note=note)
    estimates = {
        "perplexity": Estimate(*map(safe_exp, mean)),
        "cross_entropy": mean,
        "bits_per_character": Estimate(*(bits * value for value in mean)),
    }
    return [
        Score.of(prefix + name, estimate, recipe, higher_is_better=False)
        for name, estimate in estimates.items()
    ]


def perplexity_measures(
    nats: Floats,
    tokens: NDArray[np.int64],
    characters: Sequence[int],
    counted: Counted,
    *,
    note: str = "",
) -> list[Measure]:
    """The same scores, with what they are made of: nats, tokens and characters of each line."""
    counts = np.stack([nats, tokens, characters], axis=1).astype(np.float64)
    scores = perplexity_scores(nats, tokens, counted, note=note)
    return [Measure(score, counts, OF_SUMS[score.name]) for score in scores]


def _cross_entropy(sums: Floats) -> Floats:
    return np.asarray(sums[:, 0] / sums[:, 1])


OF_SUMS: dict[str, Callable[[Floats], Floats]] = {  # of nats, tokens and characters (R, 3)
    "perplexity": lambda sums: np.exp(np.minimum(_cross_entropy(sums), MOST_NATS)),
    "cross_entropy": _cross_entropy,
    "bits_per_character": lambda sums: np.asarray(sums[:, 0] / sums[:, 2] / math.log(2)),
}


def safe_exp(nats: float) -> float:
    """exp that ends at the largest numbers rather than in an exception."""
    return math.exp(min(nats, MOST_NATS))
