"""The bridge to the compiled kernels: one recurrent layer, all its directions, forward and back.

What stands in the padding is never read: each row runs for as many steps as it has.
nn/kernel_layer.py makes a differentiable layer of it, nn/prepared.py single steps.
"""

from collections.abc import Callable, Sequence
from functools import cache
from typing import Any, NamedTuple

import torch
from torch import Tensor

from unrolled.errors import ConfigError
from unrolled.native import module as _kernels
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
from unrolled.nn.rows import Rows, find_rows
from unrolled.nn.shapes import check_layer
from unrolled.nn.transforms import is_ordinary

TYPES = (torch.float32, torch.float64)
FEW_TOKENS = 64  # below, packing the inputs' weights takes longer than it saves
OWN_UNITS = 128  # up to which the kernels make all gradients; beyond, torch's products are faster


def active() -> str:
    """Which kernels run: the name of an instruction set, or "" for none."""
    return _kernels.name() if _kernels else ""


def are_there() -> bool:
    """Whether any were compiled, and are to run."""
    return _kernels is not None


def can_run(cell: Cell, weights: Sequence[Weights], x: Tensor, first: State | None) -> bool:
    """Whether the kernels are there, and the cell and the tensors are such as they take."""
    if _kernels is None or type(cell) not in CODES or x.dtype not in TYPES:
        return False
    if any(own.hr is not None for own in weights):
        return False
    tensors = [x, *(t for own in (*weights, first or ()) for t in own if t is not None)]
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

    def split(self, tensors: Sequence[Tensor | None]) -> tuple[list[Weights], list[Tensor | None]]:
        """Each direction's weights, and the first state, of no tensors where it is zero."""
        size = len(Weights._fields)
        end = size * self.directions
        weights = [Weights(*tensors[i : i + size]) for i in range(0, end, size)]  # type: ignore[arg-type]
        return weights, [*map(_whole, tensors[end:])]

    def sizes(self, H: int) -> list[int]:
        """As the kernels take them."""
        return [self.rows.count, H, torch.get_num_threads(), self.rows.steps]

    def forward(
        self,
        x: Tensor,
        tensors: Sequence[Tensor | None],
        *,
        save: bool,
        ready: Sequence[tuple[Tensor, Tensor]] = (),
    ) -> tuple[Tensor, list[Tensor], list[Kept]]:
        """y, the last state of (D, B, H) tensors, and what is kept.

        tensors: the weights of each direction, then the first state, (D, B, H) each, or none.
        ready: each direction's W and U as `packed` has made them, or nothing.
        """
        every, first = self.split(tensors)
        check_layer(self.cell, every, x, first or None)
        (B, T, E), D, x = x.shape, self.directions, in_rows(x)
        H, size = every[0].hh.size(1), x.element_size()
        y = x.new_empty(B, T, D * H)
        last = [x.new_empty(D, B, H) for _ in range(self.cell.state_size)]
        kept, addresses, alive = [], [], []
        few = not ready and self.rows.tokens < FEW_TOKENS
        for direction, weights in enumerate(every):
            keep, whole = self._keep(x, weights, save, few), [_whole(t) for t in weights]
            skip = direction * B * H * size
            addresses.append(
                [
                    direction,
                    *map(address, whole[1:5]),
                    *pair(first, skip),
                    *map(address, keep),
                    y.data_ptr() + direction * H * size,
                    *(T * D * H, D * H),
                    *pair(last, skip),
                    *((0, 0, 0, 0) if few else (*source(x), address(whole[0]))),
                    *(map(address, reversed(ready[direction])) if ready else (0, 0)),
                    E,
                ]
            )
            kept.append(keep)
            alive.append(whole)
        wide = x.dtype == TYPES[1]
        _kernels.forward(wide, code(self.cell), self.sizes(H), self.rows.values, addresses)
        return y, last, kept

    def _keep(self, x: Tensor, weights: Weights, save: bool, few: bool) -> Kept:
        """Room for what a direction keeps; of few tokens the gates hold W x already."""
        N, (width, H) = self.rows.tokens, weights.hh.shape

        def room(width: int, wanted: bool) -> Tensor | None:
            return x.new_empty(N, width) if wanted and save else None

        gates = self._flat(x) @ weights.ih.t() if few else room(width, True)  # (N, G·H)
        is_gru = isinstance(self.cell, GRUCell) and self.cell.reset != "none"
        return Kept(gates, room(H, is_gru), room(H, self.cell.state_size == 2), room(H, True))

    def _flat(self, x: Tensor) -> Tensor:
        """The tokens of x (B, T, E) as a matrix (N, E)."""
        flat = x.reshape(-1, x.size(2))
        return flat if self.rows.dense else flat.index_select(0, self.rows.places)

    def backward(
        self,
        x: Tensor,
        tensors: Sequence[Tensor | None],
        kept: Sequence[Kept],
        upstream: Sequence[Tensor | None],
        wanted: Sequence[bool],
    ) -> list[Tensor | None]:
        """The gradients of x and of all tensors, from those of y and of the last states.

        wanted: of which, in the same order. The others may be None.
        """
        (B, T, E), D, x = x.shape, self.directions, in_rows(x)
        every, first = self.split(tensors)
        H, size, fields = every[0].hh.size(1), x.element_size(), len(Weights._fields)
        dy, *dlast = map(_whole, upstream)
        own = H <= OWN_UNITS
        dx = x.new_empty(B, T, E) if wanted[0] and own else None
        dfirst = [
            x.new_empty(D, B, H) if is_wanted else None for is_wanted in wanted[1 + D * fields :]
        ]
        addresses, ways, alive = [], [], []
        for direction, weights in enumerate(every):
            way = self._way(weights, wanted[1 + direction * fields :], own)
            made = way.gradients if own else [None, None, *way.gradients[2:]]
            whole, skip = [_whole(t) for t in weights], direction * B * H * size
            addresses.append(
                [
                    direction,
                    *map(address, (whole[1], whole[4])),
                    pair(first, skip)[1],
                    *map(address, kept[direction]),
                    0 if dy is None else dy.data_ptr() + direction * H * size,
                    *(T * D * H, D * H),
                    *pair(dlast, skip),
                    *pair(dfirst, skip),
                    *source(x),
                    *(address(whole[0]), E, address(dx)),
                    *map(address, (*made, way.gates, way.inner)),
                    *(len(weights.hh), H),
                ]
            )
            ways.append(way)
            alive.append(whole)
        wide = x.dtype == TYPES[1]
        _kernels.backward(wide, code(self.cell), self.sizes(H), self.rows.values, addresses)
        if not own:
            flat = self._flat(x)
            for way, keep in zip(ways, kept, strict=True):
                way.multiply(flat, keep)
            if wanted[0]:
                dx = self._by_x(ways, every)
        return [dx, *(t for way in ways for t in way.all), *dfirst]

    def _way(self, weights: Weights, asked: Sequence[bool], own: bool) -> "Way":
        """Room for one direction's gradients, those that are asked for."""
        ih, hh, bias, peephole = asked[0], asked[1], asked[2] or asked[3], asked[4]
        after = isinstance(self.cell, GRUCell) and self.cell.reset == "after"
        gradients = [
            w.new_empty(w.shape) if w is not None and is_asked else None
            for w, is_asked in zip(
                weights[:5], (ih, hh, bias, bias and after, peephole), strict=True
            )
        ]
        N, (width, H) = self.rows.tokens, weights.hh.shape
        gates = None if own else weights.hh.new_empty(N, width)
        inner = None if own or not after else weights.hh.new_empty(N, H)
        return Way(gradients, gates, inner)

    def _by_x(self, ways: "Sequence[Way]", every: Sequence[Weights]) -> Tensor:
        """The gradient of x (B, T, E), 0 in the padding, from those of all directions' gates."""
        flat: Tensor | None = None
        for way, weights in zip(ways, every, strict=True):
            assert way.gates is not None
            if flat is None:
                flat = way.gates @ weights.ih  # (N, E)
            else:
                flat.addmm_(way.gates, weights.ih)
        assert flat is not None
        B, T, E = self.rows.count, self.rows.steps, flat.size(1)
        if self.rows.dense:
            return flat.view(B, T, E)
        return flat.new_zeros(B * T, E).index_copy_(0, self.rows.places, flat).view(B, T, E)


