"""Recurrent: gradients by everything, against finite differences."""

import pytest
import torch
from networks import (
    build,
    every_variant,
    main_cells,
    numeric_gradient,
    random,
    random_state,
    relative_error,
)
from torch import Tensor

from unrolled.nn import GRUCell, Recurrent
from unrolled.nn.recurrent import FIRST

pytestmark = [pytest.mark.arithmetic, pytest.mark.slow]


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


@pytest.mark.row("D8")
@every_variant
def test_gradients_of_three_ragged_bidirectional_layers_with_learned_start(cell):
    net = build(2, 2, cell=cell, layers=3, bidirectional=True, first_state="learned")
    x, lengths = random(2, 3, 2), torch.tensor([3, 2])
    check_gradients(net, x, lengths, None)
    first = [net.get_parameter(name) for name in FIRST[: cell.state_size]]
    for gradient in torch.autograd.grad(net(x, lengths)[0].sum(), first):
        assert gradient.abs().max() > 0.0


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
