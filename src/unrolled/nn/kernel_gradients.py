"""What a layer of kernels keeps for its way back, and the gradients of its weights."""

from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from unrolled.errors import ConfigError
from unrolled.nn.addresses import address, h_and_c
from unrolled.nn.cells import Cell, GRUCell, Weights
from unrolled.nn.rows import PaddedRows
from unrolled.nn.shapes import check_tensor

WEIGHTS = 5  # of the fields of Weights, those that the kernels know


class Kept(NamedTuple):
    """What one direction of a layer keeps for its way back."""

    gates: Tensor | None = None  # (N, G·H)
    inner: Tensor | None = None  # (N, H)  GRU: U_n h + b, or r ⊙ h
    cells: Tensor | None = None  # (N, H)  LSTM: c after each step
    before: Tensor | None = None  # (N, H)  h before each step


def what_is_kept(cell: Cell) -> tuple[bool, bool, bool]:
    """Whether a cell keeps `inner`, `cells` and `before`; the gates are always kept."""
    return isinstance(cell, GRUCell) and cell.reset != "none", cell.state_size == 2, True


def check_backward(
    cell: Cell,
    rows: PaddedRows,
    x: Tensor,
    H: int,
    *,
    kept: Sequence[Kept],
    upstream: Sequence[Tensor | None],
    directions: int,
) -> None:
    """ConfigError unless all that is kept, and all that comes from downstream, is of its size."""
    B, T, D, N = rows.count, rows.steps, directions, rows.tokens
    if len(kept) != D or len(upstream) != 1 + cell.state_size:
        raise ConfigError(
            f"kept is of {len(kept)} directions and there are {len(upstream)} gradients, but "
            f"there must be {D} and {1 + cell.state_size}."
        )
    filled = (True, *what_is_kept(cell))
    for keep in kept:
        for name, tensor, wanted in zip(Kept._fields, keep, filled, strict=True):
            width = cell.gates * H if name == "gates" else H
            if wanted and tensor is None:
                raise ConfigError(f"kept.{name} is None, but must be of shape ({N}, {width}).")
            if wanted and tensor is not None:
                check_tensor(f"kept.{name}", tensor, (N, width), x)
    shapes = [(B, T, D * H), *[(D, B, H)] * cell.state_size]
    for name, tensor, shape in zip("yhc", upstream, shapes, strict=False):
        if tensor is not None:
            check_tensor(f"the gradient of {name}", tensor, shape, x)


class Gradients(NamedTuple):
    """Those of one direction's weights, and what they are made of."""

    ih: Tensor | None
    hh: Tensor | None
    bias: Tensor | None  # (G·H,) of W x + b: of both biases, but for a GRU that resets after
    state_bias: Tensor | None  # (G·H,) there: of U h + b
    peephole: Tensor | None
    gates: Tensor | None  # (N, G·H)  gradients of W x + b, where torch goes on with them
    inner: Tensor | None  # (N, H)  of U_n h + b, for a GRU that resets after

    def of_weights(self, asked: Sequence[bool]) -> list[Tensor | None]:
        """One for each field of Weights, each in memory of its own; None where none is asked."""
        bias_ih = self.bias if asked[2] else None
        bias_hh = self.state_bias
        if asked[3] and bias_hh is None and self.bias is not None:
            bias_hh = self.bias.clone() if asked[2] else self.bias
        unknown = [None] * (len(Weights._fields) - WEIGHTS)
        return [self.ih, self.hh, bias_ih, bias_hh, self.peephole, *unknown]

    def addresses(self) -> dict[str, int]:
        """Where the kernels write; gradients of weights only where they make these themselves."""
        own = self.gates is None
        return {
            "dinput_weights": address(self.ih) if own else 0,
            "dweights": address(self.hh) if own else 0,
            "dinput_bias": address(self.bias),
            "dstate_bias": address(self.state_bias),
            "dpeephole": address(self.peephole),
            "dgates": address(self.gates),
            "dinner": address(self.inner),
        }


