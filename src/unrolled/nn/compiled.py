"""A layer as an operator of torch's, `unrolled::layer`: what graphs and dispatch modes see of it.

A graph must know the sizes of all that comes out before anything runs. So what is kept for the way
back has room for B·T tokens here, of which the first N are used. Lengths are looked at, and
checked, when the operator runs. Compiled code runs the kernels within `reference()` too. Where they
are not there, no graph gets the operator, and one that comes from elsewhere is refused.
"""

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor
from torch.library import Library, register_autograd, register_fake
from torch.utils.flop_counter import register_flop_formula

from unrolled.errors import ConfigError, shown
from unrolled.nn import kernels
from unrolled.nn.cells import Cell, GRUCell, LSTMCell, RNNCell, State, Weights, zero_state
from unrolled.nn.kernel_gradients import what_is_kept
from unrolled.nn.kernel_layer import differentiable_gradients
from unrolled.nn.kernels import Call, Kept
from unrolled.nn.rows import PaddedRows, seen_rows
from unrolled.nn.shapes import check_dims, check_is_tensor
from unrolled.nn.transforms import is_batched, is_cast, is_traced
from unrolled.nn.unroll import with_both_biases

LIBRARY = Library("unrolled", "DEF")  # type: ignore[no-untyped-call]
LIBRARY.define(  # type: ignore[no-untyped-call]
    "layer(Tensor x, Tensor lengths, Tensor[] tensors, str cell, int directions, bool save)"
    " -> Tensor[]"
)
LIBRARY.define(  # type: ignore[no-untyped-call]
    "layer_backward(Tensor x, Tensor lengths, Tensor[] tensors, Tensor[] kept, Tensor?[] upstream,"
    " str cell, int directions) -> Tensor[]"
)

# A cell is named by its class and its options, with blanks between them.
OPTIONS: dict[type[Cell], tuple[str, ...]] = {
    RNNCell: ("activation",),
    LSTMCell: ("output", "peephole"),
    GRUCell: ("reset", "update"),
}
KINDS = {kind.__name__: kind for kind in OPTIONS}


def can_run(cell: Cell, weights: Sequence[Weights], x: Tensor, first: State | None) -> bool:
    """Whether the operator takes the cell and the tensors, real ones or those of a graph."""
    if not kernels.are_there() or type(cell) not in OPTIONS or x.dtype not in kernels.TYPES:
        return False
    if is_cast() or any(own.hr is not None for own in weights):
        return False
    tensors = [x, *(t for own in (*weights, first or ()) for t in own if t is not None)]
    return all(t.device.type == "cpu" and t.dtype == x.dtype for t in tensors)


def run_layer(
    cell: Cell, weights: Sequence[Weights], x: Tensor, first: State | None, rows: PaddedRows
) -> tuple[Tensor, State]:
    """As layer.run_layer, in a graph."""
    weights = [with_both_biases(own) for own in weights]
    first = first or zero_state(cell, weights, rows.count)
    tensors = [t for own in (*weights, first) for t in own if t is not None]
    learns = torch.is_grad_enabled() or is_traced()  # torch.jit.trace checks itself without
    save = learns and any(t.requires_grad for t in (x, *tensors))
    D = len(weights)
    y, *last = torch.ops.unrolled.layer(x, rows.lengths, tensors, name_of(cell), D, save)
    return y, tuple(last[: cell.state_size])  # what is kept follows


def name_of(cell: Cell) -> str:
    """The cell as the operators take it."""
    return " ".join([type(cell).__name__, *(getattr(cell, name) for name in OPTIONS[type(cell)])])


def _cell(name: str) -> Cell:
    kind, *options = name.split(" ")
    if kind not in KINDS or len(options) != len(OPTIONS[KINDS[kind]]):
        forms = ", or ".join(" ".join([k.__name__, *names]) for k, names in OPTIONS.items())
        raise ConfigError(f"cell is {shown(name)}, but must be {forms}.")
    return KINDS[kind](*options)


def _spread(tensors: list[Tensor], cell: Cell, directions: int) -> list[Tensor | None]:
    """The tensors as kernels.Call takes them, with None for what the weights do not have."""
    end = len(tensors) - cell.state_size
    least = 2 + (cell.peepholes > 0)
    if directions not in (1, 2) or end not in (least * directions, (least + 2) * directions):
        raise ConfigError(
            f"there are {len(tensors)} tensors for {directions} directions, but there must be 1 "
            f"or 2 directions with {least} or {least + 2} each, and {cell.state_size} of a state."
        )
    result: list[Tensor | None] = []
    each = end // directions
    for start in range(0, end, each):
        ih, hh, *others = tensors[start : start + each]
        peephole = others.pop() if cell.peepholes else None
        bias_ih, bias_hh = others or (None, None)
        result += Weights(ih, hh, bias_ih, bias_hh, peephole)
    return [*result, *tensors[end:]]


def _checked(
    x: Tensor, tensors: list[Tensor], name: str, D: int
) -> tuple[Cell, list[Tensor | None]]:
    """The cell, and the tensors spread out, of a call whose tensors have their axes."""
    kernels.check_are_there("unrolled::layer")
    check_is_tensor("x", x)
    check_dims("x", x, 3, "(B, T, E)")
    cell = _cell(name)
    spread = _spread(tensors, cell, D)
    check_dims("weight_hh", tensors[1], 2, "(G·H, H)")
    return cell, spread


def _keeps(cell: Cell) -> tuple[bool, ...]:
    """Which fields of kernels.Kept the cell fills."""
    return True, *what_is_kept(cell)