class Way(NamedTuple):
    """One direction of a layer on its way back."""

    gradients: list[Tensor | None]  # of its weights; both biases share one where they can
    gates: Tensor | None  # (N, G·H)  gradients of W x + b, where torch goes on with them
    inner: Tensor | None  # (N, H)  of U_n h + b, for a GRU that resets after

    @property
    def all(self) -> list[Tensor | None]:
        """The gradients, one for each of the weights."""
        ih, hh, bias_ih, bias_hh, peephole = self.gradients
        second = None if bias_ih is None else bias_ih.clone()
        return [ih, hh, bias_ih, second if bias_hh is None else bias_hh, peephole, None]

    def multiply(self, flat: Tensor, keep: Kept) -> None:
        """The gradients of large weights: sums over all tokens at once."""
        ih, hh, *_ = self.gradients
        gates, inner, before = self.gates, self.inner, keep.before
        assert gates is not None
        assert before is not None
        width, resets = gates.size(1), keep.inner is not None
        by_h = width * 2 // 3 if resets else width  # rows of U that h itself is multiplied by
        if ih is not None:
            torch.mm(gates.t(), flat, out=ih)  # (G·H, E)
        if hh is not None:
            torch.mm(gates[:, :by_h].t(), before, out=hh[:by_h])
            if inner is not None:
                torch.mm(inner.t(), before, out=hh[by_h:])
            elif keep.inner is not None:
                torch.mm(gates[:, by_h:].t(), keep.inner, out=hh[by_h:])


