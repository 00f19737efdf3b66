"""Bridge to the compiled n-gram kernels: the only file of the models that names them."""

from importlib import import_module
from typing import Any

import numpy as np
from numpy.typing import NDArray

MOST_TOKENS = 2**31 - 1  # of a text that the kernel counts


def _compiled(name: str) -> Any | None:
    """A kernel, or None where the package was installed without a compiler."""
    try:
        return getattr(import_module("unrolled._kernels"), name)
    except (ImportError, AttributeError):
        return None


TABLE = _compiled("Ngrams")
COUNTER = _compiled("NgramCounter")
INTERPOLATED = _compiled("interpolated")


def counter_of(ids: NDArray[np.int32], vocabulary_size: int) -> Any | None:
    """The kernel that counts the n-grams of lines of ids (N,); None where numpy is to count."""
    if COUNTER is None or not 0 < len(ids) <= MOST_TOKENS:
        return None
    return COUNTER(np.ascontiguousarray(ids), vocabulary_size)
