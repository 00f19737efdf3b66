"""Recurrent: time, layers, directions and carried states."""

from copy import deepcopy

import pytest
import torch
from networks import build, every_variant, main_cells, random, random_state
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode

from unrolled.nn import LSTMCell, Recurrent, reference

pytestmark = pytest.mark.arithmetic


def assert_close(got: Tensor, expected: Tensor) -> None:
    torch.testing.assert_close(got, expected, rtol=0, atol=1e-13)


@every_variant
def test_one_call_equals_single_steps(cell):
    net = build(3, 4, cell=cell, layers=2)
    x, state = random(2, 6, 3), random_state(net, 2)
    y, last = net(x, state=state)
    for t in range(6):
        y_t, state = net(x[:, t : t + 1], state=state)
        assert_close(y_t[:, 0], y[:, t])
    for s, expected in zip(state, last, strict=True):
        assert_close(s, expected)


@pytest.mark.row("E-l")
@main_cells
def test_chunks_with_carried_state_equal_one_long_run(cell):
    net = build(3, 4, cell=cell, layers=3)
    x = random(2, 11, 3)
    y, last = net(x)
    head, state = net(x[:, :4])
    tail, state = net(x[:, 4:], state=state)
    assert_close(torch.cat([head, tail], dim=1), y)
    for s, expected in zip(state, last, strict=True):
        assert_close(s, expected)


@pytest.mark.row("E-l")
@main_cells
def test_nothing_is_remembered_between_calls(cell):
    net = build(3, 4, cell=cell, layers=2, bidirectional=True)
    x = random(2, 5, 3)
    before, _ = net(x)
    net(random(7, 9, 3))
    assert torch.equal(net(x)[0], before)


@pytest.mark.row("D1", "E-b")
@main_cells
def test_one_set_of_parameters_serves_every_step(cell):
    """The gradient of shared weights is the sum over the steps of what each step's copy would get;
    a step has gates · (h (h + d) + 2 h) weights, however many steps there are."""
    net, x, upstream = build(3, 4, cell=cell), random(1, 30, 3), random(1, 30, 4)
    assert sum(p.numel() for p in net.parameters()) == cell.gates * (4 * (4 + 3) + 2 * 4)
    copies, outputs, state = [deepcopy(net) for _ in range(30)], [], None
    for copy, x_t in zip(copies, x.split(1, dim=1), strict=True):
        y_t, state = copy(x_t, state=state)
        outputs.append(y_t)
    y = net(x)[0]
    assert_close(torch.cat(outputs, dim=1), y)
    (y * upstream).sum().backward()
    (torch.cat(outputs, dim=1) * upstream).sum().backward()
    for name, parameter in net.named_parameters():
        parts = [copy.get_parameter(name).grad for copy in copies]
        torch.testing.assert_close(sum(parts), parameter.grad, rtol=1e-10, atol=1e-12)


@pytest.mark.row("E-d")
@every_variant
def test_a_layer_reads_the_layer_below(cell):
    net = build(3, 4, cell=cell, layers=2)
    lower, upper = build(3, 4, cell=cell), build(4, 4, cell=cell)
    values = net.state_dict()
    lower.load_state_dict({name: values[name] for name in lower.state_dict()})
    upper.load_state_dict({name: values[name.replace("l0", "l1")] for name in upper.state_dict()})
    x = random(2, 5, 3)
    middle, first = lower(x)
    top, second = upper(middle)
    y, last = net(x)
    assert torch.equal(y, top)
    for s, a, b in zip(last, first, second, strict=True):
        assert torch.equal(s, torch.cat([a, b]))


@pytest.mark.row("E-e")
@every_variant
def test_only_two_directions_let_the_end_reach_the_beginning(cell):
    x = random(1, 5, 3)
    changed = x.clone()
    changed[:, -1] += 1
    for bidirectional in (False, True):
        net = build(3, 4, cell=cell, bidirectional=bidirectional)
        same = torch.equal(net(x)[0][:, 0], net(changed)[0][:, 0])
        assert same is not bidirectional


