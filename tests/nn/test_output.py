import pytest
import torch
from kernel_checks import SETS, instructions, needs_kernels, threads
from networks import numeric_gradient, relative_error
from torch.nn import functional

from unrolled.nn import kernels
from unrolled.nn.output import (
    _softmax_cross_entropy_,
    begin_with_shares,
    summed_nats,
    token_nats,
)

pytestmark = pytest.mark.arithmetic


def inputs(N, V, H, *, scale=1.0, dtype=torch.float64):
    generator = torch.Generator().manual_seed(0)
    hidden, weight, bias = (
        (torch.randn(shape, generator=generator, dtype=dtype) * scale).requires_grad_()
        for shape in [(N, H), (V, H), (V,)]
    )
    return hidden, weight, bias, torch.randint(V, (N,), generator=generator)


@pytest.mark.parametrize(("N", "V", "H"), [(1, 1, 1), (1, 7, 3), (5, 2, 4), (33, 65, 9)])
@pytest.mark.parametrize("upstream", [1.0, -0.37])
def test_value_and_gradients_equal_torch(N, V, H, upstream):
    hidden, weight, bias, targets = inputs(N, V, H)
    ours = summed_nats(hidden, weight, bias, targets)
    theirs = functional.cross_entropy(hidden @ weight.t() + bias, targets, reduction="sum")
    torch.testing.assert_close(ours, theirs, rtol=1e-13, atol=1e-13)
    got = torch.autograd.grad(ours * upstream, [hidden, weight, bias])
    expected = torch.autograd.grad(theirs * upstream, [hidden, weight, bias])
    for g, e in zip(got, expected, strict=True):
        torch.testing.assert_close(g, e, rtol=1e-12, atol=1e-13)


@pytest.mark.row("F5", "F6")
def test_gradients_equal_finite_differences():
    hidden, weight, bias, targets = inputs(4, 6, 3)
    assert torch.autograd.gradcheck(
        lambda h, w, b: summed_nats(h, w, b, targets), (hidden, weight, bias), atol=1e-7, rtol=1e-6
    )


@pytest.mark.row("F3")
def test_uniform_logits_cost_log_v():
    nats = summed_nats(torch.zeros(3, 2), torch.zeros(10, 2), torch.zeros(10), torch.arange(3))
    torch.testing.assert_close(nats, 3 * torch.tensor(10.0).log())


@pytest.mark.row("D19")
@pytest.mark.parametrize("scale", [1e3, 1e4])
def test_huge_logits_stay_finite(scale):
    hidden, weight, bias, targets = inputs(8, 5, 3, scale=scale, dtype=torch.float32)
    total = summed_nats(hidden, weight, bias, targets)
    assert total.isfinite()
    assert all(g.isfinite().all() for g in torch.autograd.grad(total, [hidden, weight, bias]))


def test_token_nats_sum_to_summed_nats_over_block_edges():
    hidden, weight, bias, targets = inputs(600, 11, 3)
    nats = token_nats(hidden, weight, bias, targets)
    assert nats.shape == (600,)
    expected = summed_nats(hidden, weight, bias, targets).detach()
    torch.testing.assert_close(nats.sum(), expected, rtol=1e-12, atol=0)
    torch.testing.assert_close(
        nats,
        functional.cross_entropy(hidden @ weight.t() + bias, targets, reduction="none").detach(),
        rtol=1e-12,
        atol=1e-12,
    )


def test_no_rows_cost_nothing():
    hidden, weight, bias, targets = inputs(0, 5, 3)
    assert token_nats(hidden, weight, bias, targets).shape == (0,)
    assert summed_nats(hidden, weight, bias, targets) == 0.0


def chances(z):
    """softmax(z) as the output layer has it: of each token from its nats, one a row."""
    V = len(z)
    rows, nothing = z.expand(V, V), z.new_zeros(V)
    return (-token_nats(rows, torch.eye(V, dtype=z.dtype), nothing, torch.arange(V))).exp()


