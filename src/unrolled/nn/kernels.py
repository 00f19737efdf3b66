"""The bridge to the compiled kernels: one recurrent layer, all its directions, forward and back.

What needs no order in time is a product over all tokens at once and stays with torch: the inputs'
part of the gates, the gradients of the weights and of the inputs. What runs step by step is
compiled (csrc/). Padding is never touched: tokens are gathered into one flat matrix, and each row
runs for as many steps as it has.

A result depends on nothing but the row itself and the weights, up to what torch's matrix product
does; it is the same for every run with the same number of threads. Gradients can be taken once.
"""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor

from unrolled.nn.cells import (
    ACTIVATIONS,
    OUTPUTS,
    PEEPHOLES,
    RESETS,
    UPDATES,
    Cell,
    GRUCell,
    LSTMCell,
    RNNCell,
    State,
    Weights,
)
from unrolled.nn.rows import Rows
from unrolled.nn.transforms import is_ordinary, refuse_twice

try:
    import unrolled._kernels as _kernels
except ImportError:  # no compiler was there when the package was installed
    _kernels = None  # type: ignore[assignment]

TYPES = (torch.float32, torch.float64)

FEW_ROWS = 64  # that a single step is made for
_ONES, _PLACES = torch.ones(FEW_ROWS, dtype=torch.int64), torch.arange(FEW_ROWS)


def active() -> str:
    """Which kernels run: the name of an instruction set, or "" for none."""
    return _kernels.name() if _kernels else ""


def can_run(cell: Cell, weights: Sequence[Weights], x: Tensor, first: Sequence[State]) -> bool:
    """Whether the kernels are there, and the cell and the tensors are such as they take."""
    if _kernels is None or type(cell) not in CODES or x.dtype not in TYPES:
        return False
    tensors = [x, *(t for w in weights for t in w if t is not None), *(t for s in first for t in s)]
    return is_ordinary(tensors) and all(
        t.dtype == x.dtype and t.device.type == "cpu" and t.layout == torch.strided for t in tensors
    )


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
    if rows.steps == 1 and len(x) <= FEW_ROWS and not learns:
        states = [step(cell, w, x[:, 0], s) for w, s in zip(weights, first, strict=True)]
        return _side_by_side([state[0] for state in states])[:, None], states  # (B, 1, D·H)
    call = Call(cell, rows, len(weights), x.dtype)
    if learns:
        y, *last = _Layer.apply(call, x, *tensors)  # type: ignore[no-untyped-call]
    else:
        y, last, _ = call.forward(x, tensors, save=False)
    size = cell.state_size
    return y, [tuple(last[i : i + size]) for i in range(0, len(last), size)]


def _side_by_side(parts: list[Tensor]) -> Tensor:
    return parts[0] if len(parts) == 1 else torch.cat(parts, dim=-1)


def step(cell: Cell, weights: Weights, x: Tensor, state: State) -> State:
    """One step of one row or a few, x (B, E), without gradients: the state after it.

    The weights are read as they lie, once: at this size, fetching them is what takes the time.
    """
    B, H = state[0].shape
    gates = x.new_empty(B, len(weights.ih))
    after = tuple(torch.empty_like(s, memory_format=torch.contiguous_format) for s in state)
    held = [t.contiguous() for t in (x, *state)]
    whole = Weights(*map(_whole, weights))  # type: ignore[arg-type]
    address = [
        0,
        *map(_address, (whole.hh, _inner_bias(cell, whole), whole.peephole)),
        *_pair(held[1:]),
        *(gates.data_ptr(), 0, 0, 0),
        *(after[0].data_ptr(), H, H),  # y is h itself
        *_pair(after),
        held[0].data_ptr(),
        *map(_address, (whole.ih, whole.bias_ih, whole.bias_hh)),
        x.size(1),
    ]
    sizes = [B, H, torch.get_num_threads(), _ONES.data_ptr(), _PLACES.data_ptr()]
    _kernels.forward(x.dtype == TYPES[1], _code(cell), sizes, [address])
    return after


