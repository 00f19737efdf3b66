"""The bridge to the compiled kernels: one recurrent layer, all its directions, forward and back.

Padding is never touched: tokens are gathered into one flat matrix, and each row runs for as many
steps as it has. nn/kernel_layer.py makes a differentiable layer of it, nn/prepared.py single steps.
"""

from collections.abc import Callable, Sequence
from functools import cache
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
from unrolled.nn.transforms import is_ordinary

try:
    import unrolled._kernels as _kernels
except ImportError:  # no compiler was there when the package was installed
    _kernels = None  # type: ignore[assignment]

TYPES = (torch.float32, torch.float64)
FEW_TOKENS = 64  # below, packing the inputs' weights takes longer than it saves


def active() -> str:
    """Which kernels run: the name of an instruction set, or "" for none."""
    return _kernels.name() if _kernels else ""


def can_run(cell: Cell, weights: Sequence[Weights], x: Tensor, first: Sequence[State]) -> bool:
    """Whether the kernels are there, and the cell and the tensors are such as they take."""
    if _kernels is None or type(cell) not in CODES or x.dtype not in TYPES:
        return False
    tensors = [x, *(t for w in weights for t in w if t is not None), *(t for s in first for t in s)]
    return is_ordinary(tensors) and all(
        t.is_cpu and t.dtype == x.dtype and t.layout == torch.strided for t in tensors
    )


class Kept(NamedTuple):
    """What one direction of a layer keeps for its way back."""

    gates: Tensor | None  # (N, G·H)
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
        B, T, F = self.rows.lengths.size(0), self.rows.steps, tokens.size(1)
        if self.rows.dense:
            return tokens.view(B, T, F)
        return tokens.new_zeros(B * T, F).index_copy_(0, self.rows.places, tokens).view(B, T, F)

    def sizes(self, H: int) -> list[int]:
        """Sizes and the addresses of lengths and offsets, as the kernels take them."""
        rows = self.rows
        addresses = (rows.lengths.data_ptr(), rows.offsets.data_ptr())
        return [rows.lengths.size(0), H, torch.get_num_threads(), *addresses]

    def forward(
        self, x: Tensor, tensors: Sequence[Tensor | None], *, save: bool
    ) -> tuple[Tensor, list[Tensor], list[Kept]]:
        """y, the last states of all directions one after another, and what is kept."""
        (B, T, _), D, flat = x.shape, self.directions, self.flat(x).contiguous()
        H, (N, E) = tensors[1].size(1), flat.shape  # type: ignore[union-attr]
        y = x.new_empty(B, T, D * H) if self.rows.dense else x.new_zeros(B, T, D * H)
        last = [x.new_empty(B, H) for _ in range(D * self.cell.state_size)]
        kept, addresses, alive = [], [], []
        for direction, (weights, first) in enumerate(self.split(tensors)):
            keep = self._keep(flat, weights, save)
            state, whole = [s.contiguous() for s in first], [_whole(t) for t in weights]
            ends = last[direction * len(first) : (direction + 1) * len(first)]
            inputs = [flat, whole[0]] if N >= FEW_TOKENS else [None, None]
            addresses.append(
                [
                    direction,
                    *map(address, whole[1:]),
                    *pair(state),
                    *map(address, keep),
                    y.data_ptr() + direction * H * y.element_size(),
                    *(T * D * H, D * H),
                    *pair(ends),
                    *map(address, inputs),
                    *(0, 0, E),  # nothing is packed yet
                ]
            )
            kept.append(keep)
            alive.append((state, whole))
        _kernels.forward(x.dtype == TYPES[1], code(self.cell), self.sizes(H), addresses)
        return y, last, kept

    def _keep(self, flat: Tensor, weights: Weights, save: bool) -> Kept:
        """Room for what a direction keeps; of few tokens the gates hold W x already."""
        N, (width, H) = flat.size(0), weights.hh.shape

        def room(width: int, wanted: bool) -> Tensor | None:
            return flat.new_empty(N, width) if wanted and save else None

        gates = flat @ weights.ih.t() if N < FEW_TOKENS else room(width, True)  # (N, G·H)
        is_gru = isinstance(self.cell, GRUCell) and self.cell.reset != "none"
        return Kept(gates, room(H, is_gru), room(H, self.cell.state_size == 2), room(H, True))

    def backward(
        self,
        x: Tensor,
        tensors: Sequence[Tensor | None],
        kept: Sequence[Kept],
        gradients: Sequence[Tensor | None],
    ) -> "Back":
        """The gradients of the gates and of the first states, from those of y and the last."""
        (B, T, _), D = x.shape, self.directions
        H = tensors[1].size(1)  # type: ignore[union-attr]
        dy = None if gradients[0] is None else gradients[0].contiguous()
        dlast = [None if g is None else g.contiguous() for g in gradients[1:]]
        size = self.cell.state_size
        dfirst = [x.new_empty(B, H) for _ in range(D * size)]
        dgates, dinner, addresses, alive = [], [], [], []
        after = isinstance(self.cell, GRUCell) and self.cell.reset == "after"
        for direction, (weights, first) in enumerate(self.split(tensors)):
            keep = kept[direction]
            dgates.append(torch.empty_like(keep.gates))  # type: ignore[arg-type]
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
                    *map(address, whole),
                    pair(state)[1],
                    *map(address, keep),
                    0 if dy is None else dy.data_ptr() + offset,
                    *(T * D * H, D * H),
                    *pair(dlast[own]),
                    *map(address, (dgates[-1], dinner[-1])),
                    *pair(dfirst[own]),
                ]
            )
            alive.append((whole, state))
        _kernels.backward(x.dtype == TYPES[1], code(self.cell), self.sizes(H), addresses)
        return Back(dgates, dinner, dfirst)


