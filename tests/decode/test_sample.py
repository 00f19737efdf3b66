import math
from itertools import islice

import pytest
import torch

from unrolled.decode.sample import Sampling, sample
from unrolled.errors import ConfigError, NumericError

pytestmark = pytest.mark.arithmetic


class Bigrams:
    """A Stepper over a table: the next token depends on the last one alone."""

    def __init__(self, table):
        self.log_p = table.log()

    def step(self, token, state):
        return self.log_p[token], state + 1

    def select(self, state, rows):
        return state[rows]


TABLE = torch.tensor([[0.1, 0.2, 0.3, 0.4], [0.7, 0.1, 0.1, 0.1], [0.25] * 4, [0.0, 0.5, 0.5, 0.0]])


def draw(count, start=0, seed=1, **settings):
    """`count` next tokens after `start`, each drawn in a row of its own."""
    generator = torch.Generator().manual_seed(seed)
    rows = torch.full((count,), start)
    drawn = sample(
        Bigrams(TABLE),
        torch.zeros(count),
        rows,
        sampling=Sampling(**settings),
        generator=generator,
    )
    return next(drawn)


def chi_squared(drawn, probabilities):
    observed = torch.bincount(drawn, minlength=len(probabilities)).double()
    expected = torch.as_tensor(probabilities, dtype=torch.float64) * len(drawn)
    seen = expected > 0
    assert observed[~seen].sum() == 0
    return float(((observed - expected)[seen] ** 2 / expected[seen]).sum())


@pytest.mark.parametrize("start", range(4))
def test_frequencies_match_probabilities(start):
    assert chi_squared(draw(20_000, start), TABLE[start]) < 11.34  # p > 0.01 at 3 degrees


def test_frequencies_follow_the_temperature():
    sharper = TABLE[0] ** 2 / (TABLE[0] ** 2).sum()
    assert chi_squared(draw(20_000, temperature=0.5), sharper) < 11.34
    assert chi_squared(draw(20_000, temperature=0.5), TABLE[0]) > 100  # the test can fail


def test_top_k_keeps_the_likeliest_and_their_ratios():
    assert chi_squared(draw(20_000, top_k=2), [0, 0, 3 / 7, 4 / 7]) < 6.63


def test_top_p_keeps_the_smallest_set_that_holds_the_share():
    assert chi_squared(draw(20_000, top_p=0.69), [0, 0, 3 / 7, 4 / 7]) < 6.63
    assert chi_squared(draw(20_000, top_p=0.71), [0, 2 / 9, 3 / 9, 4 / 9]) < 9.21
    assert set(draw(100, top_p=1e-9).tolist()) == {3}


def test_banned_tokens_are_never_drawn():
    assert chi_squared(draw(20_000, banned=(3, 0)), [0, 0.4, 0.6, 0]) < 6.63


@pytest.mark.row("I2")
def test_no_temperature_is_argmax_and_a_low_one_tends_to_it():
    assert set(draw(50, temperature=0.0).tolist()) == {3}
    assert set(draw(2000, temperature=0.02).tolist()) == {3}


def test_a_seed_fixes_the_text():
    assert draw(50, seed=3).tolist() == draw(50, seed=3).tolist()
    assert draw(50, seed=3).tolist() != draw(50, seed=4).tolist()


def test_what_is_drawn_is_fed_back():
    model = Bigrams(torch.eye(4).roll(1, dims=1).clamp(min=1e-30))  # 0 -> 1 -> 2 -> 3 -> 0
    drawn = sample(model, torch.zeros(1), torch.tensor([0]), sampling=Sampling())
    assert [int(token) for token in islice(drawn, 6)] == [1, 2, 3, 0, 1, 2]


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"temperature": -0.5}, "temperature is -0.5, but must be 0 or in 0.0001..10000"),
        ({"temperature": math.nan}, "temperature is nan, but must be 0 or in 0.0001..10000"),
        ({"top_k": 0}, "top_k is 0, but must be at least 1"),
        ({"top_p": 0.0}, r"top_p is 0.0, but must be in \(0, 1\]"),
        ({"top_p": 1.5}, r"top_p is 1.5, but must be in \(0, 1\]"),
    ],
)
def test_wrong_settings_are_refused(settings, message):
    with pytest.raises(ConfigError, match=message):
        Sampling(**settings)


@pytest.mark.parametrize(
    ("log_p", "message"),
    [
        (math.nan, "a log-probability that is not a number"),
        (-math.inf, "No token has a chance to come next, so nothing can be drawn"),
    ],
)
def test_nothing_is_drawn_from_what_is_no_distribution(log_p, message):
    rows = torch.tensor([[0.0, -1.0], [log_p, log_p]])
    with pytest.raises(NumericError, match=message):
        Sampling().draw(rows, None)
