import pytest
import torch

from unrolled.errors import ConfigError
from unrolled.nn import POOLS, GRUCell, Recurrent, pool

LENGTHS = torch.tensor([4, 1, 3])


def batch():
    torch.manual_seed(0)
    y = torch.randn(3, 4, 5, dtype=torch.float64)
    y[1, 1:] = torch.nan
    y[2, 3:] = torch.inf
    return y.requires_grad_()


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
