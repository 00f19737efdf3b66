"""What the tests of networks share: every cell variant, random float64 networks, differences."""

from collections.abc import Callable

import pytest
import torch
from torch import Tensor

from unrolled.nn import Cell, GRUCell, LSTMCell, Recurrent, RNNCell, State, Weights
from unrolled.nn.cells import ACTIVATIONS, OUTPUTS, PEEPHOLES, RESETS, UPDATES

VARIANTS: list[Cell] = [
    *(RNNCell(name) for name in ACTIVATIONS),
    *(LSTMCell(output, peephole) for output in OUTPUTS for peephole in PEEPHOLES),
    *(GRUCell(reset, update) for reset in RESETS for update in UPDATES),
]
MAIN: list[Cell] = [RNNCell(), GRUCell(), LSTMCell()]
every_variant = pytest.mark.parametrize("cell", VARIANTS, ids=str)
main_cells = pytest.mark.parametrize("cell", MAIN, ids=str)


def random(*shape: int) -> Tensor:
    return torch.randn(shape, dtype=torch.float64)


def build(input_size: int, hidden_size: int, **options: object) -> Recurrent:
    """In float64, with every parameter random, learned first states included."""
    net = Recurrent(input_size, hidden_size, dtype=torch.float64, **options)
    with torch.no_grad():
        for parameter in net.parameters():
            parameter.uniform_(-0.9, 0.9)
    return net


def random_state(net: Recurrent, rows: int) -> State:
    shape = (net.layers * net.directions, rows, net.hidden_size)
    return tuple(random(*shape) for _ in range(net.cell.state_size))


def random_weights(cell: Cell, E: int = 5, H: int = 4) -> Weights:
    G = cell.gates
    peephole = random(cell.peepholes, H) if cell.peepholes else None
    return Weights(random(G * H, E), random(G * H, H), random(G * H), random(G * H), peephole)


def step(cell: Cell, x: Tensor, state: State, weights: Weights) -> State:
    return cell.step(cell.project(x, weights), state, weights)


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
