"""The bridge to the compiled kernels: one recurrent layer, all its directions, forward and back.

What stands in the padding is never read: each row runs for as many steps as it has.
nn/kernel_layer.py makes a differentiable layer of it, nn/prepared.py single steps.

The kernels are given addresses and trust them. So here all shapes are compared, from the tensors
themselves, and whatever leads to a place in memory is a copy that no other thread can change.
"""

from collections.abc import Callable, Sequence
from functools import cache
from typing import Any, NamedTuple

import torch
from torch import Tensor

from unrolled.errors import ConfigError
from unrolled.native import NONE, VARIABLE
from unrolled.native import module as _kernels
from unrolled.nn.addresses import (
    address,
    h_and_c,
    if_any,
    in_memory,
    in_rows,
    laid_out_as,
    source,
)
from unrolled.nn.cells import Cell, GRUCell, LSTMCell, RNNCell, State, Weights
from unrolled.nn.kernel_gradients import (
    WEIGHTS,
    check_backward,
    gradient_by_x,
    room_for,
    what_is_kept,
)
from unrolled.nn.kernel_gradients import Kept as Kept
from unrolled.nn.rows import PaddedRows, seen_rows
from unrolled.nn.shapes import check_dims, check_layer, check_tensor
from unrolled.nn.threads import threads
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


def check_are_there(who: str) -> None:
    """ConfigError where `who` runs them and there are none."""
    if not are_there():
        raise ConfigError(
            f"{who} runs the compiled kernels, but there are none. Install the package where a "
            f"compiler is, with {VARIABLE} not {NONE!r}, or make the graph anew here."
        )


def can_run(cell: Cell, weights: Sequence[Weights], x: Tensor, first: State | None) -> bool:
    """Whether the kernels are there, and the cell and the tensors are such as they take."""
    if _kernels is None or type(cell) not in NATIVE_CELLS or x.dtype not in TYPES:
        return False
    if any(t is not None for own in weights for t in own[WEIGHTS:]):
        return False
    tensors = [x, *(t for own in (*weights, first or ()) for t in own if t is not None)]
    return is_ordinary(tensors) and all(
        t.is_cpu and t.dtype == x.dtype and t.layout == torch.strided for t in tensors
    )