def in_rows(x: Tensor) -> Tensor:
    """x (B, T, E) with the numbers of a token side by side."""
    return x if x.stride(2) == 1 else x.contiguous()


def source(x: Tensor) -> tuple[int, int, int]:
    """Where x (B, T, E) is, and how far its rows and its steps are apart."""
    return x.data_ptr(), x.stride(0), x.stride(1)


def _whole(tensor: Tensor | None) -> Tensor | None:
    return None if tensor is None else tensor.contiguous()


def address(tensor: Tensor | None) -> int:
    return 0 if tensor is None else tensor.data_ptr()


def pair(state: Sequence[Tensor | None], skip: int) -> list[int]:
    """The addresses of h and c, `skip` bytes into each; 0 for those that are not."""
    return [*(0 if s is None else s.data_ptr() + skip for s in state), 0, 0][:2]


def can_take(first: Tensor, second: Tensor, places: Tensor) -> bool:
    """Whether the kernels are there and take these tensors: numbers of one type, and integers."""
    if _kernels is None or first.dtype not in TYPES or torch.compiler.is_dynamo_compiling():
        return False
    tensors, types = (first, second, places), (first.dtype, first.dtype, torch.int64)
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


def chain_sums(
    scores: Tensor, transitions: Tensor, lengths: Tensor
) -> tuple[Tensor, Tensor, Tensor]:
    """What crf.crf_marginals returns, of scores (B, T, K) and moves (K, K)."""
    log_z = scores.new_empty(len(scores), dtype=torch.float64)
    nodes = scores.new_empty(scores.shape)
    edges = scores.new_empty(transitions.shape)
    _chain(_kernels.chain_sums, (scores, transitions, lengths), (log_z, nodes, edges, None, None))
    return log_z, nodes, edges


def chain_log_z(scores: Tensor, transitions: Tensor, lengths: Tensor) -> Tensor:
    """log Z (B,) in float64 alone."""
    log_z = scores.new_empty(len(scores), dtype=torch.float64)
    out = (log_z, None, None, None, None)
    _chain(_kernels.chain_sums, (scores, transitions, lengths), out)
    return log_z


def chain_best(scores: Tensor, transitions: Tensor, lengths: Tensor) -> tuple[Tensor, Tensor]:
    """The best tags (B, T), 0 in the padding, and their scores (B,)."""
    paths, best = lengths.new_empty(scores.shape[:2]), scores.new_empty(len(scores))
    out = (None, None, None, paths, best)
    _chain(_kernels.chain_best, (scores, transitions, lengths), out)
    return paths, best


def _chain(
    run: Callable[[bool, list[int], int], None],
    given: tuple[Tensor, Tensor, Tensor],
    out: Sequence[Tensor | None],
) -> None:
    scores, transitions, lengths = given
    K = scores.size(2)
    if transitions.shape != (K, K):
        raise ConfigError(
            f"transitions is of shape {tuple(transitions.shape)}, but must be ({K}, {K}), for the "
            f"scores are of {K} tags."
        )
    find_rows(scores, lengths)  # which checks the lengths
    whole = [t.contiguous() for t in given]
    numbers = [*map(address, whole), *scores.shape, *map(address, out)]
    run(scores.dtype == TYPES[1], numbers, torch.get_num_threads())


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
    """One direction forward, all rows full, from addresses in the order of csrc/recurrent.hpp."""
    _kernels.forward(dtype == TYPES[1], code(cell), sizes, (), [addresses])
