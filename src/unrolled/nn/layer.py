"""One layer over time, in one direction or two: which code runs it.

The compiled kernels do where they can (nn/kernel_layer.py), as an operator where torch looks on
(nn/compiled.py). Elsewhere torch's own code or the plain equations do (nn/unroll.py).
"""

import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import torch
from torch import Tensor

from unrolled.nn import compiled, kernel_layer, kernels
from unrolled.nn.cells import Cell, State, Weights
from unrolled.nn.rows import PaddedRows
from unrolled.nn.shapes import check_layer, whole_biases
from unrolled.nn.transforms import in_graph, is_cast, is_kept, is_traced, is_transformed
from unrolled.nn.unroll import has_fused, unroll


class _References:
    """How many `reference()` are open, in all threads together."""

    def __init__(self) -> None:
        self.open, self._lock = 0, threading.Lock()

    def add(self, number: int) -> None:
        with self._lock:
            self.open += number


_references = _References()


@contextmanager
def reference() -> Iterator[None]:
    """Within it, layers of all threads run as `cell.step` in a loop: slowly, as the papers say."""
    _references.add(1)
    try:
        yield
    finally:
        _references.add(-1)


def is_reference() -> bool:
    """Whether a `reference()` is open; what is compiled runs without."""
    return not torch.compiler.is_dynamo_compiling() and _references.open > 0


def run_layer(
    cell: Cell, weights: Sequence[Weights], x: Tensor, first: State | None, rows: PaddedRows
) -> tuple[Tensor, State]:
    """Run a cell over x (B, T, E), in one direction or two (D), each with weights of its own.

    first is a state of (D, B, H) tensors, or None for zeros. Returns y (B, T, D·H), zero in the
    padding, and each row's state after its last step, which backward is the first of the row.
    """
    weights = [*map(whole_biases, weights)]
    plain = is_reference()
    if not plain and kernels.can_run(cell, weights, x, first):
        return kernel_layer.run_layer(cell, weights, x, first, rows)
    plain = plain or is_transformed()
    graph = in_graph() and not plain and not _is_for_torch(cell, rows)
    if graph and compiled.can_run(cell, weights, x, first):
        return compiled.run_layer(cell, weights, x, first, rows)
    check_layer(cell, weights, x, first or (), alike=not is_cast())  # as the kernels do
    return unroll(cell, weights, x, first, rows, plain=plain)


def _is_for_torch(cell: Cell, rows: PaddedRows) -> bool:
    """Whether the graph that is made should hold torch's own operator for the layer.

    torch.export makes one of every step of it where rows have lengths, so that T cannot vary.
    """
    return has_fused(cell, rows) and (is_traced() or (is_kept() and rows.dense))
