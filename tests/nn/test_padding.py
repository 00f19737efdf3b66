"""Lengths in, right answer out: padding and batch neighbours change no number and no gradient."""

from collections.abc import Callable

import pytest
import torch
from networks import VARIANTS, random
from torch import Tensor

from unrolled.errors import ConfigError
from unrolled.nn import LSTM, Cell, GRUCell, LSTMCell, Recurrent, RNNCell, State

pytestmark = [pytest.mark.arithmetic, pytest.mark.slow]

Run = Callable[[Tensor, Tensor | None, State], tuple[Tensor, State]]
B, T, E, H = 5, 6, 3, 4
LENGTHS = torch.tensor([6, 1, 4, 6, 2])


def build(cell: Cell, **options: object) -> Recurrent:
    return Recurrent(E, H, cell=cell, dtype=torch.float64, **options)


def fill(x: Tensor, lengths: Tensor, junk: float) -> Tensor:
    padding_mask = torch.arange(x.size(1)) >= lengths[:, None]
    return x.masked_fill(padding_mask[:, :, None], junk)


def worst_difference(net: Recurrent, lengths: Tensor, junk: float, run: Run | None = None) -> float:
    """How far a padded batch is from runs of its rows alone: outputs, states, loss, gradients.

    `junk` fills the padding of x; `run` may stand in for the net in the batch. NaN if any differs
    by NaN.
    """
    rows, steps = len(lengths), int(lengths.max())
    x = random(rows, steps, E).requires_grad_()
    state = tuple(
        random(net.layers * net.directions, rows, H).requires_grad_()
        for _ in range(net.cell.state_size)
    )
    on_y = random(rows, steps, net.output_size)
    on_last = [torch.randn_like(s) for s in state]
    inputs = [x, *state, *net.parameters()]

    y, last = (run or net)(fill(x, lengths, junk), lengths, state)
    loss = (y * on_y).sum() + sum((s * w).sum() for s, w in zip(last, on_last, strict=True))
    batch = [y, *last, loss, *torch.autograd.grad(loss, inputs)]

    alone_y, alone_last, alone_loss = torch.zeros_like(y), [torch.zeros_like(s) for s in last], 0.0
    for row, length in enumerate(lengths.tolist()):
        one = slice(row, row + 1)
        y_one, last_one = net(x[one, :length], None, tuple(s[:, one] for s in state))
        alone_y = alone_y.index_put((torch.tensor(row), torch.arange(length)), y_one[0])
        alone_loss = alone_loss + (y_one * on_y[one, :length]).sum()
        for k, s in enumerate(last_one):
            alone_last[k] = alone_last[k].index_copy(1, torch.tensor([row]), s)
            alone_loss = alone_loss + (s * on_last[k][:, one]).sum()
    alone = [alone_y, *alone_last, alone_loss, *torch.autograd.grad(alone_loss, inputs)]
    gaps = [(a - b).detach().abs().max() for a, b in zip(batch, alone, strict=True)]
    return float(torch.stack(gaps).max())


@pytest.mark.row("A9")
@pytest.mark.parametrize("layers", [1, 2, 3])
@pytest.mark.parametrize("bidirectional", [False, True])
@pytest.mark.parametrize("cell", VARIANTS, ids=str)
def test_a_ragged_batch_equals_its_rows_alone(cell, bidirectional, layers):
    net = build(cell, layers=layers, bidirectional=bidirectional)
    for junk in (torch.nan, torch.inf, 1e3):
        assert worst_difference(net, LENGTHS, junk) < 1e-10


@pytest.mark.row("A11")
@pytest.mark.parametrize(
    "cell", [RNNCell(), GRUCell(), LSTMCell(), LSTMCell(peephole="full")], ids=str
)
def test_lengths_1_to_50_equal_batches_of_one(cell):
    net = build(cell, bidirectional=True)
    assert worst_difference(net, torch.arange(1, 51), torch.nan) < 1e-10


@pytest.mark.parametrize("cell", VARIANTS, ids=str)
def test_mean_learned_start_and_no_bias_are_right_too(cell):
    net = build(
        cell, layers=2, bidirectional=True, combine="mean", first_state="learned", bias=False
    )
    x = random(B, T, E)
    with torch.no_grad():
        net.h0.normal_()
    y, last = net(fill(x, LENGTHS, torch.nan), LENGTHS)
    for row, length in enumerate(LENGTHS.tolist()):
        y_one, last_one = net(x[row : row + 1, :length])
        torch.testing.assert_close(y[row, :length], y_one[0], rtol=0, atol=1e-13)
        for s, expected in zip(last, last_one, strict=True):
            torch.testing.assert_close(s[:, row], expected[:, 0], rtol=0, atol=1e-13)


@pytest.mark.parametrize("cell", VARIANTS, ids=str)
def test_output_is_exactly_zero_beyond_each_length(cell):
    for combine in ("concat", "mean"):
        net = build(cell, layers=2, bidirectional=True, combine=combine, dropout=0.5)
        y, _ = net(random(B, T, E), LENGTHS)
        for row, length in enumerate(LENGTHS.tolist()):
            assert not y[row, length:].any()
            assert y[row, :length].any(dim=-1).all()


