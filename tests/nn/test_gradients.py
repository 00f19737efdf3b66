"""Recurrent: gradients by everything, against finite differences."""

from collections.abc import Callable

import pytest
import torch
from torch import Tensor

from unrolled.nn import Cell, GRUCell, LSTMCell, Recurrent, RNNCell
from unrolled.nn.cells import ACTIVATIONS, OUTPUTS, PEEPHOLES, RESETS, UPDATES

VARIANTS: list[Cell] = [
    *(RNNCell(name) for name in ACTIVATIONS),
    *(LSTMCell(output, peephole) for output in OUTPUTS for peephole in PEEPHOLES),
    *(GRUCell(reset, update) for reset in RESETS for update in UPDATES),
]
MAIN: list[Cell] = [RNNCell(), GRUCell(), LSTMCell()]
every_variant = pytest.mark.parametrize("cell", VARIANTS, ids=str)
main_cells = pytest.mark.parametrize("cell", MAIN, ids=str)


@pytest.fixture(autouse=True)
def _seed() -> None:
    torch.manual_seed(3)


def build(input_size: int, hidden_size: int, **options: object) -> Recurrent:
    """In float64, with every parameter random, learned first states included."""
    net = Recurrent(input_size, hidden_size, dtype=torch.float64, **options)
    with torch.no_grad():
        for parameter in net.parameters():
            parameter.uniform_(-0.9, 0.9)
    return net


def random(*shape: int) -> Tensor:
    return torch.randn(shape, dtype=torch.float64)


def random_state(net: Recurrent, rows: int) -> tuple[Tensor, ...]:
    shape = (net.layers * net.directions, rows, net.hidden_size)
    return tuple(random(*shape) for _ in range(net.cell.state_size))


@torch.no_grad()
def numeric_gradient(loss: Callable[[], Tensor], tensor: Tensor, *, step: float = 1e-5) -> Tensor:
    """Central finite differences of loss() by each element of tensor."""
    gradient = torch.empty_like(tensor)
    values, slopes = tensor.view(-1), gradient.view(-1)
    for k in range(values.numel()):
        value = values[k].item()
        values[k] = value + step
        above = loss()
        values[k] = value - step
        slopes[k] = (above - loss()) / (2 * step)
        values[k] = value
    return gradient


def relative_error(a: Tensor, n: Tensor) -> float:
    """‖a − n‖ / (‖a‖ + ‖n‖)."""
    scale = float(a.norm() + n.norm())
    return float((a - n).norm()) / scale if scale else 0.0


def check_gradients(
    net: Recurrent, x: Tensor, lengths: Tensor | None, state: tuple[Tensor, ...] | None
) -> None:
    """By every parameter, the input and the first state, of random weights on y and last states."""
    y, last = net(x, lengths, state)
    upstream = [torch.randn_like(part) for part in (y, *last)]

    def loss() -> Tensor:
        y, last = net(x, lengths, state)
        return sum((u * part).sum() for u, part in zip(upstream, (y, *last), strict=True))

    tensors = {"x": x, **dict(net.named_parameters())}
    tensors |= {f"state[{k}]": s for k, s in enumerate(state or ())}
    for tensor in tensors.values():
        tensor.requires_grad_()
    exact = torch.autograd.grad(loss(), list(tensors.values()))
    for (name, tensor), gradient in zip(tensors.items(), exact, strict=True):
        error = relative_error(gradient, numeric_gradient(loss, tensor))
        assert error < 1e-6, f"{name}: relative error {error:.1e}"


@every_variant
def test_gradients_of_three_ragged_bidirectional_layers_with_learned_start(cell):
    net = build(2, 2, cell=cell, layers=3, bidirectional=True, first_state="learned")
    check_gradients(net, random(2, 3, 2), torch.tensor([3, 2]), None)


@every_variant
def test_gradients_of_one_layer_from_a_given_state(cell):
    net = build(3, 2, cell=cell)
    check_gradients(net, random(2, 4, 3), None, random_state(net, 2))


@main_cells
def test_gradients_of_a_single_step_and_of_mean_combination(cell):
    net = build(2, 2, cell=cell, layers=2, bidirectional=True, combine="mean")
    check_gradients(net, random(2, 1, 2), None, random_state(net, 2))
    check_gradients(net, random(2, 3, 2), torch.tensor([1, 3]), random_state(net, 2))


def test_gradient_check_notices_a_wrong_gradient():
    class Wrong(Recurrent):
        def forward(self, x, lengths=None, state=None):
            y, last = super().forward(x, lengths, state)
            return y + 1e-4 * (y - y.detach()), last

    net = Wrong(2, 2, cell=GRUCell(), dtype=torch.float64)
    with pytest.raises(AssertionError, match="relative error"):
        check_gradients(net, random(1, 3, 2), None, None)