class Kept(NamedTuple):
    """What one direction of a layer keeps for its way back."""

    gates: Tensor  # (N, G·H)
    inner: Tensor | None  # (N, H)  GRU: U_n h + b, or r ⊙ h
    cells: Tensor | None  # (N, H)  LSTM: c after each step
    before: Tensor | None  # (N, H)  h before each step


class Call(NamedTuple):
    """A layer's call without its tensors."""

    cell: Cell
    rows: Rows
    directions: int
    dtype: torch.dtype

    @property
    def arguments(self) -> int:
        """How many tensors each direction has: its weights and its first state."""
        return len(Weights._fields) + self.cell.state_size

    def split(self, tensors: Sequence[Tensor | None]) -> list[tuple[Weights, State]]:
        """Each direction's weights and first state."""
        size, count = self.arguments, len(Weights._fields)
        parts = [tensors[i : i + size] for i in range(0, len(tensors), size)]
        return [(Weights(*p[:count]), tuple(p[count:])) for p in parts]  # type: ignore[arg-type]

    def flat(self, x: Tensor) -> Tensor:
        """The tokens of x (B, T, F) as a matrix (N, F)."""
        matrix = x.reshape(-1, x.size(2))
        return matrix if self.rows.dense else matrix.index_select(0, self.rows.places)

    def padded(self, tokens: Tensor) -> Tensor:
        """A matrix (N, F) as (B, T, F) with zeros in the padding."""
        B, T, F = len(self.rows.lengths), self.rows.steps, tokens.size(1)
        if self.rows.dense:
            return tokens.view(B, T, F)
        return tokens.new_zeros(B * T, F).index_copy_(0, self.rows.places, tokens).view(B, T, F)

    def sizes(self, H: int) -> list[int]:
        """Sizes and the addresses of lengths and offsets, as the kernels take them."""
        rows = self.rows
        addresses = (rows.lengths.data_ptr(), rows.offsets.data_ptr())
        return [len(rows.lengths), H, torch.get_num_threads(), *addresses]

    def forward(
        self, x: Tensor, tensors: Sequence[Tensor | None], *, save: bool
    ) -> tuple[Tensor, list[Tensor], list[Kept]]:
        """y, the last states of all directions one after another, and what is kept."""
        B, T, D, flat = len(x), x.size(1), self.directions, self.flat(x)
        H = tensors[1].size(1)  # type: ignore[union-attr]
        dense = self.rows.dense
        y = x.new_empty(B, T, D * H) if dense else x.new_zeros(B, T, D * H)
        last = [x.new_empty(B, H) for _ in range(D * self.cell.state_size)]
        kept, addresses, alive = [], [], []
        for direction, (weights, first) in enumerate(self.split(tensors)):
            keep = self._keep(flat, weights, save)
            state = [s.contiguous() for s in first]
            bias = _inner_bias(self.cell, weights)
            whole = [_whole(t) for t in (weights.hh, bias, weights.peephole)]
            ends = last[direction * len(first) : (direction + 1) * len(first)]
            addresses.append(
                [
                    direction,
                    *map(_address, whole),
                    *_pair(state),
                    *map(_address, keep),
                    y.data_ptr() + direction * H * y.element_size(),
                    *(T * D * H, D * H),
                    *_pair(ends),
                    *(0, 0, 0, 0, 0),  # the gates hold their inputs' part
                ]
            )
            kept.append(keep)
            alive.append((state, whole))
        _kernels.forward(x.dtype == TYPES[1], _code(self.cell), self.sizes(H), addresses)
        return y, last, kept

    def _keep(self, flat: Tensor, weights: Weights, save: bool) -> Kept:
        """Room for what a direction keeps; the gates hold their inputs' part already."""
        gates = _project(self.cell, flat, weights)  # (N, G·H)
        N, H = flat.size(0), weights.hh.size(1)

        def room(wanted: bool) -> Tensor | None:
            return flat.new_empty(N, H) if wanted and save else None

        is_gru = isinstance(self.cell, GRUCell) and self.cell.reset != "none"
        return Kept(gates, room(is_gru), room(self.cell.state_size == 2), room(True))

    def backward(
        self,
        x: Tensor,
        tensors: Sequence[Tensor | None],
        kept: Sequence[Kept],
        gradients: Sequence[Tensor | None],
    ) -> "_Back":
        """The gradients of the gates and of the first states, from those of y and the last."""
        B, T, D = len(x), x.size(1), self.directions
        H = tensors[1].size(1)  # type: ignore[union-attr]
        dy = None if gradients[0] is None else gradients[0].contiguous()
        dlast = [None if g is None else g.contiguous() for g in gradients[1:]]
        size = self.cell.state_size
        dfirst = [x.new_empty(B, H) for _ in range(D * size)]
        dgates, dinner, addresses, alive = [], [], [], []
        after = isinstance(self.cell, GRUCell) and self.cell.reset == "after"
        for direction, (weights, first) in enumerate(self.split(tensors)):
            keep = kept[direction]
            dgates.append(torch.empty_like(keep.gates))
            dinner.append(torch.empty_like(keep.inner) if after else None)  # type: ignore[arg-type]
            whole, state = (
                list(map(_whole, (weights.hh, weights.peephole))),
                list(map(_whole, first)),
            )
            own = slice(direction * size, (direction + 1) * size)
            offset = direction * H * x.element_size()
            addresses.append(
                [
                    direction,
                    *map(_address, whole),
                    _pair(state)[1],
                    *map(_address, keep),
                    0 if dy is None else dy.data_ptr() + offset,
                    *(T * D * H, D * H),
                    *_pair(dlast[own]),
                    *map(_address, (dgates[-1], dinner[-1])),
                    *_pair(dfirst[own]),
                ]
            )
            alive.append((whole, state))
        _kernels.backward(x.dtype == TYPES[1], _code(self.cell), self.sizes(H), addresses)
        return _Back(dgates, dinner, dfirst)