@pytest.mark.parametrize("cell", VARIANTS, ids=str)
def test_the_padding_of_x_gets_no_gradient(cell):
    net = build(cell, bidirectional=True)
    x = random(B, T, E).requires_grad_()
    y, last = net(x, LENGTHS)
    ((y * torch.randn_like(y)).sum() + sum(s.sum() for s in last)).backward()
    assert torch.equal(x.grad, fill(x.grad, LENGTHS, 0.0))
    assert x.grad[0].any()


def test_single_precision_last_cells_do_not_depend_on_the_amount_of_padding():
    net = Recurrent(E, H, cell=LSTMCell(), bidirectional=True)
    x = torch.randn(B, T, E)
    y, last = net(x, LENGTHS)
    longer = torch.cat([x, torch.full((B, 20, E), torch.nan)], dim=1)
    longer_y, longer_last = net(longer, LENGTHS)
    torch.testing.assert_close(longer_y[:, :T], y, rtol=0, atol=2e-7)
    for s, expected in zip(longer_last, last, strict=True):
        torch.testing.assert_close(s, expected, rtol=0, atol=2e-7)


@pytest.mark.parametrize("activation", ["relu", "leaky_relu", "identity"])
def test_states_without_bound_do_not_overflow_in_the_padding(activation):
    net = build(RNNCell(activation), bias=False)
    with torch.no_grad():
        net.weight_ih_l0.fill_(1.0)
        net.weight_hh_l0.copy_(3 * torch.eye(H))
    x = torch.zeros(2, 1500, E, dtype=torch.float64)  # 3 ** 1500 is beyond float64
    x[0, 0] = 1.0
    y, (h,) = net(x, torch.tensor([1, 2]))
    ((y * torch.randn_like(y)).sum() + h.sum()).backward()
    assert all(p.grad.isfinite().all() for p in net.parameters())
    assert torch.equal(h[0, 0], torch.full((H,), 3.0, dtype=torch.float64))


def ignores_lengths(net: Recurrent) -> Run:
    return lambda x, lengths, state: net(x, None, state)


def masks_the_output_alone(net: Recurrent) -> Run:
    def run(x: Tensor, lengths: Tensor, state: State) -> tuple[Tensor, State]:
        y, last = net(x, None, state)
        return fill(y, lengths, 0.0), last

    return run


def is_one_step_late(net: Recurrent) -> Run:
    return lambda x, lengths, state: net(x, (lengths + 1).clamp(max=x.size(1)), state)


@pytest.mark.row("A9")
@pytest.mark.parametrize("cell", [RNNCell(), GRUCell(), LSTMCell()], ids=str)
@pytest.mark.parametrize(
    ("broken", "junk"),
    [
        (ignores_lengths, 0.0),
        (masks_the_output_alone, 0.0),
        (is_one_step_late, 0.0),
        (ignores_lengths, torch.nan),
    ],
)
def test_the_check_notices_a_broken_mask(cell, broken, junk):
    net = build(cell)
    assert worst_difference(net, LENGTHS, junk) < 1e-10
    assert not worst_difference(net, LENGTHS, junk, broken(net)) < 1e-3


def to_the_other_side(x: Tensor, lengths: Tensor) -> Tensor:
    """Rows that are padded on the right, padded on the left."""
    return torch.stack([row.roll(len(row) - n, 0) for row, n in zip(x, lengths, strict=True)])


@pytest.mark.row("A9")
@pytest.mark.parametrize("bidirectional", [False, True])
@pytest.mark.parametrize("layers", [1, 2, 3])
@pytest.mark.parametrize("cell", [RNNCell(), GRUCell(), LSTMCell()], ids=str)
def test_rows_padded_on_the_left_equal_their_runs_alone(cell, layers, bidirectional):
    net = build(cell, layers=layers, bidirectional=bidirectional)

    def run(x: Tensor, lengths: Tensor | None, state: State) -> tuple[Tensor, State]:
        y, last = net(to_the_other_side(x, lengths), lengths, state, padding="left")
        for row, length in enumerate(lengths.tolist()):
            assert (y[row, : y.size(1) - length] == 0).all()
        return torch.stack([y[row].roll(int(n), 0) for row, n in enumerate(lengths)]), last

    assert worst_difference(net, LENGTHS, 7.0, run) < 1e-10


@pytest.mark.parametrize("batch_first", [False, True])
def test_drop_in_layers_take_either_side(batch_first):
    rnn = LSTM(E, H, bidirectional=True, batch_first=batch_first, dtype=torch.float64)
    x = fill(random(B, T, E), LENGTHS, 3.0)
    left = to_the_other_side(x, LENGTHS)
    right_y, right = rnn(x if batch_first else x.transpose(0, 1), lengths=LENGTHS)
    left_y, last = rnn(
        left if batch_first else left.transpose(0, 1), lengths=LENGTHS, padding="left"
    )
    if not batch_first:
        right_y, left_y = right_y.transpose(0, 1), left_y.transpose(0, 1)
    torch.testing.assert_close(left_y, to_the_other_side(right_y, LENGTHS), rtol=1e-12, atol=0)
    torch.testing.assert_close(last, right, rtol=1e-12, atol=0)


def test_a_third_side_is_refused():
    with pytest.raises(ConfigError, match=r"padding is 'lef', but .*Did you mean 'left'\?"):
        build(GRUCell())(random(B, T, E), LENGTHS, padding="lef")