@pytest.mark.row("F4")
@pytest.mark.parametrize("way", [pytest.param("kernel", marks=needs_kernels), "torch"])
def test_softmax_jacobian_rows_sum_to_zero_and_equal_formula_and_differences(way, monkeypatch):
    """∂ŷ_k/∂z_l = −ŷ_k ∂nats_k/∂z_l = ŷ_k (δ_kl − ŷ_l), from the layer's own gradients."""
    if way == "torch":
        monkeypatch.setattr(kernels, "can_take", lambda *_: False)
    z, V = 2 * torch.randn(5, dtype=torch.float64), 5
    hidden = z.repeat(V, 1).requires_grad_()
    identity = torch.eye(V, dtype=torch.float64)
    summed_nats(hidden, identity, torch.zeros_like(z), torch.arange(V)).backward()
    p = z.exp() / z.exp().sum()
    torch.testing.assert_close(chances(z), p, rtol=1e-13, atol=0)
    jacobian = -chances(z)[:, None] * hidden.grad
    torch.testing.assert_close(jacobian, torch.diag(p) - torch.outer(p, p), rtol=0, atol=1e-14)
    assert jacobian.sum(dim=1).abs().max() < 1e-14
    for k in range(V):
        numeric = numeric_gradient(lambda k=k: chances(z)[k], z)
        assert relative_error(jacobian[k], numeric) < 1e-8


@pytest.mark.parametrize("smoothing", [0.1, 0.5])
def test_smoothed_value_and_gradients_equal_torch(smoothing):
    hidden, weight, bias, targets = inputs(33, 65, 9)
    ours = summed_nats(hidden, weight, bias, targets, smoothing=smoothing)
    theirs = functional.cross_entropy(
        hidden @ weight.t() + bias, targets, reduction="sum", label_smoothing=smoothing
    )
    torch.testing.assert_close(ours, theirs, rtol=1e-12, atol=1e-12)
    got = torch.autograd.grad(-0.37 * ours, [hidden, weight, bias])
    expected = torch.autograd.grad(-0.37 * theirs, [hidden, weight, bias])
    for g, e in zip(got, expected, strict=True):
        torch.testing.assert_close(g, e, rtol=1e-11, atol=1e-12)


def scores(N, V, dtype):
    generator = torch.Generator().manual_seed(V)
    z = 4 * torch.randn(N, V, generator=generator, dtype=dtype)
    return z, torch.randn(V, generator=generator, dtype=dtype), torch.randint(V, (N,))


@needs_kernels
@pytest.mark.parametrize("V", [1, 3, 16, 17, 63, 64, 65, 1000])
@pytest.mark.parametrize("smoothing", [0.0, 0.1])
@pytest.mark.parametrize(("dtype", "rounding"), [(torch.float32, 3e-6), (torch.float64, 5e-15)])
def test_the_kernels_soften_as_torch_does(V, smoothing, dtype, rounding):
    z, bias, targets = scores(5, V, dtype)
    gradient = z.double().clone()
    expected = _softmax_cross_entropy_(gradient, bias.double(), targets, smoothing)
    for name in SETS:
        with instructions(name):
            mine = z.clone()
            nats = kernels.softmax_cross_entropy_(mine, bias, targets, smoothing)
        assert (mine - gradient).abs().max() < rounding
        assert ((nats - expected).abs() / (1 + expected)).max() < rounding


@needs_kernels
def test_softened_rows_have_the_same_bits_for_any_number_of_threads():
    z, bias, targets = scores(9, 77, torch.float32)
    alone = [z[row : row + 1].clone() for row in range(9)]
    nats = [
        kernels.softmax_cross_entropy_(a, bias, targets[row : row + 1], 0.1)
        for row, a in enumerate(alone)
    ]
    for count in (1, 2, 3):
        with threads(count):
            mine = z.clone()
            assert torch.equal(
                kernels.softmax_cross_entropy_(mine, bias, targets, 0.1), torch.cat(nats)
            )
        assert torch.equal(mine, torch.cat(alone))


@needs_kernels
@pytest.mark.parametrize("wrong", [-1, 7])
def test_a_target_beyond_the_scores_is_refused(wrong):
    hidden, weight, bias, _ = inputs(2, 7, 3)
    with pytest.raises(IndexError, match=r"0\.\.6"):
        summed_nats(hidden, weight, bias, torch.tensor([1, wrong]))


@needs_kernels
@pytest.mark.parametrize("wrong", [float("nan"), float("inf")])
def test_scores_that_are_no_numbers_show(wrong):
    for place in (0, 20, 63):
        z, bias, targets = scores(1, 64, torch.float32)
        z[0, place] = wrong
        assert not kernels.softmax_cross_entropy_(z, bias, targets, 0.0).isfinite()


def test_a_softmax_begins_with_the_shares_of_its_tokens():
    counts, bias = [0, 3, 5], torch.zeros(3)
    begin_with_shares(bias, counts)
    torch.testing.assert_close(bias.softmax(0), torch.tensor([1.0, 4.0, 6.0]) / 11.0)