class _Back(NamedTuple):
    """Gradients that the kernels leave for the products over all tokens."""

    gates: list[Tensor]  # of W x + b, (N, G·H) a direction
    inner: list[Tensor | None]  # of U_n h + b, (N, H) a direction, for a GRU that resets after
    first: list[Tensor]  # (B, H) each


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
            result = gradients(ctx.call, x, tensors, kept, upstream, for_x=ctx.needs_input_grad[1])
        return None, *refuse_twice(result, [x, *tensors, *upstream])


def gradients(
    call: Call,
    x: Tensor,
    tensors: Sequence[Tensor | None],
    kept: Sequence[Kept],
    upstream: Sequence[Tensor | None],
    *,
    for_x: bool,
) -> list[Tensor | None]:
    """The gradients of x and of all tensors, from those of y and of the last states."""
    back = call.backward(x, tensors, kept, upstream)
    flat, dflat, size = call.flat(x), None, call.cell.state_size
    result: list[Tensor | None] = []
    for direction, (weights, first) in enumerate(call.split(tensors)):
        if for_x:
            dflat = _added(dflat, back.gates[direction], weights.ih)  # (N, E)
        keep = kept[direction]
        result += _weight_gradients(call, weights, flat, keep, back, direction, first)
        result += back.first[direction * size : (direction + 1) * size]
    return [None if dflat is None else call.padded(dflat), *result]


def _added(total: Tensor | None, gradient: Tensor, weight: Tensor) -> Tensor:
    return gradient @ weight if total is None else torch.addmm(total, gradient, weight)


