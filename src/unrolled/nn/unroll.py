"""One layer over time without kernels: torch's own code where it is exact, or the plain equations.

The plain equations are a loop over `cell.step`. Rows are padded on the right, so what a recurrence
computes in the padding never reaches a real step. What remains is to read each row's last state at
its own last step, to turn a row round within its own length, and to keep the padding from
overflowing.
"""

from collections.abc import Callable, Mapping, Sequence

import torch
from torch import Tensor

from unrolled.nn.cells import Cell, GRUCell, LSTMCell, RNNCell, State, Weights, zero_state
from unrolled.nn.rows import PaddedRows
from unrolled.nn.transforms import is_cast, is_compiled

# The variants that torch has compiled code for.
FUSED: Mapping[Cell, Callable[..., tuple[Tensor, ...]]] = {
    LSTMCell(): torch.lstm,
    GRUCell(): torch.gru,
    RNNCell("tanh"): torch.rnn_tanh,
    RNNCell("relu"): torch.rnn_relu,
}


def has_fused(cell: Cell, rows: PaddedRows) -> bool:
    """Whether torch's code runs the cell over such rows."""
    # A state without bound may overflow in the padding, and 0 · inf would make the gradient NaN.
    overflows = cell == RNNCell("relu") and not rows.dense
    return cell in FUSED and not overflows


def unroll(
    cell: Cell,
    weights: Sequence[Weights],
    x: Tensor,
    first: State | None,
    rows: PaddedRows,
    *,
    plain: bool,
) -> tuple[Tensor, State]:
    """As layer.run_layer; plain: by the equations, which can be differentiated at will."""
    rows.check_unseen()
    x = clear(x, rows)
    if first is None:
        first = zero_state(cell, weights, rows.count)
    fused = has_fused(cell, rows) and not plain and not _is_lost(cell, x)
    if fused and not torch.compiler.is_compiling():
        x, first = _with_memory(x), tuple(map(_with_memory, first))
        weights = [Weights(*(w if w is None else _with_memory(w) for w in own)) for own in weights]  # type: ignore[arg-type]
    runs = [
        _run_direction(
            cell, weights[d], x, tuple(s[d] for s in first), rows, backward=d == 1, fused=fused
        )
        for d in range(len(weights))
    ]
    last = tuple(torch.stack(s) for s in zip(*(last for _, last in runs), strict=True))
    return torch.cat([y for y, _ in runs], dim=2), last  # (B, T, D·H), (D, B, H) each


def _is_lost(cell: Cell, x: Tensor) -> bool:
    """Whether torch.compile could not differentiate torch's own code.

    It takes oneDNN's LSTM wherever x has no gradient, though the weights may have, and then fails.
    """
    learns = is_compiled() and torch.is_grad_enabled()
    return learns and cell == LSTMCell() and not x.requires_grad


def _with_memory(tensor: Tensor) -> Tensor:
    """The tensor; zeros that have no memory get some, for torch's code reads and writes there."""
    return tensor.clone() if tensor._is_zerotensor() else tensor


def _run_direction(
    cell: Cell,
    weights: Weights,
    x: Tensor,
    state: State,
    rows: PaddedRows,
    *,
    backward: bool,
    fused: bool,
) -> tuple[Tensor, State]:
    """One direction; x is zero in the padding."""
    if x.size(1) == 1 and not is_cast():  # which casts what torch's own code computes with
        state = cell.step(cell.project(x[:, 0], weights), state, weights)
        return state[0][:, None], state  # (B, 1, H)
    if backward:
        x = reverse(x, rows)
    run = run_fused if fused else run_steps
    y, last = run(cell, weights, x, state, rows)
    y = clear(y, rows)
    return (reverse(y, rows) if backward else y), last


def clear(x: Tensor, rows: PaddedRows) -> Tensor:
    """x (B, T, F) with exact zeros in the padding, whatever was there."""
    return x if rows.dense else x.masked_fill(rows.padding_mask[:, :, None], 0.0)


def reverse(x: Tensor, rows: PaddedRows) -> Tensor:
    """x (B, T, F) with each row turned round within its length; doing it twice undoes it."""
    if rows.dense:
        return x.flip(1)
    return x.flatten(0, 1).index_select(0, rows.mirror).view_as(x)


def run_steps(
    cell: Cell, weights: Weights, x: Tensor, state: State, rows: PaddedRows
) -> tuple[Tensor, State]:
    """The reference: `cell.step` for each t; the state stands still in the padding."""
    outputs = []
    for t, projected in enumerate(cell.project(x, weights).unbind(1)):  # (B, G·H)
        after = cell.step(projected, state, weights)
        if not rows.dense:
            ended = rows.padding_mask[:, t, None]  # (B, 1)
            after = tuple(torch.where(ended, s, new) for s, new in zip(state, after, strict=True))
        state = after
        outputs.append(state[0])
    return torch.stack(outputs, dim=1), state  # (B, T, H)


def run_fused(
    cell: Cell, weights: Weights, x: Tensor, state: State, rows: PaddedRows
) -> tuple[Tensor, State]:
    """The same by torch's compiled code."""
    if not rows.dense and cell.state_size == 2:
        x, weights = _hold_cell(x, weights, rows)
    weights = with_both_biases(weights)
    first = [s[None] for s in state]  # each (1, B, H): torch counts layers
    parameters = [w for w in weights if w is not None]
    layers, dropout, train, bidirectional, batch_first = 1, 0.0, False, False, True
    y, *last = FUSED[cell](
        x,
        first if cell.state_size == 2 else first[0],
        parameters,
        weights.bias_ih is not None,
        layers,
        dropout,
        train,
        bidirectional,
        batch_first,
    )
    if not rows.dense:
        each = torch.arange(y.size(0), device=y.device)
        last[0] = y[each, rows.last][None]
    return y, tuple(s[0] for s in last)


def with_both_biases(weights: Weights) -> Weights:
    """Or none: torch's code takes no others."""
    bias_ih, bias_hh = weights.bias_ih, weights.bias_hh
    if bias_ih is None and bias_hh is not None:
        return weights._replace(bias_ih=torch.zeros_like(bias_hh))
    if bias_hh is None and bias_ih is not None:
        return weights._replace(bias_hh=torch.zeros_like(bias_ih))
    return weights


def _hold_cell(x: Tensor, weights: Weights, rows: PaddedRows) -> tuple[Tensor, Weights]:
    """An LSTM's inputs and weights with which c stands still in the padding.

    y shows h at every step but not c. One more input, 1 in the padding and 0 before it, opens the
    forget gate and shuts the input gate so far that f is exactly 1 and i exactly 0 there, as are
    their derivatives: the c after all steps is then the c after the row's own last step.
    """
    rows_a_gate = weights.hh.size(0) // 4
    far = torch.finfo(x.dtype).max ** 0.5  # h is in [-1, 1]: no weights reach back from here
    push = weights.ih.new_zeros(4, rows_a_gate)
    push[0], push[1] = -far, far  # i, f
    x = torch.cat([x, rows.padding_mask[:, :, None].to(x.dtype)], dim=2)  # (B, T, E + 1)
    return x, weights._replace(ih=torch.cat([weights.ih, push.view(-1, 1)], dim=1))
