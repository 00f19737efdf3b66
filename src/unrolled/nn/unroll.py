"""One layer in one direction over time, for rows of unequal length.

Rows are padded on the right, so what a recurrence computes in the padding never reaches a real
step: dense runs are right as they are. What remains is to read each row's last state at its own
last step, to turn a row round within its own length, and to keep the padding from overflowing.
"""

from collections.abc import Callable, Mapping
from typing import NamedTuple

import torch
from torch import Tensor

from unrolled.errors import ConfigError
from unrolled.nn.cells import Cell, GRUCell, LSTMCell, RNNCell, State, Weights

# The variants that torch has compiled code for.
FUSED: Mapping[Cell, Callable[..., tuple[Tensor, ...]]] = {
    LSTMCell(): torch.lstm,
    GRUCell(): torch.gru,
    RNNCell("tanh"): torch.rnn_tanh,
    RNNCell("relu"): torch.rnn_relu,
}


class Padding(NamedTuple):
    """Where the rows of a batch end."""

    last: Tensor  # (B,)  int64, index of each row's last step
    beyond: Tensor  # (B, T)  bool, True on padded steps
    mirror: Tensor  # (B·T,)  int64, the place in the flat batch that each step's mirror image has


def find_padding(x: Tensor, lengths: Tensor | None) -> Padding | None:
    """Check lengths (B,) against x (B, T, …); None if nothing is padded."""
    if lengths is None:
        return None
    B, T = x.shape[:2]
    _check_lengths(lengths, B, T)
    lengths = lengths.to(x.device)
    if bool((lengths == T).all()):
        return None
    t = torch.arange(T, device=x.device)
    beyond = t >= lengths[:, None]  # (B, T)
    mirror = torch.where(beyond, t, lengths[:, None] - 1 - t)  # (B, T)
    mirror = mirror + T * torch.arange(B, device=x.device)[:, None]
    return Padding(lengths - 1, beyond, mirror.flatten())


def _check_lengths(lengths: Tensor, B: int, T: int) -> None:
    if lengths.dtype != torch.int64 or lengths.shape != (B,):
        kind = str(lengths.dtype).removeprefix("torch.")
        raise ConfigError(
            f"lengths is {kind} of shape {tuple(lengths.shape)}, but must be int64 of shape "
            f"({B},): pass the number of real steps of each row of x."
        )
    wrong = ((lengths < 1) | (lengths > T)).nonzero()
    if wrong.numel():
        row = int(wrong[0])
        raise ConfigError(
            f"lengths[{row}] is {int(lengths[row])}, but must be in 1..{T}, the steps of x. "
            "Leave empty rows out of the batch."
        )


def clear(x: Tensor, padding: Padding | None) -> Tensor:
    """x (B, T, F) with exact zeros in the padding, whatever was there."""
    return x if padding is None else x.masked_fill(padding.beyond[:, :, None], 0.0)


def reverse(x: Tensor, padding: Padding | None) -> Tensor:
    """x (B, T, F) with each row turned round within its length; doing it twice undoes it."""
    if padding is None:
        return x.flip(1)
    return x.flatten(0, 1).index_select(0, padding.mirror).view_as(x)


def unroll(
    cell: Cell,
    weights: Weights,
    x: Tensor,
    state: State,
    *,
    padding: Padding | None,
    backward: bool,
) -> tuple[Tensor, State]:
    """Run a cell over x (B, T, E), zero in the padding, from a state of (B, H) tensors.

    Returns y (B, T, H), zero in the padding, and each row's state after its last step, which
    backward is the first of the row.
    """
    if x.size(1) == 1:
        state = cell.step(cell.project(x[:, 0], weights), state, weights)
        return state[0][:, None], state  # (B, 1, H)
    if backward:
        x = reverse(x, padding)
    y, last = _runner(cell, padding)(cell, weights, x, state, padding)
    y = clear(y, padding)
    return (reverse(y, padding) if backward else y), last


Runner = Callable[[Cell, Weights, Tensor, State, Padding | None], tuple[Tensor, State]]


def _runner(cell: Cell, padding: Padding | None) -> Runner:
    # A state without bound may overflow in the padding, and 0 · inf would make the gradient NaN.
    overflows = cell == RNNCell("relu") and padding is not None
    return run_fused if cell in FUSED and not overflows else run_steps


def run_steps(
    cell: Cell, weights: Weights, x: Tensor, state: State, padding: Padding | None
) -> tuple[Tensor, State]:
    """The reference: `cell.step` for each t; the state stands still in the padding."""
    outputs = []
    for t, projected in enumerate(cell.project(x, weights).unbind(1)):  # (B, G·H)
        after = cell.step(projected, state, weights)
        if padding is not None:
            ended = padding.beyond[:, t, None]  # (B, 1)
            after = tuple(torch.where(ended, s, new) for s, new in zip(state, after, strict=True))
        state = after
        outputs.append(state[0])
    return torch.stack(outputs, dim=1), state  # (B, T, H)


def run_fused(
    cell: Cell, weights: Weights, x: Tensor, state: State, padding: Padding | None
) -> tuple[Tensor, State]:
    """The same by torch's compiled code."""
    if padding is not None and cell.state_size == 2:
        x, weights = _hold_cell(x, weights, padding)
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
    if padding is not None:
        rows = torch.arange(y.size(0), device=y.device)
        last[0] = y[rows, padding.last][None]
    return y, tuple(s[0] for s in last)


def _hold_cell(x: Tensor, weights: Weights, padding: Padding) -> tuple[Tensor, Weights]:
    """An LSTM's inputs and weights with which c stands still in the padding.

    y shows h at every step but not c. One more input, 1 in the padding and 0 before it, opens the
    forget gate and shuts the input gate so far that f is exactly 1 and i exactly 0 there, as are
    their derivatives: the c after all steps is then the c after the row's own last step.
    """
    H = weights.hh.size(1)
    far = torch.finfo(x.dtype).max ** 0.5  # h is in [-1, 1]: no weights reach back from here
    push = weights.ih.new_zeros(4, H)
    push[0], push[1] = -far, far  # i, f
    x = torch.cat([x, padding.beyond[:, :, None].to(x.dtype)], dim=2)  # (B, T, E + 1)
    return x, weights._replace(ih=torch.cat([weights.ih, push.view(-1, 1)], dim=1))
