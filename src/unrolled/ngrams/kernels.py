"""Bridge to the compiled n-gram kernels: the only file of the models that names them."""

import numpy as np
from numpy.typing import NDArray

from unrolled.native import module

MOST_TOKENS = 2**31 - 1  # of a text that the kernel counts

# None where the compiled module is not.
TABLE = module.Ngrams if module else None
COUNTER = module.NgramCounter if module else None
INTERPOLATED = module.interpolated if module else None


def counter_of(ids: NDArray[np.int32], vocabulary_size: int) -> "module.NgramCounter | None":
    """The kernel that counts the n-grams of lines of ids (N,); None where numpy is to count."""
    if COUNTER is None or not 0 < len(ids) <= MOST_TOKENS:
        return None
    return COUNTER(np.ascontiguousarray(ids), vocabulary_size)
