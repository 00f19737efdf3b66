"""Steps and whole rows with weights that are packed once: the stack's own numbers, faster."""

import pytest
import torch
from kernel_checks import SETS, first_states, instructions, needs_kernels, same_bits, worst
from networks import every_variant, main_cells
from torch import Tensor

from unrolled.errors import ConfigError
from unrolled.nn import Cell, GRUCell, LSTMCell, Recurrent, State, kernels, reference

pytestmark = pytest.mark.arithmetic

ROUNDING = {torch.float32: 4e-6, torch.float64: 5e-14}


def same_numbers(got: list[Tensor], expected: list[Tensor]) -> bool:
    """The same bits; without kernels torch chooses the order of sums, by layout and gradients."""
    return same_bits(got, expected) if kernels.active() else worst(got, expected) < 1e-6


@torch.no_grad()
def step_by_step(net: Recurrent, x: Tensor, state: State) -> list[Tensor]:
    """y (B, T, H) and the last state, one prepared step after another."""
    prepared, outputs = net.prepared(), []
    for token in x.unbind(1):
        y, state = prepared.step(token, state)
        outputs.append(y)
    return [torch.stack(outputs, dim=1), *state]


def example(cell: Cell, dtype: torch.dtype, rows: int, H: int) -> tuple[Recurrent, Tensor, State]:
    net = Recurrent(5, H, cell=cell, layers=2, bias=rows != 3, dtype=dtype)
    return net, torch.randn(rows, 4, 5, dtype=dtype), first_states(net, rows)


@needs_kernels
@every_variant
@pytest.mark.parametrize("dtype", ROUNDING, ids=str)
def test_every_variant_steps_as_the_reference_does(cell, dtype):
    for rows, H in ((1, 33), (3, 7), (70, 3)):
        net, x, state = example(cell, dtype, rows, H)
        with torch.no_grad(), reference():
            y, last = net(x, state=state)
        for name in SETS:
            with instructions(name):
                assert worst(step_by_step(net, x, state), [y, *last]) < ROUNDING[dtype], name


@needs_kernels
@every_variant
def test_steps_have_the_bits_of_a_sequence(cell):
    net = Recurrent(5, 33, cell=cell, layers=2)
    for steps in (1, 2, 5, 70):
        x, state = torch.randn(3, steps, 5), first_states(net, 3)
        with torch.no_grad():
            y, last = net(x, state=state)
        assert same_bits(step_by_step(net, x, state), [y, *last])


@main_cells
def test_without_kernels_the_stack_steps_itself(cell, monkeypatch):
    monkeypatch.setattr("unrolled.nn.kernels._kernels", None)
    net, x, state = example(cell, torch.float64, 2, 7)
    with torch.no_grad():
        y, last = net(x, state=state)
    assert worst(step_by_step(net, x, state), [y, *last]) < 1e-14


@main_cells
def test_weights_are_those_of_the_time_it_was_made(cell):
    net, x, state = example(cell, torch.float32, 2, 7)
    prepared = net.prepared()
    before = prepared.step(x[:, 0], state)
    with torch.no_grad():
        for parameter in net.parameters():
            parameter.data.fill_(torch.nan)
    after = prepared.step(x[:, 0], state)
    assert same_bits([after[0], *after[1]], [before[0], *before[1]])
    assert net.prepared().step(x[:, 0], state)[0].isnan().all()


def test_states_and_inputs_that_are_not_contiguous_and_go_unchanged():
    net, x, state = example(LSTMCell(), torch.float32, 4, 7)
    spread = tuple(s.detach().transpose(1, 2).contiguous().transpose(1, 2) for s in state)
    copies, turned = [s.clone() for s in spread], x[:, 0].t().contiguous().t()
    expected = net.prepared().step(x[:, 0], state)
    got = net.prepared().step(turned, spread)
    assert same_numbers([got[0], *got[1]], [expected[0], *expected[1]])
    assert same_bits(spread, copies)


def test_fewer_and_more_rows_in_turn():
    net, _, _ = example(GRUCell(), torch.float64, 1, 7)
    prepared = net.prepared()
    for rows in (2, 9, 1, 40):
        x, state = torch.randn(rows, 5, dtype=torch.float64), first_states(net, rows)
        y, _ = prepared.step(x, state)
        with torch.no_grad():
            assert worst([y], [net(x[:, None], state=state)[0][:, 0]]) < 1e-14


@needs_kernels
def test_wrong_shapes_are_named():
    net, x, state = example(LSTMCell(), torch.float32, 2, 7)
    prepared = net.prepared()
    message = r"must have \(N, 5\) and 2 × \(2, N, 7\), of torch.float32"
    wrong = [(x[:, 0, :4], state), (x[:, 0], state[:1]), (x[:1, 0], state), (x[0, 0], state)]
    for token, given in wrong:
        with pytest.raises(ConfigError, match=message):
            prepared.step(token, given)
    with pytest.raises(ConfigError, match=message):
        prepared.step(x[:, 0].double(), tuple(s.double() for s in state))


def test_both_directions_cannot_step():
    prepared = Recurrent(3, 4, cell=GRUCell(), bidirectional=True).prepared()
    with pytest.raises(ConfigError, match=r"bidirectional, but only one that reads forward"):
        prepared.step(torch.randn(2, 3), (torch.zeros(2, 2, 4),))


@every_variant
def test_whole_rows_have_the_bits_of_the_stack(cell):
    for options in ({}, {"layers": 2, "bidirectional": True, "dropout": 0.5}):
        net = Recurrent(5, 33, cell=cell, **options).eval()
        x, lengths = torch.randn(6, 30, 5), torch.tensor([9, 1, 30, 17, 30, 2])
        for given in (lengths, None):
            state = first_states(net, 6)
            with torch.no_grad():
                y, last = net(x, given, state)
            got, after = net.prepared().run(x, given, state)
            assert same_numbers([got, *after], [y, *last])


@main_cells
def test_a_few_tokens_and_no_dropout_even_in_training(cell):
    net = Recurrent(5, 33, cell=cell, layers=2, bidirectional=True, combine="mean", dropout=0.9)
    x, lengths = torch.randn(3, 4, 5), torch.tensor([4, 1, 3])
    got, last = net.train().prepared().run(x, lengths)
    with torch.no_grad():
        y, after = net.eval()(x, lengths)
    assert worst([got, *last], [y, *after]) < 1e-6


@main_cells
def test_whole_rows_keep_the_weights_they_were_made_with(cell):
    net, x = Recurrent(5, 7, cell=cell, bidirectional=True), torch.randn(3, 30, 5)
    prepared = net.prepared()
    before, _ = prepared.run(x)
    for parameter in net.parameters():
        parameter.data.fill_(torch.nan)
    assert same_bits([prepared.run(x)[0]], [before])
    assert net.prepared().run(x)[0].isnan().all()


@needs_kernels
def test_whole_rows_of_another_type_are_refused():
    net = Recurrent(5, 7, cell=GRUCell())
    with pytest.raises(ConfigError, match=r"is of torch.float64, but must be of torch.float32"):
        net.prepared().run(torch.randn(2, 3, 5, dtype=torch.float64))


def test_whole_rows_without_kernels(monkeypatch):
    monkeypatch.setattr("unrolled.nn.kernels._kernels", None)
    net, x = Recurrent(5, 7, cell=GRUCell(), bidirectional=True), torch.randn(3, 30, 5)
    with torch.no_grad():
        assert worst([net.prepared().run(x)[0]], [net(x)[0]]) < 1e-6