def swap_directions(net: Recurrent) -> Recurrent:
    def partner(name: str) -> str:
        return name.removesuffix("_reverse") if name.endswith("_reverse") else name + "_reverse"

    swapped = Recurrent(
        net.input_size,
        net.hidden_size,
        cell=net.cell,
        layers=net.layers,
        bidirectional=True,
        combine=net.combine,
        dtype=torch.float64,
    )
    values = net.state_dict()
    swapped.load_state_dict({name: values[partner(name)] for name in values})
    return swapped


@pytest.mark.row("E-e")
@every_variant
@pytest.mark.parametrize(("layers", "combine"), [(1, "concat"), (3, "mean")])
def test_reversed_input_and_swapped_directions_give_the_mirror_image(cell, layers, combine):
    net = build(3, 4, cell=cell, layers=layers, bidirectional=True, combine=combine)
    x = random(2, 5, 3)
    y, last = net(x)
    mirrored, mirrored_last = swap_directions(net)(x.flip(1))
    mirrored = mirrored.flip(1)
    if combine == "concat":
        mirrored = torch.cat(mirrored.chunk(2, dim=2)[::-1], dim=2)
    assert_close(mirrored, y)
    for s, expected in zip(mirrored_last, last, strict=True):
        assert_close(s.view(layers, 2, 2, 4).flip(1).flatten(0, 1), expected)


@pytest.mark.row("E-g")
@main_cells
def test_mean_is_half_the_sum_of_the_two_directions(cell):
    concat = build(3, 4, cell=cell, bidirectional=True)
    mean = Recurrent(
        3, 4, cell=cell, bidirectional=True, combine="mean", layers=1, dtype=torch.float64
    )
    mean.load_state_dict(concat.state_dict())
    x = random(2, 5, 3)
    forward, backward = concat(x)[0].chunk(2, dim=2)
    assert_close(mean(x)[0], (forward + backward) / 2)
    assert (concat.output_size, mean.output_size) == (8, 4)


@pytest.mark.row("E-m")
@torch.no_grad()
@pytest.mark.parametrize(
    ("layers", "bidirectional", "features", "states"),
    [(1, False, 128, 1), (4, False, 128, 4), (1, True, 256, 2), (4, True, 256, 8)],
)
def test_shapes_of_a_batch_of_16_rows_of_512_steps(layers, bidirectional, features, states):
    net = Recurrent(32, 128, cell=LSTMCell(), layers=layers, bidirectional=bidirectional)
    y, (h, c) = net(torch.randn(16, 512, 32))
    assert y.shape == (16, 512, features)
    assert h.shape == c.shape == (states, 16, 128)


@main_cells
def test_a_weight_may_be_a_function_of_other_parameters(cell):
    net, x = build(3, 4, cell=cell, layers=2), random(2, 6, 3)
    expected = net(x)[0]
    torch.nn.utils.parametrizations.weight_norm(net, "weight_hh_l1")
    got = net(x)[0]
    assert_close(got, expected)
    got.sin().sum().backward()
    assert all(bool(p.grad.any()) for p in net.parameters())


@pytest.mark.row("R7")
def test_steps_wait_for_each_other_and_rows_do_not():
    """A product for every step, however many rows there are: 1,024 inputs as one row take 1,024."""

    class Products(TorchDispatchMode):
        count = 0

        def __torch_dispatch__(self, operator, types, args=(), kwargs=None):
            self.count += operator.overloadpacket in (torch.ops.aten.mm, torch.ops.aten.addmm)
            return operator(*args, **(kwargs or {}))

    def products(B, T):
        with torch.no_grad(), reference(), Products() as seen:
            stack(torch.randn(B, T, 4))
        return seen.count

    stack = Recurrent(4, 4, cell=LSTMCell())
    few, many = products(128, 8), products(1, 1024)
    assert many - few == 1024 - 8
