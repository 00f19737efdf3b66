"""Recurrent cells: one time step each, written as the papers write it.

Letters for sizes, the same in the whole package:
    B batch   T time   E input   H hidden   V vocabulary   L layers   K beam   G gates of a cell

A cell is a value that says which variant it is. It holds no parameters: they are passed in, so the
same equations serve a stack of layers, a single decoding step and the check of a faster kernel.
Gates are stored in torch.nn's order (i, f, g, o and r, z, n), so weights interchange as they are.

In the equations W are rows of `ih`, U rows of `hh`, p rows of `peephole`; biases are left out.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import ClassVar, NamedTuple

import torch
from torch import Tensor
from torch.nn import functional

from unrolled.errors import ConfigError, not_one_of

State = tuple[Tensor, ...]  # (h,) or (h, c)


class Weights(NamedTuple):
    """The parameters of one layer in one direction; the gates lie under one another."""

    ih: Tensor  # (G·H, E)
    hh: Tensor  # (G·H, H)
    bias_ih: Tensor | None = None  # (G·H,)
    bias_hh: Tensor | None = None  # (G·H,)
    peephole: Tensor | None = None  # (1, H) for o, or (3, H) for i, f, o
    hr: Tensor | None = None  # (P, H)  an LSTM whose h is projected; hh is (G·H, P) then


def _identity(x: Tensor) -> Tensor:
    return x


ACTIVATIONS: Mapping[str, Callable[[Tensor], Tensor]] = {
    "tanh": torch.tanh,
    "sigmoid": torch.sigmoid,
    "relu": torch.relu,
    "leaky_relu": functional.leaky_relu,  # slope 0.01 below 0
    "identity": _identity,
}
OUTPUTS: Mapping[str, Callable[[Tensor], Tensor]] = {"tanh": torch.tanh, "linear": _identity}
PEEPHOLES: Mapping[str, int] = {"none": 0, "output": 1, "full": 3}  # rows of the peephole weights


def _check(setting: str, value: str, allowed: Iterable[str]) -> None:
    if value not in allowed:
        raise not_one_of(setting, value, allowed)


class Cell(ABC):
    """What a stack needs to know of a cell: its sizes, its input part and its step."""

    state_size: ClassVar[int]  # tensors in the state: 1 is (h,), 2 is (h, c)

    @property
    @abstractmethod
    def gates(self) -> int:
        """How many blocks of H rows the weights have, candidates included."""

    @property
    def peepholes(self) -> int:
        """How many rows of peephole weights there are."""
        return 0

    def project(self, x: Tensor, weights: Weights) -> Tensor:
        """The part of all gates that needs no state: x (…, E) -> (…, G·H), biases added."""
        given = [bias for bias in (weights.bias_ih, weights.bias_hh) if bias is not None]
        bias = reduce(torch.add, given) if given else None
        return functional.linear(x, weights.ih, bias)  # (…, G·H)

    @abstractmethod
    def step(self, projected: Tensor, state: State, weights: Weights) -> State:
        """One time step: projected (B, G·H), state of (B, H) tensors -> next state, h first."""


def zero_state(cell: Cell, weights: Sequence[Weights], B: int) -> State:
    """Zeros (D, B, H) for B rows of a layer whose directions have these weights."""
    hh = weights[0].hh
    return tuple(hh.new_zeros(len(weights), B, size) for size in sizes(cell, weights[0]))


def sizes(cell: Cell, weights: Weights) -> tuple[int, ...]:
    """How many numbers h has, and c where there is one: the same, but where h is projected."""
    return (weights.hh.size(1), weights.hh.size(0) // cell.gates)[: cell.state_size]


@dataclass(frozen=True)
class RNNCell(Cell):
    """Simple recurrent network (Elman 1990).

        h' = φ(W x + U h)                    φ: `activation`

    torch.nn.RNN has φ = tanh and relu, Keras' SimpleRNN has tanh by default.
    """

    activation: str = "tanh"
    state_size: ClassVar[int] = 1

    def __post_init__(self) -> None:
        _check("activation", self.activation, ACTIVATIONS)

    @property
    def gates(self) -> int:
        return 1

    def step(self, projected: Tensor, state: State, weights: Weights) -> State:
        a = torch.addmm(projected, state[0], weights.hh.t())  # (B, H)
        return (ACTIVATIONS[self.activation](a),)


@dataclass(frozen=True)
class LSTMCell(Cell):
    """Long short-term memory (Hochreiter & Schmidhuber 1997) with forget gate (Gers et al. 2000).

        i  = σ(W_i x + U_i h + p_i ⊙ c)      p_i, p_f: peephole "full" alone
        f  = σ(W_f x + U_f h + p_f ⊙ c)
        g  = tanh(W_g x + U_g h)
        c' = f ⊙ c + i ⊙ g
        o  = σ(W_o x + U_o h + p_o ⊙ c')     p_o: peephole "output" and "full"
        h' = o ⊙ tanh(c')                    output "linear": h' = o ⊙ c'
        h' = R (o ⊙ tanh(c'))                with R = `hr`: a projected h (Sak et al. 2014)

    Peepholes are those of Gers & Schmidhuber 2000 ("Recurrent nets that time and count").
    torch.nn.LSTM and Keras' LSTM are output "tanh", peephole "none".
    """

    output: str = "tanh"
    peephole: str = "none"
    state_size: ClassVar[int] = 2

    def __post_init__(self) -> None:
        _check("output", self.output, OUTPUTS)
        _check("peephole", self.peephole, PEEPHOLES)

    @property
    def gates(self) -> int:
        return 4

    @property
    def peepholes(self) -> int:
        return PEEPHOLES[self.peephole]

    def step(self, projected: Tensor, state: State, weights: Weights) -> State:
        h, c = state
        a = torch.addmm(projected, h, weights.hh.t())  # (B, 4H)
        i, f, g, o = a.chunk(4, dim=-1)  # 4 × (B, H)
        p = weights.peephole
        if p is not None and self.peephole == "full":
            i, f = i + p[0] * c, f + p[1] * c
        c = torch.sigmoid(f) * c + torch.sigmoid(i) * torch.tanh(g)
        if p is not None:
            o = o + p[-1] * c
        h = torch.sigmoid(o) * OUTPUTS[self.output](c)
        return (h if weights.hr is None else functional.linear(h, weights.hr)), c


def _reset_after(projected: Tensor, h: Tensor, weights: Weights) -> tuple[Tensor, Tensor]:
    x_r, x_z, x_n = projected.chunk(3, dim=-1)  # 3 × (B, H)
    h_r, h_z, h_n = functional.linear(h, weights.hh, weights.bias_hh).chunk(3, dim=-1)
    return x_z + h_z, x_n + torch.sigmoid(x_r + h_r) * h_n


def _reset_before(projected: Tensor, h: Tensor, weights: Weights) -> tuple[Tensor, Tensor]:
    H = h.size(-1)
    u_rz, u_n = weights.hh[: 2 * H].t(), weights.hh[2 * H :].t()  # (H, 2H), (H, H)
    r, z = torch.addmm(projected[:, : 2 * H], h, u_rz).chunk(2, dim=-1)  # 2 × (B, H)
    return z, torch.addmm(projected[:, 2 * H :], torch.sigmoid(r) * h, u_n)


def _reset_none(projected: Tensor, h: Tensor, weights: Weights) -> tuple[Tensor, Tensor]:
    z, n = torch.addmm(projected, h, weights.hh.t()).chunk(2, dim=-1)  # 2 × (B, H)
    return z, n


# What goes into σ and tanh for the gates z and n, each (B, H).
RESETS: Mapping[str, Callable[[Tensor, Tensor, Weights], tuple[Tensor, Tensor]]] = {
    "after": _reset_after,
    "before": _reset_before,
    "none": _reset_none,
}
UPDATES = ("keep", "write")


@dataclass(frozen=True)
class GRUCell(Cell):
    """Gated recurrent unit (Cho et al. 2014, arXiv:1406.1078).

        r  = σ(W_r x + U_r h)
        z  = σ(W_z x + U_z h)
        n  = tanh(W_n x + r ⊙ (U_n h))       reset "after", as in v1 of the paper
        n  = tanh(W_n x + U_n (r ⊙ h))       reset "before", as in v3 of the paper
        n  = tanh(W_n x + U_n h)             reset "none": the weights hold z and n alone
        h' = z ⊙ h + (1 − z) ⊙ n             update "keep", as in the paper
        h' = (1 − z) ⊙ h + z ⊙ n             update "write"

    torch.nn.GRU and Keras' GRU are reset "after" (its recurrent bias inside the product with r) and
    update "keep"; Keras with reset_after=False is reset "before".
    """

    reset: str = "after"
    update: str = "keep"
    state_size: ClassVar[int] = 1

    def __post_init__(self) -> None:
        _check("reset", self.reset, RESETS)
        _check("update", self.update, UPDATES)

    @property
    def gates(self) -> int:
        return 2 if self.reset == "none" else 3

    def project(self, x: Tensor, weights: Weights) -> Tensor:
        if self.reset == "after":  # r multiplies the recurrent bias too, so the step adds it
            return functional.linear(x, weights.ih, weights.bias_ih)  # (…, 3H)
        return super().project(x, weights)

    def step(self, projected: Tensor, state: State, weights: Weights) -> State:
        (h,) = state
        z, n = RESETS[self.reset](projected, h, weights)  # (B, H), (B, H)
        z, n = torch.sigmoid(z), torch.tanh(n)
        return (torch.lerp(n, h, z) if self.update == "keep" else torch.lerp(h, n, z),)


CELLS: Mapping[str, type[Cell]] = {"rnn": RNNCell, "gru": GRUCell, "lstm": LSTMCell}


def convert_gru(weights: Weights, *, source: GRUCell, target: GRUCell) -> Weights:
    """Weights with which `target` computes what `source` computes with `weights`.

    Between the updates this is exact: 1 − σ(a) = σ(−a), so the rows of z change sign. Between the
    resets there is no such map, and the conversion is refused.
    """
    if source.reset != target.reset:
        raise ConfigError(
            f"reset is {source.reset!r} in the source but {target.reset!r} in the target, and must "
            "be the same: U_n (r ⊙ h) is not r ⊙ (U_n h) unless U_n is diagonal or r is uniform, "
            "and σ never makes r exactly 1. Use the source's reset, or train the target anew."
        )
    if source.update == target.update:
        return weights
    return Weights._make(_negate_update(weight, source.gates) for weight in weights)


def _negate_update(weight: Tensor | None, gates: int) -> Tensor | None:
    if weight is None:
        return None
    *reset, z, n = weight.chunk(gates)  # each (H, …)
    return torch.cat([*reset, -z, n])
