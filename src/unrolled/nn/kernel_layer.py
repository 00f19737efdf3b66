"""A layer of compiled kernels that torch can differentiate.

The kernels give first derivatives. Where more is asked of the backward pass than numbers, the
plain equations run again and are differentiated: for second derivatives, and for the gradients of
many losses at once.
"""

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from unrolled.nn.cells import Cell, State, Weights
from unrolled.nn.kernels import Call, Kept
from unrolled.nn.rows import PaddedRows
from unrolled.nn.transforms import is_ordinary
from unrolled.nn.unroll import unroll


def run_layer(
    cell: Cell, weights: Sequence[Weights], x: Tensor, first: State | None, rows: PaddedRows
) -> tuple[Tensor, State]:
    """As layer.run_layer, in one call of the kernels."""
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
        wanted = ctx.needs_input_grad[1:]
        if not only_numbers(upstream):
            return None, *differentiable_gradients(ctx.call, x, tensors, upstream, wanted)
        kept = [Kept(*parts[i : i + 4]) for i in range(0, len(parts), 4)]
        return None, *ctx.call.backward(x, tensors, kept, upstream, wanted)


def only_numbers(upstream: Sequence[Tensor | None]) -> bool:
    """Whether nobody will differentiate the gradients, and they are those of one loss."""
    given = [t for t in upstream if t is not None]
    return not torch.is_grad_enabled() and is_ordinary(given)


def differentiable_gradients(
    call: Call,
    x: Tensor,
    tensors: Sequence[Tensor | None],
    upstream: Sequence[Tensor | None],
    wanted: Sequence[bool],
) -> list[Tensor | None]:
    """As Call.backward, by torch's operators alone."""
    with torch.enable_grad():
        # A view each: the gradient by x must not go on into weights that were made of x.
        own = x.view_as(x)
        others = [None if t is None else t.view_as(t) for t in tensors]
        weights, first = call.split(others)
        state: Any = tuple(first) or None
        y, last = unroll(call.cell, weights, own, state, call.rows, plain=True)
    pairs = [(o, u) for o, u in zip((y, *last), upstream, strict=True) if u is not None]
    asked = [
        t
        for t, is_wanted in zip((own, *others), wanted, strict=True)
        if is_wanted and t is not None
    ]
    if not pairs:
        return [None for _ in wanted]
    found = iter(
        torch.autograd.grad(
            [output for output, _ in pairs],
            asked,
            [u for _, u in pairs],
            create_graph=torch.is_grad_enabled(),
            allow_unused=True,
        )
    )
    return [next(found) if is_wanted else None for is_wanted in wanted]
