import pytest
import torch

from unrolled.errors import ConfigError
from unrolled.nn import POOLS, GRUCell, Recurrent, pool
from unrolled.nn.pooling import AttentionPooling

pytestmark = pytest.mark.arithmetic

LENGTHS = torch.tensor([4, 1, 3])


def batch():
    torch.manual_seed(0)
    y = torch.randn(3, 4, 5, dtype=torch.float64)
    y[1, 1:] = torch.nan
    y[2, 3:] = torch.inf
    return y.requires_grad_()


@pytest.mark.row("E-i")
@pytest.mark.parametrize("how", POOLS)
def test_a_ragged_batch_equals_its_rows_one_by_one(how):
    y = batch()
    pooled = pool(y, LENGTHS, how=how)
    upstream = torch.randn_like(pooled)
    (together,) = torch.autograd.grad(pooled, y, upstream)
    for row, length in enumerate(LENGTHS.tolist()):
        alone = y[row : row + 1, :length].detach().requires_grad_()
        one = pool(alone, how=how)
        torch.testing.assert_close(one[0], pooled[row])
        (gradient,) = torch.autograd.grad(one, alone, upstream[row : row + 1])
        torch.testing.assert_close(gradient[0], together[row, :length])
        assert (together[row, length:] == 0).all()


def test_the_three_ways_on_numbers():
    y = torch.tensor([[[1.0, 5.0], [3.0, 2.0], [9.0, 9.0]]])
    lengths = torch.tensor([2])
    assert pool(y, lengths, how="last").tolist() == [[3.0, 2.0]]
    assert pool(y, lengths, how="mean").tolist() == [[2.0, 3.5]]
    assert pool(y, lengths, how="max").tolist() == [[3.0, 5.0]]


@pytest.mark.row("E-i")
def test_the_gradient_of_the_maximum_goes_to_its_place_alone():
    y = torch.tensor([[[1.0], [3.0], [2.0]]], requires_grad=True)
    pool(y, how="max").sum().backward()
    assert y.grad.flatten().tolist() == [0.0, 1.0, 0.0]


def test_last_is_the_last_state():
    stack = Recurrent(5, 6, cell=GRUCell())
    y, (h,) = stack(torch.randn(3, 4, 5), LENGTHS)
    assert torch.equal(pool(y, LENGTHS), h[-1])


def test_an_unknown_way_is_refused():
    with pytest.raises(ConfigError, match=r"pooling is 'men', but .*Did you mean 'mean'\?"):
        pool(torch.zeros(1, 1, 1), how="men")


def attention():
    torch.manual_seed(1)
    return AttentionPooling(5).double()


def test_attention_weights_sum_to_one_and_are_nothing_in_the_padding():
    _, weights = attention()(batch(), LENGTHS)
    torch.testing.assert_close(weights.sum(dim=1), torch.ones(3, dtype=torch.float64))
    for row, length in enumerate(LENGTHS.tolist()):
        assert (weights[row, length:] == 0.0).all()
        assert (weights[row, :length] > 0.0).all()


def test_attention_equals_its_equations():
    pooling, y = attention(), batch().detach()
    pooled, weights = pooling(y, LENGTHS)
    for row, length in enumerate(LENGTHS.tolist()):
        steps = y[row, :length]
        scores = torch.stack(
            [torch.tanh(pooling.weight @ step + pooling.bias) @ pooling.query for step in steps]
        )
        expected = scores.exp() / scores.exp().sum()
        torch.testing.assert_close(weights[row, :length], expected)
        torch.testing.assert_close(pooled[row], (expected[:, None] * steps).sum(dim=0))


def test_a_ragged_batch_has_the_attention_of_its_rows_one_by_one():
    pooling, y = attention(), batch()
    pooled, weights = pooling(y, LENGTHS)
    up, up_weights = torch.randn_like(pooled), torch.randn_like(weights)
    (together,) = torch.autograd.grad([pooled, weights], y, [up, up_weights])
    for row, length in enumerate(LENGTHS.tolist()):
        alone = y[row : row + 1, :length].detach().requires_grad_()
        one = pooling(alone, LENGTHS[row : row + 1])
        torch.testing.assert_close(one[0][0], pooled[row])
        ups = [up[row : row + 1], up_weights[row : row + 1, :length]]
        (gradient,) = torch.autograd.grad(one, alone, ups)
        torch.testing.assert_close(gradient[0], together[row, :length])
        assert (together[row, length:] == 0).all()


def test_the_gradients_of_attention_equal_differences():
    pooling = attention()
    y = torch.randn(2, 3, 5, dtype=torch.float64, requires_grad=True)
    lengths = torch.tensor([3, 2])
    parameters = [pooling.weight, pooling.bias, pooling.query]

    def run(y, *_):
        return pooling(y, lengths)

    assert torch.autograd.gradcheck(run, (y, *parameters))