def _forward(
    x: Tensor, lengths: Tensor, tensors: list[Tensor], name: str, D: int, save: bool
) -> list[Tensor]:
    cell, spread = _checked(x, tensors, name, D)
    call = Call(cell, seen_rows(x, lengths), D)
    y, last, kept = call.forward(x, spread, save=save)
    places = x.size(0) * x.size(1)
    room = [_widened(t, places) for keep in kept for t in keep if save and t is not None]
    return [y.contiguous(), *last, *room]


def _widened(kept: Tensor, places: int) -> Tensor:
    """What is kept of N tokens, with zeros for those that are not."""
    N, width = kept.shape
    kept.resize_(places, width)[N:] = 0.0
    return kept


def _forward_sizes(
    x: Tensor, lengths: Tensor, tensors: list[Tensor], name: str, D: int, save: bool
) -> list[Tensor]:
    cell, _ = _checked(x, tensors, name, D)
    (B, T, _), H = x.shape, tensors[1].size(1)
    widths = [cell.gates * H, *[H] * (sum(_keeps(cell)) - 1)] * (D if save else 0)
    last = [x.new_empty(D, B, H) for _ in range(cell.state_size)]
    return [x.new_empty(B, T, D * H), *last, *(x.new_empty(B * T, width) for width in widths)]


def _backward(
    x: Tensor,
    lengths: Tensor,
    tensors: list[Tensor],
    room: list[Tensor],
    upstream: list[Tensor | None],
    name: str,
    D: int,
) -> list[Tensor]:
    cell, spread = _checked(x, tensors, name, D)
    call = Call(cell, seen_rows(x, lengths), D)
    N, keeps = call.rows.tokens, _keeps(cell)
    if len(room) != sum(keeps) * D or any(t.dim() != 2 for t in room):
        raise ConfigError(f"kept has {len(room)} tensors, but must have {sum(keeps) * D} matrices.")
    used = iter(room)
    fields = [[next(used)[:N] if filled else None for filled in keeps] for _ in range(D)]
    kept = [Kept(*own) for own in fields]
    wanted = [True, *(t is not None for t in spread)]
    result = call.backward(x, spread, kept, upstream, wanted)
    return [g.contiguous() for g in result if g is not None]


def _backward_sizes(
    x: Tensor, lengths: Tensor, tensors: list[Tensor], *others: Any
) -> list[Tensor]:
    *_, name, D = others
    _checked(x, tensors, name, D)
    return [t.new_empty(t.shape) for t in (x, *tensors)]


def _save(ctx: Any, inputs: tuple[Any, ...], output: list[Tensor]) -> None:
    x, lengths, tensors, name, D, _ = inputs
    kept = output[1 + _cell(name).state_size :]
    ctx.save_for_backward(x, lengths, *tensors, *kept)
    ctx.mark_non_differentiable(*kept)
    ctx.set_materialize_grads(False)
    ctx.name, ctx.D, ctx.count, ctx.outputs = name, D, len(tensors), len(output) - len(kept)


def _gradients(ctx: Any, upstream: list[Tensor | None]) -> tuple[Any, ...]:
    x, lengths, *saved = ctx.saved_tensors
    tensors, kept = saved[: ctx.count], saved[ctx.count :]
    if torch.is_grad_enabled() or any(u is not None and is_batched(u) for u in upstream):
        return _differentiable(ctx, x, lengths, tensors, upstream)
    dx, *result = torch.ops.unrolled.layer_backward(
        x, lengths, tensors, kept, upstream[: ctx.outputs], ctx.name, ctx.D
    )
    return dx, None, result, None, None, None


def _differentiable(
    ctx: Any, x: Tensor, lengths: Tensor, tensors: list[Tensor], upstream: list[Tensor | None]
) -> tuple[Any, ...]:
    """The same, to be differentiated again."""
    cell = _cell(ctx.name)
    spread = _spread(tensors, cell, ctx.D)
    call = Call(cell, seen_rows(x, lengths), ctx.D)
    needs = [x.requires_grad, *(t is not None and t.requires_grad for t in spread)]
    every = differentiable_gradients(call, x, spread, upstream[: ctx.outputs], needs)
    dx, *result = every
    return dx, None, [g for g, t in zip(result, spread, strict=True) if t is not None], *[None] * 3


def _count_flops(
    x: Sequence[int], lengths: Sequence[int], tensors: Sequence[Sequence[int]], *_: Any, **__: Any
) -> int:
    """2 a multiplication and addition, of every step: B·T tokens with all weights."""
    tokens = x[0] * x[1]
    return 2 * tokens * sum(shape[0] * shape[1] for shape in tensors if len(shape) == 2)


def _count_backward_flops(*args: Any, **options: Any) -> int:
    """Twice as many: by the weights and by what they were multiplied with."""
    return 2 * _count_flops(*args, **options)


LIBRARY.impl("layer", _forward, "CPU")  # type: ignore[no-untyped-call]
LIBRARY.impl("layer_backward", _backward, "CPU")  # type: ignore[no-untyped-call]
register_fake("unrolled::layer", _forward_sizes, lib=LIBRARY)
register_fake("unrolled::layer_backward", _backward_sizes, lib=LIBRARY)
register_autograd("unrolled::layer", _gradients, setup_context=_save, lib=LIBRARY)
register_flop_formula(torch.ops.unrolled.layer)(_count_flops)
register_flop_formula(torch.ops.unrolled.layer_backward)(_count_backward_flops)
