"""A layer as an operator of torch's, `unrolled::layer`: what torch.compile sees of the kernels.

A graph must know the sizes of all that comes out before anything runs. So what is kept for the way
back has room for B·T tokens here, of which the first N are used. Lengths are looked at, and
checked, when the operator runs. Compiled code runs the kernels within `reference()` too: a graph
can be differentiated only once anyway.
"""

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor
from torch.library import Library, register_autograd, register_fake

from unrolled.nn.cells import Cell, GRUCell, LSTMCell, RNNCell, State, Weights, zero_state
from unrolled.nn.kernels import Call, Kept
from unrolled.nn.rows import Rows, find_rows

LIBRARY = Library("unrolled", "DEF")  # type: ignore[no-untyped-call]
LIBRARY.define(  # type: ignore[no-untyped-call]
    "layer(Tensor x, Tensor lengths, Tensor[] tensors, str[] cell, int directions, bool save)"
    " -> Tensor[]"
)
LIBRARY.define(  # type: ignore[no-untyped-call]
    "layer_backward(Tensor x, Tensor lengths, Tensor[] tensors, Tensor[] kept, Tensor?[] upstream,"
    " str[] cell, int directions) -> Tensor[]"
)

# A cell is named by its class and its options.
OPTIONS: dict[type[Cell], tuple[str, ...]] = {
    RNNCell: ("activation",),
    LSTMCell: ("output", "peephole"),
    GRUCell: ("reset", "update"),
}
KINDS = {kind.__name__: kind for kind in OPTIONS}


def run_layer(
    cell: Cell, weights: Sequence[Weights], x: Tensor, first: State | None, rows: Rows
) -> tuple[Tensor, State]:
    """As unroll.run_layer, in a graph."""
    first = first or zero_state(cell, weights, rows.count)
    tensors = [t for own in (*weights, first) for t in own if t is not None]
    names = [type(cell).__name__, *(getattr(cell, option) for option in OPTIONS[type(cell)])]
    save = torch.is_grad_enabled() and any(t.requires_grad for t in (x, *tensors))
    y, *last = torch.ops.unrolled.layer(x, rows.lengths, tensors, names, len(weights), save)
    return y, tuple(last[: cell.state_size])  # what is kept follows


def _cell(names: list[str]) -> Cell:
    return KINDS[names[0]](*names[1:])


def _spread(tensors: list[Tensor], cell: Cell, directions: int) -> list[Tensor | None]:
    """The tensors as kernels.Call takes them, with None for biases and peepholes that are not."""
    result: list[Tensor | None] = []
    end = len(tensors) - cell.state_size
    each = end // directions
    for start in range(0, end, each):
        own: list[Tensor | None] = [*tensors[start : start + each]]
        if not cell.peepholes:
            own.append(None)
        if len(own) == 3:
            own[2:2] = [None, None]
        result += own
    return [*result, *tensors[end:]]


def _keeps(cell: Cell) -> tuple[bool, bool, bool, bool]:
    """Which fields of kernels.Kept the cell fills."""
    has_inner = isinstance(cell, GRUCell) and cell.reset != "none"
    return True, has_inner, cell.state_size == 2, True


def _forward(
    x: Tensor, lengths: Tensor, tensors: list[Tensor], names: list[str], D: int, save: bool
) -> list[Tensor]:
    cell = _cell(names)
    call = Call(cell, find_rows(x, lengths), D)
    y, last, kept = call.forward(x, _spread(tensors, cell, D), save=save)
    places = x.size(0) * x.size(1)
    room = [t.resize_(places, t.size(1)) for keep in kept for t in keep if t is not None]
    return [y, *last, *(room if save else [])]


def _forward_sizes(
    x: Tensor, lengths: Tensor, tensors: list[Tensor], names: list[str], D: int, save: bool
) -> list[Tensor]:
    cell, (B, T, _), H = _cell(names), x.shape, tensors[1].size(1)
    widths = [cell.gates * H, *[H] * (sum(_keeps(cell)) - 1)] * (D if save else 0)
    last = [x.new_empty(D, B, H) for _ in range(cell.state_size)]
    return [x.new_empty(B, T, D * H), *last, *(x.new_empty(B * T, width) for width in widths)]


def _backward(
    x: Tensor,
    lengths: Tensor,
    tensors: list[Tensor],
    room: list[Tensor],
    upstream: list[Tensor | None],
    names: list[str],
    D: int,
) -> list[Tensor]:
    cell = _cell(names)
    call = Call(cell, find_rows(x, lengths), D)
    N, used = call.rows.tokens, iter(room)
    fields = [[next(used)[:N] if filled else None for filled in _keeps(cell)] for _ in range(D)]
    kept = [Kept(*own) for own in fields]
    spread = _spread(tensors, cell, D)
    wanted = [True, *(t is not None for t in spread)]
    result = call.backward(x, spread, kept, upstream, wanted)
    return _apart([g.contiguous() for g in result if g is not None])


def _apart(tensors: list[Tensor]) -> list[Tensor]:
    """The tensors, each in memory of its own: two biases may share a gradient."""
    first = {id(t): k for k, t in reversed([*enumerate(tensors)])}
    return [t if first[id(t)] == k else t.clone() for k, t in enumerate(tensors)]


def _backward_sizes(x: Tensor, lengths: Tensor, tensors: list[Tensor], *_: Any) -> list[Tensor]:
    return [t.new_empty(t.shape) for t in (x, *tensors)]


def _save(ctx: Any, inputs: tuple[Any, ...], output: list[Tensor]) -> None:
    x, lengths, tensors, names, D, _ = inputs
    kept = output[1 + _cell(names).state_size :]
    ctx.save_for_backward(x, lengths, *tensors, *kept)
    ctx.mark_non_differentiable(*kept)
    ctx.set_materialize_grads(False)
    ctx.names, ctx.D, ctx.count, ctx.outputs = names, D, len(tensors), len(output) - len(kept)


def _gradients(ctx: Any, upstream: list[Tensor | None]) -> tuple[Any, ...]:
    x, lengths, *saved = ctx.saved_tensors
    tensors, kept = saved[: ctx.count], saved[ctx.count :]
    dx, *result = torch.ops.unrolled.layer_backward(
        x, lengths, tensors, kept, upstream[: ctx.outputs], ctx.names, ctx.D
    )
    return dx, None, result, None, None, None


LIBRARY.impl("layer", _forward, "CPU")  # type: ignore[no-untyped-call]
LIBRARY.impl("layer_backward", _backward, "CPU")  # type: ignore[no-untyped-call]
register_fake("unrolled::layer", _forward_sizes, lib=LIBRARY)
register_fake("unrolled::layer_backward", _backward_sizes, lib=LIBRARY)
register_autograd("unrolled::layer", _gradients, setup_context=_save, lib=LIBRARY)
