"""What a model says is a number, or it is said that it is none.

Weights that are numbers do not see to that: states of unbounded activations, and products of the
matrices in a tree, can outgrow what 32 bits hold.
"""

import math
from typing import Any, TypeVar

from numpy.typing import NDArray
from torch import Tensor

from unrolled.errors import NumericError

Values = TypeVar("Values", bound=Tensor | NDArray[Any])


def numbers(values: Values, *, of: str, finite: bool = False) -> Values:
    """The same values; a NumericError if one of them is NaN, or where they must be, not finite."""
    size: Any = abs(values)
    if not (size < math.inf if finite else size == size).all():
        raise NumericError(
            f"What the model says of {of} is not a number: its states grow beyond what 32 bits "
            "hold. Give it shorter texts, or train it with a bounded activation such as tanh."
        )
    return values
