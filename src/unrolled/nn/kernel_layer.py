"""A layer of compiled kernels that torch can differentiate, once.

What runs step by step, and W x + b with it, is compiled (csrc/). What needs no order in time on the
way back is a product over all tokens at once and stays with torch: the gradients of the weights and
of the inputs. Those that nobody asks for are not computed.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor

from unrolled.nn.cells import Cell, GRUCell, State, Weights
from unrolled.nn.kernels import Back, Call, Kept
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
            result = gradients(ctx.call, x, tensors, kept, upstream, wanted)
        return None, *refuse_twice(result, [x, *tensors, *upstream])


def gradients(
    call: Call,
    x: Tensor,
    tensors: Sequence[Tensor | None],
    kept: Sequence[Kept],
    upstream: Sequence[Tensor | None],
    wanted: Sequence[bool],
) -> list[Tensor | None]:
    """The gradients of x and of all tensors, from those of y and of the last states.

    wanted: of which, in the same order. The others may be None.
    """
    back = call.backward(x, tensors, kept, upstream)
    flat, dflat, size = call.flat(x), None, call.cell.state_size
    result: list[Tensor | None] = []
    for direction, (weights, first) in enumerate(call.split(tensors)):
        if wanted[0]:
            dflat = _added(dflat, back.gates[direction], weights.ih)  # (N, E)
        asked = Weights(*wanted[1 + direction * call.arguments :][: len(Weights._fields)])  # type: ignore[arg-type]
        way = _Way(call, direction, weights, first, flat, kept[direction], back)
        result += way.gradients(asked)
        result += back.first[direction * size : (direction + 1) * size]
    return [None if dflat is None else call.padded(dflat), *result]


def _added(total: Tensor | None, gradient: Tensor, weight: Tensor) -> Tensor:
    return gradient @ weight if total is None else torch.addmm(total, gradient, weight)


class _Way(NamedTuple):
    """One direction of a layer on its way back."""

    call: Call
    direction: int
    weights: Weights
    first: State
    flat: Tensor  # (N, E)
    keep: Kept
    back: Back

    def gradients(self, asked: Weights) -> list[Tensor | None]:
        """Those of the weights, in their order."""
        dgates = self.back.gates[self.direction]
        by_bias = self._by_biases() if asked.bias_ih or asked.bias_hh else [None, None]
        return [
            dgates.t() @ self.flat if asked.ih else None,  # (G·H, E)
            self._by_hh() if asked.hh else None,
            *by_bias,
            self._by_peephole() if asked.peephole else None,
        ]

    @property
    def _shared(self) -> int:
        """How many rows of U are multiplied by h itself."""
        resets = isinstance(self.call.cell, GRUCell) and self.call.cell.reset != "none"
        return len(self.weights.hh) * 2 // 3 if resets else len(self.weights.hh)

    def _by_hh(self) -> Tensor:
        dgates, dinner = self.back.gates[self.direction], self.back.inner[self.direction]
        result, before, shared = torch.empty_like(self.weights.hh), self.keep.before, self._shared
        assert before is not None
        torch.mm(dgates[:, :shared].t(), before, out=result[:shared])
        if dinner is not None:
            torch.mm(dinner.t(), before, out=result[shared:])
        elif shared < len(result):
            assert self.keep.inner is not None
            torch.mm(dgates[:, shared:].t(), self.keep.inner, out=result[shared:])
        return result  # (G·H, H)

    def _by_biases(self) -> list[Tensor]:
        dinner = self.back.inner[self.direction]
        by_input = self.back.gates[self.direction].sum(0)  # (G·H,)
        if dinner is None:
            return [by_input, by_input]
        return [by_input, torch.cat([by_input[: self._shared], dinner.sum(0)])]

    def _by_peephole(self) -> Tensor:
        cells, rows = self.keep.cells, self.call.rows
        assert cells is not None
        assert self.weights.peephole is not None
        d_i, d_f, _, d_o = self.back.gates[self.direction].chunk(4, dim=1)  # 4 × (N, H)
        by_output = (d_o * cells).sum(0)
        if len(self.weights.peephole) == 1:
            return by_output[None]
        before = cells.roll(-1 if self.direction else 1, 0)
        before[rows.offsets + (rows.last if self.direction else 0)] = self.first[1]
        return torch.stack([(d_i * before).sum(0), (d_f * before).sum(0), by_output])  # (3, H)
