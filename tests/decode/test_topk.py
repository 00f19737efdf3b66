import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from unrolled.decode.topk import best_candidates, first_largest, likeliest
from unrolled.errors import NumericError

pytestmark = pytest.mark.arithmetic


def sorted_candidates(log_p, before, count):
    """All sums in a stable order: (index, sum) of the best, for each row."""
    total = (log_p.view(*before.shape, -1) + before[:, :, None]).flatten(1)
    values, places = total.sort(dim=1, descending=True, stable=True)
    return places[:, :count], values[:, :count]


def assert_best(log_p, before, count):
    parents, tokens, own = best_candidates(log_p, before, count)
    places, values = sorted_candidates(log_p, before, count)
    assert torch.equal(own + before.gather(1, parents), values)
    real = values > -math.inf  # which of the impossible ones fill up the row is all the same
    assert torch.equal((parents * log_p.size(1) + tokens)[real], places[real])
    rows = torch.arange(len(before))[:, None] * before.size(1) + parents
    assert torch.equal(log_p[rows, tokens][real], own[real])
    assert tokens.max() < log_p.size(1)


@pytest.mark.parametrize("V", [1, 2, 63, 64, 65, 128, 130, 1000])
@pytest.mark.parametrize("K", [1, 3, 7])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_the_best_of_random_candidates_equal_a_full_sort(V, K, dtype):
    torch.manual_seed(V + K)
    log_p = torch.randn(4 * K, V, dtype=dtype)
    for count in {1, min(K, V), min(2 * K, K * V), min(40, K * V)}:
        assert_best(log_p, torch.randn(4, K, dtype=dtype), count)


@given(
    V=st.integers(1, 200),
    K=st.integers(1, 6),
    values=st.integers(1, 5),
    impossible=st.floats(0, 1),
    seed=st.integers(0, 2**31),
)
def test_equal_and_impossible_candidates_come_in_the_order_of_their_index(
    V, K, values, impossible, seed
):
    generator = torch.Generator().manual_seed(seed)
    log_p = -torch.randint(values, (3 * K, V), generator=generator).double()
    log_p[torch.rand(3 * K, V, generator=generator) < impossible] = -math.inf
    before = -torch.randint(values, (3, K), generator=generator).double()
    before[:, 1:][torch.rand(3, K - 1, generator=generator) < 0.3] = -math.inf
    assert_best(log_p, before, min(2 * K, K * V))


def test_first_largest_takes_the_first_of_equal_ones():
    values = torch.tensor([[1.0, 3, 2, 3, 2, 2], [0, 0, 0, 0, 0, 0], [-math.inf] * 5 + [1]])
    assert first_largest(values, 3).tolist() == [[1, 2, 3], [0, 1, 2], [0, 1, 5]]


def test_a_model_that_gives_no_number_is_an_error():
    log_p = torch.zeros(2, 100)
    log_p[1, 99] = math.nan
    with pytest.raises(NumericError, match=r"not a number, but only numbers.*train it again"):
        best_candidates(log_p, torch.zeros(1, 2), 2)


@pytest.mark.parametrize("V", [1, 5, 63, 64, 65, 128, 1000])
def test_the_likeliest_is_argmax_ties_and_impossible_tokens_included(V):
    torch.manual_seed(V)
    for log_p in (
        torch.randn(40, V),
        torch.randint(3, (40, V)).float(),
        torch.randn(40, V).masked_fill(torch.rand(40, V) < 0.9, -torch.inf),
        torch.full((3, V), -torch.inf),
    ):
        first = [row.index(max(row)) for row in log_p.tolist()]
        assert likeliest(log_p).tolist() == first
