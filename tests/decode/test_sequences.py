import math
from collections import Counter

import pytest
import torch
from scipy.stats import chisquare
from toy_steppers import Hashed, Listed, Steady, started

from unrolled.decode.exhaustive import exhaustive
from unrolled.decode.hypothesis import Hypothesis
from unrolled.decode.sample import Sampling
from unrolled.decode.sequences import greedy, sample_sequences
from unrolled.errors import ConfigError, NumericError

pytestmark = pytest.mark.arithmetic


class Counting(Hashed):
    """Counts the rows that it is asked for."""

    rows = ()

    def step(self, token, state):
        self.rows = (*self.rows, len(token))
        return super().step(token, state)


def by_hand(model, source, limit, banned=()):
    """Greedy search, one list and one max at a time."""
    tokens = []
    while len(tokens) < limit:
        log_p = model.log_p_after(source, tokens)
        allowed = [v for v in range(model.V) if v not in banned]
        tokens.append(max(allowed, key=lambda v: log_p[v]))
        if tokens[-1] == 0:
            return tokens[:-1], True
    return tokens, False


@pytest.mark.parametrize("banned", [(), (2,), (0,)])
def test_greedy_takes_the_likeliest_token_each_time(banned):
    model = Hashed(6, seed=1)
    state, first = started(model, range(40))
    limits = torch.arange(40) % 7 + 1
    found = greedy(model, state, first, end=0, limits=limits, banned=banned, alpha=0.7)
    for source, (limit, each) in enumerate(zip(limits.tolist(), found, strict=True)):
        tokens, finished = by_hand(model, source, limit, banned)
        assert (each.tokens, each.finished) == (tokens, finished)
        whole = [*tokens, 0] if finished else tokens
        assert each.log_probability == pytest.approx(model.forced(source, whole), rel=1e-14)
        assert each.score == each.log_probability / len(whole) ** 0.7
    assert {each.finished for each in found} == ({False} if 0 in banned else {True, False})


def test_rows_that_ended_cost_nothing_more():
    model = Counting(5, seed=2)
    state, first = started(model, range(30))
    found = greedy(model, state, first, end=0, limits=torch.full((30,), 50))
    lengths = [len(each.tokens) + each.finished for each in found]
    assert model.rows == tuple(sum(n > t for n in lengths) for t in range(max(lengths)))


def test_each_row_alone_gives_what_it_gives_among_others():
    model = Hashed(5, seed=3)
    state, first = started(model, range(20))
    limits = torch.arange(20) % 9 + 1
    together = greedy(model, state, first, end=0, limits=limits)
    alone = [greedy(model, state[[i]], first[:1], end=0, limits=limits[[i]])[0] for i in range(20)]
    assert together == alone


@pytest.mark.row("M10")
def test_draws_follow_the_distribution_over_sequences():
    model = Hashed(3, seed=4, sharpness=0.7)
    state, first = started(model, [5])
    chances = {
        (*found.tokens, found.finished): math.exp(found.log_probability)
        for found in exhaustive(model, state, first, end=0, limit=3)
    }
    N = 20_000
    drawn = sample_sequences(
        model,
        state.repeat(N),
        first.repeat(N),
        end=0,
        limits=torch.full((N,), 3),
        sampling=Sampling(),
        generator=torch.Generator().manual_seed(1),
    )
    seen = Counter((*found.tokens, found.finished) for found in drawn)
    assert {*seen} <= {*chances}
    assert (
        chisquare([seen[key] for key in chances], [N * p for p in chances.values()]).pvalue > 0.01
    )
    other = [*chances.values()][1:] + [*chances.values()][:1]  # the test can fail
    assert chisquare([seen[key] for key in chances], [N * p for p in other]).pvalue < 1e-9
    for found in drawn[:50]:
        whole = [*found.tokens, 0] if found.finished else found.tokens
        assert found.log_probability == pytest.approx(model.forced(5, whole), rel=1e-14)


def test_a_seed_fixes_what_is_drawn_and_banned_tokens_are_not():
    model = Hashed(6, seed=5)
    state, first = started(model, range(50))

    def draw(seed):
        return sample_sequences(
            model,
            state,
            first,
            end=0,
            limits=torch.full((50,), 8),
            sampling=Sampling(temperature=1.5, banned=(1, 4)),
            generator=torch.Generator().manual_seed(seed),
        )

    assert draw(1) == draw(1) != draw(2)
    assert {token for found in draw(1) for token in found.tokens} == {2, 3, 5}


@pytest.mark.row("M7")
def test_a_long_sequence_has_a_finite_score_where_the_product_is_zero():
    (found,) = greedy(
        Steady(50, 10_000, torch.float32),
        torch.zeros(1, dtype=torch.long),
        torch.tensor([1]),
        end=0,
        limits=torch.tensor([10_000]),
        alpha=1.0,
    )
    assert (len(found.tokens), found.finished) == (9999, True)
    assert found.log_probability == pytest.approx(-9999 * math.log(49), rel=1e-7)
    assert math.exp(found.log_probability) == 0.0
    assert found.score == pytest.approx(found.log_probability / 10_000)


@pytest.mark.parametrize("banned", [(2,), (0, 2)])
def test_a_dead_end_is_an_empty_hypothesis_without_probability(banned):
    after_1 = {2: 1.0} if banned == (2,) else {0: 0.5, 2: 0.5}
    model = Listed({(): {1: 1.0}, (1,): after_1}, V=4)
    given = {"end": 0, "limits": torch.tensor([5]), "banned": banned}
    (found,) = greedy(model, [()], torch.tensor([3]), **given)
    assert found == Hypothesis([], -math.inf, -math.inf, finished=False)


def test_no_rows_give_no_hypotheses():
    nothing = torch.zeros(0, dtype=torch.long)
    assert greedy(Hashed(3, seed=0), nothing, nothing, end=0, limits=nothing) == []


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"limits": [3, 0]}, "limits has 0 in it, but must be at least 1 everywhere.*Leave out"),
        ({"alpha": -0.5}, "alpha is -0.5, but must be a number in 0..10.*0 compares sums"),
        ({"alpha": math.inf}, "alpha is inf, but must be a number in"),
    ],
)
def test_wrong_settings_are_refused(settings, message):
    model = Hashed(3, seed=0)
    settings = {"limits": [3, 3], **settings}
    settings["limits"] = torch.tensor(settings["limits"])
    with pytest.raises(ConfigError, match=message):
        greedy(model, *started(model, [1, 2]), end=0, **settings)


def test_a_model_that_gives_no_number_is_an_error():
    model = Hashed(3, seed=0)
    model.table[:] = math.nan
    with pytest.raises(NumericError, match=r"not a number, but only numbers.*train it again"):
        greedy(model, *started(model, [1]), end=0, limits=torch.tensor([3]))
