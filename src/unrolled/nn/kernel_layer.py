"""A layer of compiled kernels that torch can differentiate, once."""

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from unrolled.nn.cells import Cell, State, Weights
from unrolled.nn.kernels import Call, Kept
from unrolled.nn.rows import Rows
from unrolled.nn.transforms import refuse_twice


def run_layer(
    cell: Cell, weights: Sequence[Weights], x: Tensor, first: Sequence[State], rows: Rows
) -> tuple[Tensor, list[State]]:
    """Run a cell over x (B, T, E), in one direction or two, from states of (B, H) tensors.

    Returns y (B, T, D·H), zero in the padding, and each direction's state after its last step.
    """
    tensors = [t for w, s in zip(weights, first, strict=True) for t in (*w, *s)]
    learns = torch.is_grad_enabled() and any(
        t is not None and t.requires_grad for t in (x, *tensors)
    )
    call = Call(cell, rows, len(weights), x.dtype)
    if learns:
        y, *last = _Layer.apply(call, x, *tensors)  # type: ignore[no-untyped-call]
    else:
        y, last, _ = call.forward(x, tensors, save=False)
    size = cell.state_size
    return y, [tuple(last[i : i + size]) for i in range(0, len(last), size)]


class _Layer(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, call: Call, x: Tensor, *tensors: Tensor | None) -> tuple[Tensor, ...]:
        y, last, kept = call.forward(x, tensors, save=True)
        ctx.call, ctx.count = call, len(tensors)
        ctx.save_for_backward(x, *tensors, *(t for keep in kept for t in keep))
        ctx.set_materialize_grads(False)
        return y, *last

    @staticmethod
    def backward(ctx: Any, *upstream: Tensor | None) -> tuple[Any, ...]:
        x, *saved = ctx.saved_tensors
        tensors, parts = saved[: ctx.count], saved[ctx.count :]
        kept = [Kept(*parts[i : i + 4]) for i in range(0, len(parts), 4)]
        with torch.no_grad():
            wanted = ctx.needs_input_grad[1:]
            result = ctx.call.backward(x, tensors, kept, upstream, wanted)
        return None, *refuse_twice(result, [x, *tensors, *upstream])
