"""Bridge to the compiled n-gram kernel: the only file of the models that names it."""

from importlib import import_module
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from unrolled.models.ngram_query import nats_of_lines
from unrolled.models.ngram_table import Floats, NgramTable


def _compiled() -> Any | None:
    """The kernel's class, or None where the package was installed without a compiler."""
    try:
        return import_module("unrolled._kernels").Ngrams
    except (ImportError, AttributeError):
        return None


KERNEL = _compiled()


def kernel_of(table: NgramTable) -> Any:
    """The kernel on a table's own arrays, which it keeps."""
    assert KERNEL is not None
    return KERNEL(*([*arrays] for arrays in zip(*table.levels, strict=True)), table.missing)


def line_nats(table: NgramTable, ids: NDArray[np.int32]) -> Floats:
    """Surprise at each token (N,) of lines, each closed by END: compiled, or else in numpy."""
    if KERNEL is None:
        return nats_of_lines(table, ids)
    nats = np.empty(len(ids))
    kernel_of(table).nats(np.ascontiguousarray(ids), nats, torch.get_num_threads())
    return nats
