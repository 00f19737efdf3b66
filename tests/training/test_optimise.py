"""Optimisers against their equations, schedules against theirs, and clipping by global norm."""

import math

import pytest
import torch

from unrolled.config.sections import TrainSettings
from unrolled.training.optimise import OPTIMIZERS, clip_gradients, global_norm, rate_share

pytestmark = pytest.mark.arithmetic


def gradients(scale: float) -> list[torch.Tensor]:
    generator = torch.Generator().manual_seed(3)
    shapes = [(300, 70), (4096,), (2, 3, 5)]
    return [scale * torch.randn(shape, generator=generator) for shape in shapes]


def exact_norm(tensors: list[torch.Tensor]) -> float:
    return math.sqrt(sum(float(t.double().square().sum()) for t in tensors))


@pytest.mark.row("G6")
@pytest.mark.parametrize("scale", [1.0, 1e-3, 1e15, 1e30])
def test_a_large_gradient_is_scaled_to_the_limit_and_keeps_its_direction(scale):
    before, clipped, limit = gradients(scale), gradients(scale), 0.05
    norm = clip_gradients(clipped, limit)
    assert norm == pytest.approx(exact_norm(before), rel=1e-6)
    assert limit * (1 - 3e-6) < exact_norm(clipped) <= limit
    flat = [torch.cat([t.double().flatten() for t in tensors]) for tensors in (before, clipped)]
    cosine = float(flat[0] @ flat[1] / flat[0].norm() / flat[1].norm())
    assert cosine == pytest.approx(1.0, abs=1e-12)


@pytest.mark.row("G6")
def test_a_gradient_below_the_limit_is_untouched_bit_for_bit():
    clipped = gradients(1e-3)
    limit = exact_norm(clipped) * 1.001
    clip_gradients(clipped, limit)
    assert all(torch.equal(a, b) for a, b in zip(clipped, gradients(1e-3), strict=True))


@pytest.mark.parametrize("value", [math.nan, math.inf])
def test_a_gradient_that_is_not_finite_is_reported_and_left_alone(value):
    clipped = gradients(1.0)
    clipped[1][17] = value
    kept = [t.clone() for t in clipped]
    assert not math.isfinite(clip_gradients(clipped, 0.1))
    assert all(torch.equal(a, b) for a, b in zip(clipped[::2], kept[::2], strict=True))


def test_the_norm_is_exact_over_millions_of_values():
    many = [torch.randn(4000, 500, generator=torch.Generator().manual_seed(1))]
    assert global_norm(many) == pytest.approx(exact_norm(many), rel=1e-8)


def share(schedule: str, **values) -> float:
    position = {"share": 0.0, "epoch": 0, "plateau": 1.0} | values
    settings = TrainSettings(schedule=schedule, decay=0.5, decay_after=4)
    return rate_share(settings, **position)


def test_schedules_follow_their_equations():
    assert share("constant", share=0.9, epoch=8) == 1.0
    assert [share("cosine", share=s) for s in (0.0, 0.5, 1.0, 1.2)] == pytest.approx(
        [1.0, 0.5, 0.0, 0.0], abs=1e-15
    )
    assert [share("decay", epoch=e) for e in range(7)] == [1, 1, 1, 1, 0.5, 0.25, 0.125]
    assert share("plateau", plateau=0.25) == 0.25


def sgd(w, gradient, state, step, rate, decay):
    return w - rate * (gradient + decay * w)


def adam(w, gradient, state, step, rate, decay):
    gradient = gradient + decay * w
    return w - rate * adam_direction(gradient, state, step)


def adamw(w, gradient, state, step, rate, decay):
    return w * (1 - rate * decay) - rate * adam_direction(gradient, state, step)


def adam_direction(gradient, state, step):
    """Kingma & Ba 2015, algorithm 1."""
    state["m"] = 0.9 * state.get("m", 0) + 0.1 * gradient
    state["v"] = 0.999 * state.get("v", 0) + 0.001 * gradient**2
    return (state["m"] / (1 - 0.9**step)) / ((state["v"] / (1 - 0.999**step)).sqrt() + 1e-8)


def adagrad(w, gradient, state, step, rate, decay):
    """Duchi et al. 2011, with the diagonal alone."""
    gradient = gradient + decay * w
    state["sum"] = state.get("sum", 0) + gradient**2
    return w - rate * gradient / (state["sum"].sqrt() + 1e-10)


@pytest.mark.parametrize("rule", [sgd, adam, adamw, adagrad])
def test_the_optimisers_are_those_of_the_papers(rule):
    generator = torch.Generator().manual_seed(5)
    weight = torch.nn.Parameter(torch.randn(4, 3, generator=generator, dtype=torch.float64))
    expected, state = weight.detach().clone(), {}
    settings = TrainSettings(optimizer=rule.__name__, learning_rate=0.1, weight_decay=0.01)
    optimizer = OPTIMIZERS[settings.optimizer]([weight], settings)
    for step in range(1, 6):
        weight.grad = torch.randn(4, 3, generator=generator, dtype=torch.float64)
        expected = rule(expected, weight.grad, state, step, 0.1, 0.01)
        optimizer.step()
    torch.testing.assert_close(weight.detach(), expected, rtol=1e-12, atol=1e-14)


def test_a_gradient_of_some_rows_moves_them_as_one_of_all_rows_would():
    generator = torch.Generator().manual_seed(5)
    first = torch.randn(6, 3, generator=generator)
    weights = [torch.nn.Parameter(first.clone()) for _ in range(2)]
    settings = TrainSettings(optimizer="adagrad", learning_rate=0.1)
    optimizers = [OPTIMIZERS["adagrad"]([weight], settings) for weight in weights]
    for rows in ([0, 2, 5], [2, 2, 3], [1]):
        values = torch.randn(len(rows), 3, generator=generator)
        some = torch.sparse_coo_tensor(
            torch.tensor([rows]), values, (6, 3), check_invariants=True, is_coalesced=False
        )
        gradients = [some, some.to_dense()]
        assert global_norm(gradients[:1]) == pytest.approx(global_norm(gradients[1:]), rel=1e-6)
        norms = [clip_gradients([gradient], 0.5) for gradient in gradients]
        assert norms[0] == pytest.approx(norms[1], rel=1e-6)
        for weight, optimizer, gradient in zip(weights, optimizers, gradients, strict=True):
            weight.grad = gradient
            optimizer.step()
    torch.testing.assert_close(weights[0].detach(), weights[1].detach(), rtol=1e-6, atol=1e-7)
    assert torch.equal(weights[0][4], first[4])
