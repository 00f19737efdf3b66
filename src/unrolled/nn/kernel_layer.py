"""A layer of compiled kernels that torch can differentiate, once."""

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from unrolled.nn.cells import Cell, State, Weights
from unrolled.nn.kernels import Call, Kept
from unrolled.nn.rows import Rows
from unrolled.nn.transforms import differentiable_once


def run_layer(
    cell: Cell, weights: Sequence[Weights], x: Tensor, first: State | None, rows: Rows
) -> tuple[Tensor, State]:
    """As unroll.run_layer, in one call of the kernels."""
    tensors = [t for own in (*weights, first or ()) for t in own]
    learns = torch.is_grad_enabled() and any(
        t is not None and t.requires_grad for t in (x, *tensors)
    )
    call = Call(cell, rows, len(weights))
    if learns:
        y, *last = _Layer.apply(call, x, *tensors)  # type: ignore[no-untyped-call]
    else:
        y, last, _ = call.forward(x, tensors, save=False)
    return y, tuple(last)


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
        wanted = ctx.needs_input_grad[1:]
        return None, *differentiable_once(
            lambda: ctx.call.backward(x, tensors, kept, upstream, wanted),
            [x, *tensors, *upstream],
        )
