"""One layer over time, in one direction or two, for rows of unequal length.

The compiled kernels run it where they can (nn/kernel_layer.py). Else torch's own code does where it
is exact, or the reference: a loop over `cell.step`. There rows are padded on the right, so what a
recurrence computes in the padding never reaches a real step. What remains is to read each row's
last state at its own last step, to turn a row round within its own length, and to keep the padding
from overflowing.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar

import torch
from torch import Tensor

from unrolled.nn import compiled, kernel_layer, kernels
from unrolled.nn.cells import Cell, GRUCell, LSTMCell, RNNCell, State, Weights, zero_state
from unrolled.nn.rows import Rows, checked_values

# The variants that torch has compiled code for.
FUSED: Mapping[Cell, Callable[..., tuple[Tensor, ...]]] = {
    LSTMCell(): torch.lstm,
    GRUCell(): torch.gru,
    RNNCell("tanh"): torch.rnn_tanh,
    RNNCell("relu"): torch.rnn_relu,
}

_plain: ContextVar[bool] = ContextVar("plain", default=False)


@contextmanager
def reference() -> Iterator[None]:
    """Within it, layers run as `cell.step` in a loop: slowly, but differentiable at will."""
    token = _plain.set(True)
    try:
        yield
    finally:
        _plain.reset(token)


def run_layer(
    cell: Cell, weights: Sequence[Weights], x: Tensor, first: State | None, rows: Rows
) -> tuple[Tensor, State]:
    """Run a cell over x (B, T, E), in one direction or two (D), each with weights of its own.

    first is a state of (D, B, H) tensors, or None for zeros. Returns y (B, T, D·H), zero in the
    padding, and each row's state after its last step, which backward is the first of the row.
    """
    compiles = torch.compiler.is_dynamo_compiling()
    if (compiles or not _plain.get()) and kernels.can_run(cell, weights, x, first):
        run = compiled.run_layer if compiles else kernel_layer.run_layer
        return run(cell, weights, x, first, rows)
    if compiles and not rows.dense:
        checked_values(rows.lengths, rows.steps)
    x = clear(x, rows)
    if first is None:
        first = zero_state(cell, weights, rows.count)
    runs = [
        unroll(cell, weights[d], x, tuple(s[d] for s in first), rows=rows, backward=d == 1)
        for d in range(len(weights))
    ]
    last = tuple(torch.stack(s) for s in zip(*(last for _, last in runs), strict=True))
    return torch.cat([y for y, _ in runs], dim=2), last  # (B, T, D·H), (D, B, H) each


def unroll(
    cell: Cell, weights: Weights, x: Tensor, state: State, *, rows: Rows, backward: bool
) -> tuple[Tensor, State]:
    """One direction without kernels; x is zero in the padding."""
    if x.size(1) == 1:
        state = cell.step(cell.project(x[:, 0], weights), state, weights)
        return state[0][:, None], state  # (B, 1, H)
    if backward:
        x = reverse(x, rows)
    y, last = _runner(cell, rows)(cell, weights, x, state, rows)
    y = clear(y, rows)
    return (reverse(y, rows) if backward else y), last


def clear(x: Tensor, rows: Rows) -> Tensor:
    """x (B, T, F) with exact zeros in the padding, whatever was there."""
    return x if rows.dense else x.masked_fill(rows.beyond[:, :, None], 0.0)


def reverse(x: Tensor, rows: Rows) -> Tensor:
    """x (B, T, F) with each row turned round within its length; doing it twice undoes it."""
    if rows.dense:
        return x.flip(1)
    return x.flatten(0, 1).index_select(0, rows.mirror).view_as(x)


Runner = Callable[[Cell, Weights, Tensor, State, Rows], tuple[Tensor, State]]


def _runner(cell: Cell, rows: Rows) -> Runner:
    # A state without bound may overflow in the padding, and 0 · inf would make the gradient NaN.
    overflows = cell == RNNCell("relu") and not rows.dense
    return run_steps if _plain.get() or cell not in FUSED or overflows else run_fused


def run_steps(
    cell: Cell, weights: Weights, x: Tensor, state: State, rows: Rows
) -> tuple[Tensor, State]:
    """The reference: `cell.step` for each t; the state stands still in the padding."""
    outputs = []
    for t, projected in enumerate(cell.project(x, weights).unbind(1)):  # (B, G·H)
        after = cell.step(projected, state, weights)
        if not rows.dense:
            ended = rows.beyond[:, t, None]  # (B, 1)
            after = tuple(torch.where(ended, s, new) for s, new in zip(state, after, strict=True))
        state = after
        outputs.append(state[0])
    return torch.stack(outputs, dim=1), state  # (B, T, H)


def run_fused(
    cell: Cell, weights: Weights, x: Tensor, state: State, rows: Rows
) -> tuple[Tensor, State]:
    """The same by torch's compiled code."""
    if not rows.dense and cell.state_size == 2:
        x, weights = _hold_cell(x, weights, rows)
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


def _hold_cell(x: Tensor, weights: Weights, rows: Rows) -> tuple[Tensor, Weights]:
    """An LSTM's inputs and weights with which c stands still in the padding.

    y shows h at every step but not c. One more input, 1 in the padding and 0 before it, opens the
    forget gate and shuts the input gate so far that f is exactly 1 and i exactly 0 there, as are
    their derivatives: the c after all steps is then the c after the row's own last step.
    """
    H = weights.hh.size(1)
    far = torch.finfo(x.dtype).max ** 0.5  # h is in [-1, 1]: no weights reach back from here
    push = weights.ih.new_zeros(4, H)
    push[0], push[1] = -far, far  # i, f
    x = torch.cat([x, rows.beyond[:, :, None].to(x.dtype)], dim=2)  # (B, T, E + 1)
    return x, weights._replace(ih=torch.cat([weights.ih, push.view(-1, 1)], dim=1))
