"""When a search stops, against all sequences that there are."""

import itertools

import pytest
import torch
from toy_steppers import Hashed, Listed, started

from unrolled.decode.beam import beam_search
from unrolled.decode.exhaustive import exhaustive

pytestmark = pytest.mark.arithmetic


def search(model, limit, **options):
    """The best of sentence 2, and the steps that it took."""
    steps = []
    state, first = started(model, [2])
    limits = torch.tensor([limit])
    found = beam_search(model, state, first, end=0, limits=limits, watch=steps.append, **options)
    return found[0], steps


def left_open(steps):
    """The token rows of the hypotheses that are open after these steps."""
    rows = [()]
    for step in steps:
        parents, tokens = step.parents[0, : step.width], step.tokens[0, : step.width]
        kept = zip(parents, tokens, step.log_p[0, : step.width], strict=True)
        rows = [(*rows[p], int(t)) if log_p > -torch.inf else None for p, t, log_p in kept]
        ended = [row is None or row[-1] == 0 for row in rows]
    return [row for row, over in zip(rows, ended, strict=True) if not over]


def completions(prefix, V, limit):
    """All ways to go on from a prefix and to end within the limit."""
    for more in range(limit - len(prefix)):
        for tokens in itertools.product(range(1, V), repeat=more):
            yield (*prefix, *tokens, 0)


@pytest.mark.row("M4")
@pytest.mark.parametrize("seed", range(25))
@pytest.mark.parametrize("alpha", [0.0, 0.7, 1.0])
def test_when_it_stops_nothing_that_is_open_can_win(seed, alpha):
    V, limit = 4, 6
    model = Hashed(V, seed, end_bias=1.0)
    (best,), steps = search(model, limit, width=3, alpha=alpha, stop="best")
    for prefix in left_open(steps):
        for tokens in completions(prefix, V, limit):
            assert model.forced(2, tokens) / len(tokens) ** alpha <= best.score + 1e-9
    assert len(steps) <= limit


@pytest.mark.row("M4")
@pytest.mark.parametrize("seed", range(25))
@pytest.mark.parametrize("alpha", [0.0, 0.7, 1.0])
def test_a_search_that_prunes_nothing_stops_with_the_best_there_is(seed, alpha):
    V, limit = 3, 5
    model = Hashed(V, seed, end_bias=0.5)
    (best,), steps = search(model, limit, width=V**limit, alpha=alpha, stop="best")
    state, first = started(model, [2])
    truth = exhaustive(model, state, first, end=0, limit=limit, alpha=alpha)[0]
    assert best.tokens == truth.tokens
    assert best.score == pytest.approx(truth.score, rel=1e-12)
    assert len(steps) <= limit


@pytest.mark.row("M4")
def test_it_waits_for_as_long_as_the_last_place_can_be_won_and_no_longer():
    """One ends at once; the other is sure from its second token on, so worth log ½ / 6 at last."""
    chances = {(): {0: 0.5, 1: 0.5}, **{(1,) * n: {1: 1.0} for n in range(1, 5)}}
    chances[(1,) * 5] = {0: 1.0}
    model = Listed(chances, V=3)

    def found(limit):
        steps = []
        ((best,),) = beam_search(
            model,
            [()],
            torch.tensor([2]),
            end=0,
            limits=torch.tensor([limit]),
            width=2,
            alpha=1.0,
            stop="best",
            watch=steps.append,
        )
        return best.tokens, len(steps)

    assert found(6) == ([1] * 5, 6)
    assert found(5) == ([], 5)  # it could not know that there is no end in time
    sure = Listed({(): {0: 0.9, 1: 0.1}, (1,): {0: 0.01, 1: 0.99}}, V=3)
    steps = []
    beam_search(
        sure,
        [()],
        torch.tensor([2]),
        end=0,
        limits=torch.tensor([9]),
        width=2,
        alpha=1.0,
        stop="best",
        watch=steps.append,
    )
    # log 0.1 / 9 = −0.256 < log 0.9 = −0.105: be it ever so long, it cannot win
    assert len(steps) == 1
