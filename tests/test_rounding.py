"""The nudges of `--rounding` themselves: what they move, how far, and what they leave alone."""

import pytest
import torch
from rounding import Rounding, nudge
from torch import Tensor
from torch.nn import functional as F

X, W = torch.randn(40, 5), torch.randn(6, 5)


@pytest.fixture(autouse=True)
def _plain(request) -> None:
    if request.config.getoption("--rounding") is not None:
        pytest.skip("the nudges are tested where nothing else is nudged")


def places(values: Tensor, others: Tensor) -> Tensor:
    """How many units in the last place lie between."""
    return (others.view(torch.int32) - values.view(torch.int32)).abs()


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
def test_a_third_goes_up_a_third_down_and_a_third_stays(dtype):
    values = torch.randn(300, 100, dtype=dtype)
    moved = nudge(values, 1)
    for share in ((moved > values), (moved < values), (moved == values)):
        assert abs(float(share.double().mean()) - 1 / 3) < 0.02
    error = ((moved - values) / values).abs().max()
    assert 0 < error <= torch.finfo(dtype).eps


def test_it_depends_on_seed_place_and_value_and_on_nothing_else():
    values = torch.randn(50, 20)
    assert torch.equal(nudge(values, 1), nudge(values.clone(), 1))
    assert not torch.equal(nudge(values, 1), nudge(values, 2))
    assert not torch.equal(nudge(values, 1)[1:], nudge(values[1:], 1))
    assert torch.equal(nudge(values.t().contiguous().t(), 1), nudge(values, 1))


def test_what_is_exact_everywhere_stays():
    values = torch.tensor([0.0, -0.0, 1.0, -2.5, 7.0, torch.inf, -torch.inf, torch.nan])
    assert torch.equal(nudge(values, 3).nan_to_num(9.0), values.nan_to_num(9.0))
    values = torch.full((100,), torch.finfo(torch.float32).max)
    assert nudge(values, 3).isfinite().all()


@pytest.mark.parametrize(
    "function",
    [
        lambda: X @ W.t(),
        lambda: F.linear(X, W, torch.randn(6, generator=torch.Generator().manual_seed(1))),
        lambda: torch.mm(X, W.t(), out=torch.empty(40, 6)),
        lambda: X.exp(),
        lambda: X.clone().sigmoid_(),
        lambda: X.tanh(),
        lambda: X.log_softmax(1),
        lambda: X.sum(1),
    ],
)
def test_products_exponentials_and_sums_are_moved_also_in_inference_mode(function):
    expected = function()
    with Rounding(1):
        moved, again = function(), function()
        with torch.inference_mode():
            inferred = function()
    assert torch.equal(moved, again)
    assert torch.equal(moved, inferred)
    assert places(moved, expected).max() == 1


def test_gradients_are_moved_and_right():
    weight = W.clone().requires_grad_()
    (expected,) = torch.autograd.grad((X @ weight.t()).tanh().sin().sum(), weight)
    with Rounding(1):
        (moved,) = torch.autograd.grad((X @ weight.t()).tanh().sin().sum(), weight)
    assert not torch.equal(moved, expected)
    torch.testing.assert_close(moved, expected, rtol=1e-5, atol=1e-6)