def _weight_gradients(
    call: Call,
    weights: Weights,
    flat: Tensor,
    keep: Kept,
    back: _Back,
    direction: int,
    first: State,
) -> list[Tensor | None]:
    """The gradients of a direction's weights, in their order."""
    dgates, dinner = back.gates[direction], back.inner[direction]
    H = weights.hh.size(1)
    dih = dgates.t() @ flat  # (G·H, E)
    dhh = torch.empty_like(weights.hh)
    source, assert_before = dgates, keep.before
    assert assert_before is not None
    reset = isinstance(call.cell, GRUCell) and call.cell.reset != "none"
    shared = 2 * H if reset else dhh.size(0)  # the rows whose gates are products with h itself
    torch.mm(source[:, :shared].t(), assert_before, out=dhh[:shared])
    if reset:
        side = dinner if dinner is not None else dgates[:, shared:]
        by = keep.before if dinner is not None else keep.inner
        assert by is not None
        torch.mm(side.t(), by, out=dhh[shared:])
    dbias_ih = dbias_hh = None
    if weights.bias_ih is not None:
        dbias_ih = dgates.sum(0)
        dbias_hh = dbias_ih
        if dinner is not None:
            dbias_hh = torch.cat([dbias_ih[:shared], dinner.sum(0)])
    dpeephole = _peephole_gradient(call, weights, keep, dgates, first, direction)
    return [dih, dhh, dbias_ih, dbias_hh, dpeephole]


def _peephole_gradient(
    call: Call, weights: Weights, keep: Kept, dgates: Tensor, first: State, direction: int
) -> Tensor | None:
    if weights.peephole is None:
        return None
    assert keep.cells is not None
    d_i, d_f, _, d_o = dgates.chunk(4, dim=1)  # 4 × (N, H)
    by_output = (d_o * keep.cells).sum(0)
    if len(weights.peephole) == 1:
        return by_output[None]
    rows = call.rows
    before = keep.cells.roll(-1 if direction else 1, 0)
    begins = rows.offsets + (rows.last if direction else 0)
    before[begins] = first[1]
    return torch.stack([(d_i * before).sum(0), (d_f * before).sum(0), by_output])  # (3, H)


def _project(cell: Cell, flat: Tensor, weights: Weights) -> Tensor:
    """The inputs' part of all gates (N, G·H), with every bias but one inside a product."""
    bias = weights.bias_ih
    if bias is not None and weights.bias_hh is not None:
        if _inner_bias(cell, weights) is None:
            bias = bias + weights.bias_hh
        else:
            shared = len(bias) * 2 // 3
            bias = torch.cat([bias[:shared] + weights.bias_hh[:shared], bias[shared:]])
    if bias is None:
        return flat @ weights.ih.t()
    return torch.addmm(bias, flat, weights.ih.t())


def _inner_bias(cell: Cell, weights: Weights) -> Tensor | None:
    """The bias of U_n h (H,) where r multiplies it too."""
    after = isinstance(cell, GRUCell) and cell.reset == "after"
    if not after or weights.bias_hh is None:
        return None
    return weights.bias_hh[2 * weights.hh.size(1) :]


def _whole(tensor: Tensor | None) -> Tensor | None:
    return None if tensor is None else tensor.contiguous()


def _address(tensor: Tensor | None) -> int:
    return 0 if tensor is None else tensor.data_ptr()


def _pair(state: Sequence[Tensor | None]) -> list[int]:
    """The addresses of h and c, where there is a c."""
    return [*map(_address, state), 0][:2]


def _index(names: Any, name: str) -> int:
    return list(names).index(name)


def _code(cell: Cell) -> list[int]:
    """The cell and its variant in numbers, in the order of csrc/recurrent.hpp."""
    return CODES[type(cell)](cell)


CODES: dict[type[Cell], Callable[[Any], list[int]]] = {
    RNNCell: lambda cell: [0, _index(ACTIVATIONS, cell.activation), 0],
    LSTMCell: lambda cell: [1, _index(OUTPUTS, cell.output), _index(PEEPHOLES, cell.peephole)],
    GRUCell: lambda cell: [2, _index(RESETS, cell.reset), _index(UPDATES, cell.update)],
}
