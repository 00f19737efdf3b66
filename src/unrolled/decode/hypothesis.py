"""What a search finds, and the one place where lengths are made comparable."""

from dataclasses import dataclass
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from unrolled.errors import ConfigError, NumericError, number

MAX_ALPHA = 10.0  # far beyond any use, and no length to its power is infinite
Amount = TypeVar("Amount", float, NDArray[np.float64], Tensor)


@dataclass(frozen=True)
class Hypothesis:
    """A sequence, and how likely the model finds it.

    A sequence that reached its limit before END is not finished: its END is not in the sum.
    Where no sequence is possible at all, the tokens are empty and the log-probability is −inf.
    """

    tokens: list[int]  # without END
    log_probability: float  # natural; the sum over the tokens, and END where it is finished
    score: float  # the same, normalised by length
    finished: bool  # it came to END


def normalised(log_p: Amount, length: int | NDArray[np.int64] | Tensor, alpha: float) -> Amount:
    """log_p / length ** alpha (Wu et al. 2016, arXiv:1609.08144, sec. 7, in its plain form).

    length counts every token in the sum: END too where the sequence is finished. alpha 0 leaves
    the sum as it is, alpha 1 makes it a mean; between them long sequences are favoured less.
    """
    if isinstance(length, Tensor):
        length = length.double()  # a power of integers would be float32
    return log_p / length**alpha  # type: ignore[return-value]


def check_alpha(alpha: float) -> None:
    """An error unless alpha is a number that lengths can be raised to."""
    if not 0.0 <= number("alpha", alpha) <= MAX_ALPHA:
        raise ConfigError(
            f"alpha is {alpha}, but must be a number in 0..{MAX_ALPHA:g}. "
            "0 compares sums of log-probabilities, 1 compares means."
        )


def check_limits(limits: Tensor) -> None:
    """An error unless every sequence may have a token at least."""
    least = int(limits.min()) if len(limits) else 1
    if least < 1:
        raise ConfigError(
            f"limits has {least} in it, but must be at least 1 everywhere: END counts as a token. "
            "Leave out sentences that are to get no output."
        )


def not_a_number() -> NumericError:
    """The error for a model that gives NaN, which no search can rank."""
    return NumericError(
        "The model gave a log-probability that is not a number, but only numbers can be ranked. "
        "Its weights are damaged or its training diverged: train it again with a lower rate."
    )
