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
from torch import Tensor, nn

from unrolled.errors import ConfigError
from unrolled.native import NONE, VARIABLE
from unrolled.native import module as _kernels
from unrolled.nn.addresses import address, if_any, in_memory, in_rows, laid_out_as, source
from unrolled.nn.cells import Cell, GRUCell, LSTMCell, RNNCell, State, Weights
from unrolled.nn.kernel_gradients import (
    Gradients,
    States,
    addresses_of,
    check_backward,
    gradient_by_x,
    multiply,
    room_for,
    what_is_kept,
)
from unrolled.nn.kernel_gradients import Kept as Kept
from unrolled.nn.rows import PaddedRows, seen_rows
from unrolled.nn.shapes import check_dims, check_layer, check_tensor
from unrolled.nn.threads import threads
from unrolled.nn.transforms import is_followed, is_ordinary

TYPES = (torch.float32, torch.float64)
OWN_UNITS = 128  # up to which the kernels make all gradients; beyond, torch's products are faster


if _kernels is not None:
    _kernels.read_tensors(Tensor, nn.Parameter, Tensor.__dlpack_c_exchange_api__)


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
    if _kernels is None or type(cell) not in NATIVE_CELLS or is_followed():
        return False
    if any(own.hr is not None for own in weights):
        return False
    return _kernels.are_plain([x, *(t for own in (*weights, first or ()) for t in own)])


class Call(NamedTuple):
    """A layer's call without its tensors."""

    cell: Cell
    rows: PaddedRows
    directions: int

    def split(self, tensors: Sequence[Tensor | None]) -> tuple[list[Weights], list[Tensor]]:
        """Each direction's weights, and the first state, of no tensors where it is zero."""
        size = len(Weights._fields)
        end = size * self.directions
        whole = [*map(if_any, tensors)]
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
        hh = tensors[1]
        if hh is None or hh.dim() != 2 or x.dim() != 3:
            self.check(x, *self.split(tensors))
        H = hh.size(1)  # type: ignore[union-attr]
        y = laid_out_as(x, self.directions * H)
        last = [x.new_empty(self.directions, x.size(0), H) for _ in range(self.cell.state_size)]
        kept = [self._room(x, H) if save else Kept() for _ in range(self.directions)]
        results = {"y": y, "last": last, "kept": [t for keep in kept for t in keep] if save else []}
        if not self._run(x, [*tensors], results, ready):
            weights, first = self.split(tensors)
            self.check(x, weights, first)
            whole = [*(t for own in weights for t in own), *first]
            if not self._run(in_rows(x), whole, results, ready):
                raise ConfigError("the layer's tensors changed while it was called.")
        return y, last, kept

    def _run(
        self,
        x: Tensor,
        tensors: list[Tensor | None],
        results: dict[str, Any],
        ready: Sequence[Any],
    ) -> bool:
        """Whether it ran: not where a tensor does not fit, or does not lie as the kernels read."""
        return _kernels.forward(
            native_cell(self.cell),
            x,
            tensors,
            **results,
            packed=[*ready],
            directions=self.directions,
            B=self.rows.count,
            steps=self.rows.steps,
            threads=threads(),
            lengths=self.rows.values,
        )

    def _room(self, x: Tensor, H: int) -> Kept:
        """Room for what a direction keeps."""
        N = self.rows.tokens
        gates = x.new_empty(N, self.cell.gates * H)
        wanted = what_is_kept(self.cell)
        return Kept(gates, *(x.new_empty(N, H) if each else None for each in wanted))

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
        x, D, H = in_rows(x), self.directions, every[0].hh.size(1)
        check_backward(self.cell, self.rows, x, H, kept=kept, upstream=upstream, directions=D)
        kept, size = [Kept(*map(if_any, keep)) for keep in kept], len(Weights._fields)
        asked = [wanted[1 + d * size : 1 + (d + 1) * size] for d in range(D)]
        results = [
            room_for(self.cell, self.rows, weights, each, own=H <= OWN_UNITS)
            for weights, each in zip(every, asked, strict=True)
        ]
        dx = x.new_empty(x.shape) if wanted[0] and H <= OWN_UNITS else None
        dfirst = [x.new_empty(D, len(x), H) if each else None for each in wanted[1 + D * size :]]
        dy, *dlast = upstream
        gradients = [None if dy is None else in_rows(dy), *map(if_any, dlast)]
        self._run_back(x, every, kept, results, States(first, gradients, dfirst), dx)
        if H > OWN_UNITS:
            multiply(self._flat(x), kept, results)
            dx = gradient_by_x(results, every, self.rows) if wanted[0] else None
        by_weights = [own.of_weights(each) for own, each in zip(results, asked, strict=True)]
        return [dx, *(t for own in by_weights for t in own), *dfirst]

    def _run_back(
        self,
        x: Tensor,
        every: Sequence[Weights],
        kept: Sequence[Kept],
        results: Sequence[Gradients],
        states: States,
        dx: Tensor | None,
    ) -> None:
        """All directions' way back; what comes out is written into the results and states."""
        make = _kernels.Backward64 if x.dtype == torch.float64 else _kernels.Backward32
        H = every[0].hh.size(1)
        directions = [
            make(
                reverse=d == 1,
                dinput=address(dx),
                **source(x, weights.ih),
                **addresses_of(weights, keep),
                **states.addresses(d, H),
                **result.addresses(),
            )
            for d, (weights, keep, result) in enumerate(zip(every, kept, results, strict=True))
        ]
        _kernels.backward(
            native_cell(self.cell),
            directions,
            B=self.rows.count,
            H=H,
            steps=self.rows.steps,
            threads=threads(),
            lengths=self.rows.values,
        )


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
