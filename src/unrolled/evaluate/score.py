"""Scores: numbers that carry their recipe."""

import math
from collections.abc import Mapping, Sequence
from importlib.metadata import version
from typing import Any, NamedTuple, Self

from unrolled.errors import ConfigError, NumericError
from unrolled.evaluate.bootstrap import RESAMPLES, Estimate

TOKEN_COUNTS = ("lines", "tokens", "unknown", "level", "end", "base")
EXAMPLES = ("examples", "tokens", "labels")
COMPARED = {  # what two scores must have in common to be compared
    "perplexity": TOKEN_COUNTS,
    "cross_entropy": TOKEN_COUNTS,
    "bits_per_character": ("lines", "characters"),
    "bleu": (*EXAMPLES, "nrefs", "case", "tok", "smooth", "order"),
    "unknown_accuracy": (*EXAMPLES, "unknown"),
    "token_accuracy": (*EXAMPLES, "level"),
    "chrf": (*EXAMPLES, "nrefs", "case", "nc", "nw", "space"),
}
LOWER_IS_BETTER = (  # of scores that were saved before they said so themselves
    *("perplexity", "cross_entropy", "bits_per_character", "ece"),
    *("backward_perplexity", "backward_cross_entropy", "backward_bits_per_character"),
)


class Score(NamedTuple):
    """A number, its 95 % interval, and all that is needed to obtain it again."""

    name: str
    value: float
    low: float
    high: float
    signature: str
    higher_is_better: bool

    @classmethod
    def of(
        cls, name: str, estimate: Estimate, signature: str, *, higher_is_better: bool = True
    ) -> Self:
        """An estimate with a name and a recipe; a NumericError if it is none."""
        if any(map(math.isnan, estimate)):
            raise NumericError(
                f"The {name} is not a number: what the model says grows beyond what 32 bits hold. "
                "Train it again with a lower rate."
            )
        return cls(name, *estimate, signature, higher_is_better)

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> Self:
        """What `_asdict` gave, also before scores knew their direction."""
        return cls(**{"higher_is_better": value["name"] not in LOWER_IS_BETTER, **value})

    def __str__(self) -> str:
        interval = f"({self.low:.4g} to {self.high:.4g})"
        return f"{self.name} = {self.value:.4g} {interval}  [{self.signature}]"


def signature(counted: Mapping[str, object], *, resampled: str, note: str = "") -> str:
    """A recipe as `key:value` pairs: what was counted, a note, the intervals, the version."""
    pairs = "|".join(f"{key}:{value}" for key, value in counted.items())
    return f"{pairs}{note}|{interval_recipe(resampled)}|version:{version('unrolled')}"


def interval_recipe(resampled: str) -> str:
    """How intervals were taken, over lines, texts or sentences."""
    return f"ci:bootstrap-{RESAMPLES}-{resampled}"


def better(first: Score, second: Score) -> bool:
    """Whether the first score is the better one; measures or counts that differ are refused."""
    check_comparable(first, second)
    if first.higher_is_better:
        return first.value > second.value
    return first.value < second.value


def check_comparable(first: Score, second: Score) -> None:
    """An error unless both are the same measure of the same things."""
    if first.name != second.name:
        raise ConfigError(
            f"{first.name} and {second.name} are unlike measures: compare equal ones."
        )
    mine, other = _pairs(first.signature), _pairs(second.signature)
    for key in _compared(first.name, mine):
        if mine.get(key) != other.get(key):
            raise ConfigError(
                f"two values of {first.name} cannot be compared: one counts {key}:{mine.get(key)}, "
                f"the other {key}:{other.get(key)}. Score both models on the same tokens."
            )


def _compared(name: str, pairs: Mapping[str, str]) -> Sequence[str]:
    """What must be the same; tokens of a level are the model's own, texts are the data's."""
    own = name not in COMPARED and "level" in pairs
    return [key for key in COMPARED.get(name, EXAMPLES) if not (own and key == "tokens")]


def named(scores: Sequence[Score], name: str) -> Score:
    """The score of that name."""
    return next(score for score in scores if score.name == name)


def _pairs(signature: str) -> dict[str, str]:
    return dict(pair.split(":", 1) for pair in signature.split("|"))