class States(NamedTuple):
    """The first states, and the gradients of y and of states, both ways."""

    first: Sequence[Tensor]  # (D, B, H) each, or none
    upstream: Sequence[Tensor | None]  # of y, and of the last states
    dfirst: Sequence[Tensor | None]

    def addresses(self, direction: int, H: int) -> dict[str, int]:
        """Those of one direction."""
        dy, *dlast = self.upstream
        _, first_c = h_and_c(self.first, direction)
        dlast_h, dlast_c = h_and_c(dlast, direction)
        dfirst_h, dfirst_c = h_and_c(self.dfirst, direction)
        y_row, y_step = (0, 0) if dy is None else dy.stride()[:2]
        return {
            "first_c": first_c,
            "dy": 0 if dy is None else dy.data_ptr() + direction * H * dy.element_size(),
            "y_row": y_row,
            "y_step": y_step,
            "dlast_h": dlast_h,
            "dlast_c": dlast_c,
            "dfirst_h": dfirst_h,
            "dfirst_c": dfirst_c,
        }


def addresses_of(weights: Weights, keep: Kept) -> dict[str, int]:
    """What a direction's way back reads, and how far apart its tokens are."""
    width, H = weights.hh.shape
    return {
        "weights": address(weights.hh),
        "peephole": address(weights.peephole),
        "gates": address(keep.gates),
        "inner": address(keep.inner),
        "cells": address(keep.cells),
        "before": address(keep.before),
        "gate_step": width,
        "inner_step": H,
    }


def multiply(flat: Tensor, kept: Sequence[Kept], results: Sequence[Gradients]) -> None:
    """The gradients of large weights, by torch: sums over all tokens, x of which is flat (N, E)."""
    for keep, (ih, hh, _, _, _, gates, inner) in zip(kept, results, strict=True):
        assert gates is not None
        assert keep.before is not None
        width, resets = gates.size(1), keep.inner is not None
        by_h = width * 2 // 3 if resets else width  # rows of U that h itself is multiplied by
        if ih is not None:
            torch.mm(gates.t(), flat, out=ih)  # (G·H, E)
        if hh is not None:
            torch.mm(gates[:, :by_h].t(), keep.before, out=hh[:by_h])
            if inner is not None:
                torch.mm(inner.t(), keep.before, out=hh[by_h:])
            elif keep.inner is not None:
                torch.mm(gates[:, by_h:].t(), keep.inner, out=hh[by_h:])


def gradient_by_x(
    results: Sequence[Gradients], every: Sequence[Weights], rows: PaddedRows
) -> Tensor:
    """The gradient of x (B, T, E), 0 in the padding, from those of all directions' gates."""
    flat: Tensor | None = None
    for result, weights in zip(results, every, strict=True):
        assert result.gates is not None
        if flat is None:
            flat = result.gates @ weights.ih  # (N, E)
        else:
            flat.addmm_(result.gates, weights.ih)
    assert flat is not None
    B, T, E = rows.count, rows.steps, flat.size(1)
    if rows.dense:
        return flat.view(B, T, E)
    return flat.new_zeros(B * T, E).index_copy_(0, rows.places, flat).view(B, T, E)


def room_for(
    cell: Cell, rows: PaddedRows, weights: Weights, asked: Sequence[bool], *, own: bool
) -> Gradients:
    """Room for one direction's gradients, those that are asked for."""

    def room(weight: Tensor | None, wanted: bool) -> Tensor | None:
        return None if weight is None or not wanted else weight.new_empty(weight.shape)

    N, (width, H) = rows.tokens, weights.hh.shape
    ih, hh, bias_ih, bias_hh, peephole = asked[:WEIGHTS]
    after = isinstance(cell, GRUCell) and cell.reset == "after"
    bias = room(weights.bias_ih, bias_ih)
    if bias is None and not after:
        bias = room(weights.bias_hh, bias_hh)
    return Gradients(
        ih=room(weights.ih, ih),
        hh=room(weights.hh, hh),
        bias=bias,
        state_bias=room(weights.bias_hh, bias_hh and after),
        peephole=room(weights.peephole, peephole),
        gates=None if own else weights.hh.new_empty(N, width),
        inner=None if own or not after else weights.hh.new_empty(N, H),
    )