class Back(NamedTuple):
    """Gradients that the kernels leave for the products over all tokens."""

    gates: list[Tensor]  # of W x + b, (N, G·H) a direction
    inner: list[Tensor | None]  # of U_n h + b, (N, H) a direction, for a GRU that resets after
    first: list[Tensor]  # (B, H) each


def _whole(tensor: Tensor | None) -> Tensor | None:
    return None if tensor is None else tensor.contiguous()


def address(tensor: Tensor | None) -> int:
    return 0 if tensor is None else tensor.data_ptr()


def pair(state: Sequence[Tensor | None], skip: int = 0) -> list[int]:
    """The addresses of h and c, where there is a c, `skip` bytes into each."""
    return [*(0 if s is None else s.data_ptr() + skip for s in state), 0][:2]


def can_soften(z: Tensor, bias: Tensor, targets: Tensor) -> bool:
    """Whether the kernels are there and take these tensors."""
    if _kernels is None or z.dtype not in TYPES or torch.compiler.is_dynamo_compiling():
        return False
    tensors, types = (z, bias, targets), (z.dtype, z.dtype, torch.int64)
    return is_ordinary(tensors) and all(
        t.is_cpu and t.dtype == dtype for t, dtype in zip(tensors, types, strict=True)
    )


def soften(z: Tensor, bias: Tensor, targets: Tensor, smoothing: float) -> Tensor:
    """The nats (N,) of each row; z (N, V), scores without their biases, becomes their gradient."""
    (N, V), whole, wanted = z.shape, bias.contiguous(), targets.contiguous()
    if N and not 0 <= int(wanted.min()) <= int(wanted.max()) < V:
        raise IndexError(f"a target is not in 0..{V - 1}")  # torch's own word for it
    nats = z.new_empty(N)
    addresses = [t.data_ptr() for t in (z, whole, wanted, nats)]
    _kernels.softmax(z.dtype == TYPES[1], [*addresses, N, V], smoothing, torch.get_num_threads())
    return nats


def _index(names: Any, name: str) -> int:
    return list(names).index(name)


@cache
def code(cell: Cell) -> list[int]:
    """The cell and its variant in numbers, in the order of csrc/recurrent.hpp."""
    return CODES[type(cell)](cell)


CODES: dict[type[Cell], Callable[[Any], list[int]]] = {
    RNNCell: lambda cell: [0, _index(ACTIVATIONS, cell.activation), 0],
    LSTMCell: lambda cell: [1, _index(OUTPUTS, cell.output), _index(PEEPHOLES, cell.peephole)],
    GRUCell: lambda cell: [2, _index(RESETS, cell.reset), _index(UPDATES, cell.update)],
}


def packed(weights: Tensor, H: int) -> Tensor:
    """Weights (G·H, K) as the kernels read them, for many calls."""
    whole, wide = weights.contiguous(), weights.dtype == TYPES[1]
    (rows, K) = whole.shape
    result = whole.new_empty(_kernels.packed_size(wide, rows // H, H, K))
    _kernels.pack(wide, whole.data_ptr(), rows // H, H, K, result.data_ptr())
    return result


def run_packed(cell: Cell, dtype: torch.dtype, sizes: list[int], addresses: list[int]) -> None:
    """One direction forward, from addresses in the order of csrc/recurrent.hpp."""
    _kernels.forward(dtype == TYPES[1], code(cell), sizes, [addresses])