class Call(NamedTuple):
    """A layer's call without its tensors."""

    cell: Cell
    rows: PaddedRows
    directions: int

    def split(self, tensors: Sequence[Tensor | None]) -> tuple[list[Weights], list[Tensor]]:
        """Each direction's weights, and the first state, of no tensors where it is zero."""
        size = len(Weights._fields)
        end = size * self.directions
        whole = [None if t is None else in_memory(t) for t in tensors]
        weights = [Weights(*whole[i : i + size]) for i in range(0, end, size)]  # type: ignore[arg-type]
        return weights, [t for t in whole[end:] if t is not None]

    def check(self, x: Tensor, weights: Sequence[Weights], first: Sequence[Tensor]) -> None:
        """ConfigError unless all that the kernels will read is there, and of the right size."""
        check_layer(self.cell, weights, x, first, alike=True)
        rows = self.rows
        if x.shape[:2] != (rows.count, rows.steps):
            raise ConfigError(
                f"x is of shape {tuple(x.shape)}, but must be ({rows.count}, {rows.steps}, E)."
            )
        if rows.values and len(rows.values) != rows.count:
            raise ConfigError(f"There are {len(rows.values)} lengths, but {rows.count} rows.")
        if rows.values and not 1 <= min(rows.values) <= max(rows.values) <= rows.steps:
            raise ConfigError(f"A length is not in 1..{rows.steps}, the steps of x.")

    def sizes(self, H: int) -> dict[str, Any]:
        """As the kernels take them."""
        return {
            "B": self.rows.count,
            "H": H,
            "steps": self.rows.steps,
            "threads": threads(),
            "lengths": self.rows.values,
        }

    def forward(
        self,
        x: Tensor,
        tensors: Sequence[Tensor | None],
        *,
        save: bool,
        ready: Sequence[Any] = (),
    ) -> tuple[Tensor, list[Tensor], list[Kept]]:
        """y, the last state of (D, B, H) tensors, and what is kept.

        tensors: the weights of each direction, then the first state, (D, B, H) each, or none.
        ready: each direction's weights as `packed` has made them, or nothing.
        """
        every, first = self.split(tensors)
        self.check(x, every, first)
        B, _, E = x.shape
        D, x = self.directions, in_rows(x)
        H = every[0].hh.size(1)
        y = laid_out_as(x, D * H)
        last = [x.new_empty(D, B, H) for _ in range(self.cell.state_size)]
        few = not ready and self.rows.tokens < FEW_TOKENS
        kept = [self._keep(x, weights, save, few) for weights in every]
        make = _kernels.Forward64 if x.dtype == torch.float64 else _kernels.Forward32
        directions = []
        for d, (weights, keep) in enumerate(zip(every, kept, strict=True)):
            first_h, first_c = h_and_c(first, d)
            last_h, last_c = h_and_c(last, d)
            inputs = {} if few else source(x, weights.ih)  # else the gates hold W x
            direction = make(
                reverse=d == 1,
                weights=address(weights.hh),
                input_bias=address(weights.bias_ih),
                state_bias=address(weights.bias_hh),
                peephole=address(weights.peephole),
                first_h=first_h,
                first_c=first_c,
                gates=address(keep.gates),
                inner=address(keep.inner),
                cells=address(keep.cells),
                before=address(keep.before),
                y=y.data_ptr() + d * H * y.element_size(),
                y_row=y.stride(0),
                y_step=y.stride(1),
                last_h=last_h,
                last_c=last_c,
                E=E,
                packed=ready[d] if ready else None,
                **inputs,
            )
            directions.append(direction)
        _kernels.forward(native_cell(self.cell), directions, **self.sizes(H))
        return y, last, kept

    def _keep(self, x: Tensor, weights: Weights, save: bool, few: bool) -> Kept:
        """Room for what a direction keeps; of few tokens the gates hold W x already."""
        N, (width, H) = self.rows.tokens, weights.hh.shape

        def room(width: int, wanted: bool) -> Tensor | None:
            return x.new_empty(N, width) if wanted and save else None

        gates = self._flat(x) @ weights.ih.t() if few else room(width, True)  # (N, G·H)
        return Kept(gates, *(room(H, wanted) for wanted in what_is_kept(self.cell)))

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
        every, first = self.split(tensors)
        self.check(x, every, first)
        (B, T, E), D, x = x.shape, self.directions, in_rows(x)
        H, fields = every[0].hh.size(1), len(Weights._fields)
        check_backward(self.cell, self.rows, x, H, kept=kept, upstream=upstream, directions=D)
        kept = [Kept(*map(if_any, keep)) for keep in kept]
        dy = None if upstream[0] is None else in_rows(upstream[0])
        y_row, y_step = (0, 0) if dy is None else dy.stride()[:2]
        dlast = [*map(if_any, upstream[1:])]
        own = H <= OWN_UNITS
        dx = x.new_empty(B, T, E) if wanted[0] and own else None
        dfirst = [
            x.new_empty(D, B, H) if is_wanted else None for is_wanted in wanted[1 + D * fields :]
        ]
        make = _kernels.Backward64 if x.dtype == torch.float64 else _kernels.Backward32
        directions, results = [], []
        for d, (weights, keep) in enumerate(zip(every, kept, strict=True)):
            result = room_for(self.cell, self.rows, weights, wanted[1 + d * fields :], own=own)
            _, first_c = h_and_c(first, d)
            dlast_h, dlast_c = h_and_c(dlast, d)
            dfirst_h, dfirst_c = h_and_c(dfirst, d)
            direction = make(
                reverse=d == 1,
                weights=address(weights.hh),
                peephole=address(weights.peephole),
                first_c=first_c,
                gates=address(keep.gates),
                inner=address(keep.inner),
                cells=address(keep.cells),
                before=address(keep.before),
                dy=0 if dy is None else dy.data_ptr() + d * H * dy.element_size(),
                y_row=y_row,
                y_step=y_step,
                dlast_h=dlast_h,
                dlast_c=dlast_c,
                dfirst_h=dfirst_h,
                dfirst_c=dfirst_c,
                E=E,
                dinput=address(dx),
                dinput_weights=address(result.ih) if own else 0,
                dweights=address(result.hh) if own else 0,
                dinput_bias=address(result.bias),
                dstate_bias=address(result.state_bias),
                dpeephole=address(result.peephole),
                dgates=address(result.gates),
                dinner=address(result.inner),
                gate_step=len(weights.hh),
                inner_step=H,
                **source(x, weights.ih),
            )
            directions.append(direction)
            results.append(result)
        _kernels.backward(native_cell(self.cell), directions, **self.sizes(H))
        if not own:
            flat = self._flat(x)
            for result, keep in zip(results, kept, strict=True):
                result.multiply(flat, keep)
            if wanted[0]:
                dx = gradient_by_x(results, every, self.rows)
        asked = [wanted[1 + d * fields : 1 + (d + 1) * fields] for d in range(D)]
        by_weights = [r.of_weights(a) for r, a in zip(results, asked, strict=True)]
        return [dx, *(t for own in by_weights for t in own), *dfirst]


def can_take(first: Tensor, second: Tensor, places: Tensor) -> bool:
    """Whether the kernels are there and take these tensors: numbers of one type, and integers."""
    if _kernels is None or first.dtype not in TYPES or torch.compiler.is_dynamo_compiling():
        return False
    tensors, types = (first, second, places), (first.dtype, first.dtype, torch.int64)
    return is_ordinary(tensors) and all(
        t.is_cpu and t.dtype == dtype for t, dtype in zip(tensors, types, strict=True)
    )


