import math

import pytest
import torch
from toy_steppers import Hashed, Listed, assert_same, brute_force, plain, started

from unrolled.decode.exhaustive import exhaustive
from unrolled.errors import ConfigError

pytestmark = pytest.mark.arithmetic


@pytest.mark.row("M2")
@pytest.mark.parametrize("alpha", [0.0, 0.7, 1.0])
@pytest.mark.parametrize(("V", "T"), [(1, 3), (2, 1), (2, 6), (3, 4), (5, 3), (4, 5)])
def test_it_finds_what_trying_each_sequence_by_itself_finds(V, T, alpha):
    model = Hashed(V, seed=V + T)
    found = exhaustive(model, *started(model, [3]), end=0, limit=T, alpha=alpha)
    assert_same(plain(found), brute_force(model, 3, limit=T, alpha=alpha))
    assert len(found) == sum((V - 1) ** t for t in range(T)) + (V - 1) ** T
    assert sum(math.exp(each.log_probability) for each in found) == pytest.approx(1.0, rel=1e-12)


def test_the_nbest_are_the_first_of_all():
    model = Hashed(3, seed=1)
    everything = exhaustive(model, *started(model, [3]), end=0, limit=4)
    assert exhaustive(model, *started(model, [3]), end=0, limit=4, nbest=5) == everything[:5]


def test_impossible_sequences_are_left_out():
    model = Listed({(): {0: 0.25, 2: 0.75}, (2,): {0: 0.5, 1: 0.5}}, V=4)
    found = exhaustive(model, [()], torch.tensor([3]), end=0, limit=5)
    assert [(each.tokens, math.exp(each.log_probability)) for each in found] == [
        ([2], 0.375),
        ([2, 1], 0.375),
        ([], 0.25),
    ]
    found = exhaustive(model, [()], torch.tensor([3]), end=0, limit=5, banned=(1, 0))
    assert found == []


@pytest.mark.parametrize(
    ("V", "options", "message"),
    [
        (11, {"limit": 6}, r"There are 11\^6 sequences of 6 out of 11 tokens, but at most 1000000"),
        (11, {"limit": 6}, "Lower the limit, or use beam search"),
        (3, {"limit": 0}, "limit is 0, but must be at least 1: END counts as a token"),
        (3, {"limit": 3, "alpha": -1.0}, "alpha is -1.0, but must be a number in 0..10"),
    ],
)
def test_wrong_settings_are_refused(V, options, message):
    model = Hashed(V, seed=0)
    with pytest.raises(ConfigError, match=message):
        exhaustive(model, *started(model, [1]), end=0, **options)