def softmax_cross_entropy_(z: Tensor, bias: Tensor, targets: Tensor, smoothing: float) -> Tensor:
    """The nats (N,) of each row; z (N, V), scores without their biases, becomes their gradient."""
    check_dims("z", z, 2, "(N, V)")
    N, V = z.shape
    check_tensor("bias", bias, (V,), z)
    if not z.is_contiguous() or z.is_neg() or z._is_zerotensor():
        raise ConfigError("z is changed in place, but is not contiguous. Call .contiguous() first.")
    if targets.shape != (N,) or targets.dtype != torch.int64:
        raise ConfigError(
            f"targets is {targets.dtype} of shape {tuple(targets.shape)}, but must be "
            f"torch.int64 of shape ({N},)."
        )
    own = targets.clone(memory_format=torch.contiguous_format)
    if N and not 0 <= int(own.min()) <= int(own.max()) < V:
        raise IndexError(f"a target is not in 0..{V - 1}")  # torch's own word for it
    nats, whole = z.new_empty(N), in_memory(bias)
    make = _kernels.Softmax64 if z.dtype == torch.float64 else _kernels.Softmax32
    rows = make(
        z=z.data_ptr(),
        bias=whole.data_ptr(),
        targets=own.data_ptr(),
        nats=nats.data_ptr(),
        N=N,
        V=V,
        smoothing=smoothing,
    )
    if N and V:
        _kernels.softmax(rows, threads=threads())
    return nats


def chain_sums(
    scores: Tensor, transitions: Tensor, lengths: Tensor
) -> tuple[Tensor, Tensor, Tensor]:
    """What crf.crf_marginals returns, of scores (B, T, K) and moves (K, K)."""
    log_z = scores.new_empty(len(scores), dtype=torch.float64)
    nodes = scores.new_empty(scores.shape)
    edges = scores.new_empty(transitions.shape)
    out = {"log_z": log_z, "nodes": nodes, "edges": edges}
    _chain(_kernels.chain_sums, scores, transitions, lengths, out)
    return log_z, nodes, edges


def chain_log_z(scores: Tensor, transitions: Tensor, lengths: Tensor) -> Tensor:
    """log Z (B,) in float64 alone."""
    log_z = scores.new_empty(len(scores), dtype=torch.float64)
    _chain(_kernels.chain_sums, scores, transitions, lengths, {"log_z": log_z})
    return log_z


def chain_best(scores: Tensor, transitions: Tensor, lengths: Tensor) -> tuple[Tensor, Tensor]:
    """The best tags (B, T), 0 in the padding, and their scores (B,)."""
    paths, best = lengths.new_empty(scores.shape[:2]), scores.new_empty(len(scores))
    out = {"paths": paths, "best": best}
    _chain(_kernels.chain_best, scores, transitions, lengths, out)
    return paths, best


def _chain(
    run: Callable[..., None],
    scores: Tensor,
    transitions: Tensor,
    lengths: Tensor,
    out: dict[str, Tensor],
) -> None:
    check_dims("scores", scores, 3, "(B, T, K)")
    B, T, K = scores.shape
    check_tensor("transitions", transitions, (K, K), scores)
    own = seen_rows(scores, lengths).lengths  # checked, and no other thread's
    whole, moves = in_memory(scores), in_memory(transitions)
    make = _kernels.Chain64 if scores.dtype == torch.float64 else _kernels.Chain32
    chain = make(
        scores=whole.data_ptr(),
        transitions=moves.data_ptr(),
        lengths=own.data_ptr(),
        B=B,
        steps=T,
        K=K,
        **{name: tensor.data_ptr() for name, tensor in out.items()},
    )
    run(chain, threads=threads())


@cache
def native_cell(cell: Cell) -> Any:
    """The cell as the kernels know it."""
    return NATIVE_CELLS[type(cell)](cell)


NATIVE_CELLS: dict[type[Cell], Callable[[Any], Any]] = {
    RNNCell: lambda cell: _kernels.RnnCell(activation=cell.activation),
    LSTMCell: lambda cell: _kernels.LstmCell(output=cell.output, peephole=cell.peephole),
    GRUCell: lambda cell: _kernels.GruCell(reset=cell.reset, update=cell.update),
}


def packed(weights: Weights) -> Any:
    """Both weights of a direction as the kernels that run now read them, for many calls."""
    ih, hh = in_memory(weights.ih), in_memory(weights.hh)
    H, E = hh.size(1), ih.size(1)
    make = _kernels.Packed64 if hh.dtype == torch.float64 else _kernels.Packed32
    return make(
        input_weights=ih.data_ptr(), weights=hh.data_ptr(), G=len(hh) // max(H, 1), H=H, E=E
    )


def steps(cell: Cell, layers: Sequence[tuple[Weights, Any]]) -> Any:
    """One step of a stack: each layer's weights, which must stay where they are, and `packed`."""
    wide, H = layers[0][0].hh.dtype == torch.float64, layers[0][0].hh.size(1)
    make = _kernels.Forward64 if wide else _kernels.Forward32
    stack = [
        make(
            input_bias=address(weights.bias_ih),
            state_bias=address(weights.bias_hh),
            peephole=address(weights.peephole),
            E=weights.ih.size(1),
            packed=ready,
        )
        for weights, ready in layers
    ]
    return (_kernels.Steps64 if wide else _kernels.Steps32)(native_cell(cell), stack, H=H)
