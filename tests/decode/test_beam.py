import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from ngrams import counted, random_lines
from toy_steppers import Hashed, Listed, Steady, assert_same, plain, reference_beam, started

from unrolled.decode.beam import beam_search
from unrolled.decode.exhaustive import exhaustive
from unrolled.decode.hypothesis import Hypothesis
from unrolled.decode.sequences import greedy
from unrolled.errors import ConfigError
from unrolled.tasks.shared.language_model import CONTROL
from unrolled.tasks.translate.search import DEFAULT
from unrolled.tasks.translate.settings import SearchOptions
from unrolled.text.tokens import END

pytestmark = [pytest.mark.arithmetic, pytest.mark.slow]

ALPHAS = (0.0, 0.7, 1.0)
STOPS = ("best", "count", "limit")  # those that the book has


def search(model, sources, limits, **options):
    state, first = started(model, sources)
    return beam_search(model, state, first, end=0, limits=torch.as_tensor(limits), **options)


class Watched(Hashed):
    """Checks that rows stay in their sentences, and notes how many candidates it was asked for."""

    def __init__(self, V, seed, width):
        super().__init__(V, seed)
        self.width, self.expanded = width, []

    def step(self, token, state):
        sentence, numbers = state
        assert (sentence.view(-1, self.width) == sentence[:: self.width, None]).all()
        assert (sentence[:: self.width].diff() > 0).all()
        log_p, numbers = super().step(token, numbers)
        self.expanded.append(log_p.numel())
        return log_p, (sentence, numbers)

    def select(self, state, rows):
        return state[0][rows], state[1][rows]


# ------------------------------------------------------------------ what it finds


def test_two_beginnings_find_what_greedy_search_misses():
    model = Listed(
        {
            (): {1: 0.6, 2: 0.4},
            (1,): {0: 0.3, 1: 0.3, 3: 0.4},
            (2,): {0: 0.9, 3: 0.1},
        },
        V=4,
    )
    given = {"end": 0, "limits": torch.tensor([4]), "alpha": 0.0}
    (taken,) = greedy(model, [()], torch.tensor([9]), **given)
    ((best, second),) = beam_search(model, [()], torch.tensor([9]), width=2, nbest=2, **given)
    assert (taken.tokens, best.tokens, second.tokens) == ([1, 3], [2], [1, 3])
    assert math.exp(taken.log_probability) == pytest.approx(0.6 * 0.4, rel=1e-6)
    assert math.exp(best.log_probability) == pytest.approx(0.4 * 0.9, rel=1e-6)


@pytest.mark.row("R12")
def test_a_wider_beam_finds_higher_scores_on_average_and_not_every_time():
    """Against exhaustive search, which no width passes."""
    found = {width: [] for width in (1, 2, 4)}
    for seed in range(60):
        for width, scores in found.items():
            best = search(Hashed(5, seed=seed), [2], [5], width=width, alpha=0.0, stop="limit")
            scores.append(best[0][0].score)
    one, two, four = (torch.tensor(scores) for scores in found.values())
    assert one.mean() < two.mean() < four.mean()
    assert (four > one).any()
    assert (two < one).any()  # a wider beam can drop what a narrow one would have come to


@pytest.mark.row("M1")
@pytest.mark.parametrize("stop", [*STOPS, "ahead"])
@pytest.mark.parametrize("alpha", ALPHAS)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_width_1_is_greedy_search(stop, alpha, dtype):
    for seed in range(20):
        model = Hashed(7, seed, dtype=dtype)
        sources, limits = range(10), torch.arange(10) + 1
        state, first = started(model, sources)
        expected = greedy(model, state, first, end=0, limits=limits, alpha=alpha)
        found = search(model, sources, limits, width=1, alpha=alpha, stop=stop)
        assert found == [[each] for each in expected]


def test_width_1_is_greedy_search_however_long_the_sequence():
    model = Hashed(50, seed=1, sharpness=0.01, dtype=torch.float32)  # nearly equal chances
    state, first = started(model, [3])
    given = {"end": 0, "limits": torch.tensor([2000]), "banned": (0,), "alpha": 0.0}
    assert beam_search(model, state, first, width=1, **given) == [
        greedy(model, state, first, **given)
    ]


@pytest.mark.parametrize("alpha", ALPHAS)
@pytest.mark.parametrize(("V", "T"), [(2, 5), (3, 4), (4, 3), (5, 3)])
def test_a_width_that_prunes_nothing_finds_all_in_order(alpha, V, T):
    for seed in range(5):
        model = Hashed(V, seed)
        state, first = started(model, [seed])
        everything = exhaustive(model, state, first, end=0, limit=T, alpha=alpha)
        width = V**T
        (found,) = search(model, [seed], [T], width=width, alpha=alpha, nbest=width)
        assert_same(plain(found), plain(everything))


@pytest.mark.row("M3")
@pytest.mark.parametrize("alpha", ALPHAS)
@pytest.mark.parametrize(("V", "T"), [(2, 5), (3, 4), (4, 3), (5, 4)])
def test_a_width_that_prunes_no_beginning_finds_the_highest_score(alpha, V, T):
    for seed in range(20):
        model, width = Hashed(V, seed), V ** (T - 1)
        state, first = started(model, [seed])
        everything = exhaustive(model, state, first, end=0, limit=T, alpha=alpha)
        best = max(plain(everything))
        options = {"width": width, "alpha": alpha, "stop": "limit", "nbest": width}
        (found,) = search(model, [seed], [T], **options)
        assert_same([max(plain(found))], [best])
        (found,) = search(model, [seed], [T], banned=(0,), **options)  # without END all are of T
        never_ending = exhaustive(model, state, first, end=0, limit=T, alpha=alpha, banned=(0,))
        assert_same(plain(found[:1]), plain(never_ending[:1]))


@settings(max_examples=150)
@given(
    seed=st.integers(0, 10**6),
    V=st.integers(2, 6),
    width=st.integers(1, 7),
    alpha=st.sampled_from([0.0, 0.3, 0.7, 1.0, 2.0]),
    stop=st.sampled_from(STOPS),
    count=st.integers(1, 9),
    limits=st.lists(st.integers(1, 9), min_size=1, max_size=4),
    bias=st.floats(-2, 2),
    data=st.data(),
)
def test_it_is_beam_search_by_the_book(seed, V, width, alpha, stop, count, limits, bias, data):
    nbest = data.draw(st.integers(1, width))
    model = Hashed(V, seed, end_bias=bias)
    options = {"width": width, "alpha": alpha, "stop": stop, "count": count, "nbest": nbest}
    sources = range(seed % 7, seed % 7 + len(limits))
    found = search(model, sources, limits, **options)
    for source, limit, each in zip(sources, limits, found, strict=True):
        assert_same(plain(each), reference_beam(model, source, limit=limit, **options))


def test_log_probabilities_are_the_models_own():
    model = Hashed(8, seed=6)
    for source, found in enumerate(search(model, range(10), [6] * 10, nbest=5, alpha=0.7)):
        for each in found:
            whole = [*each.tokens, 0] if each.finished else each.tokens
            assert each.log_probability == pytest.approx(model.forced(source, whole), rel=1e-14)
            assert each.score == each.log_probability / len(whole) ** 0.7


def test_the_nbest_are_distinct_and_sorted():
    for found in search(Hashed(6, seed=7), range(30), [8] * 30, width=10, nbest=10, stop="limit"):
        keys = [(not each.finished, -each.score) for each in found]
        assert keys == sorted(keys)
        assert len({(*each.tokens, each.finished) for each in found}) == len(found) == 10


def test_a_wider_beam_finds_more_likely_sequences_on_the_whole():
    model = Hashed(20, seed=8, end_bias=1.0)
    means = []
    for width in (1, 2, 5, 20, 100):
        found = search(model, range(50), [12] * 50, width=width, alpha=0.0)
        means.append(sum(best.log_probability for (best,) in found) / 50)
    assert means == sorted(means)
    assert means[-1] > means[0]


def test_banned_tokens_are_never_written():
    found = search(Hashed(6, seed=9), range(20), [8] * 20, width=4, nbest=4, banned=(1, 4))
    assert {token for each in found for one in each for token in one.tokens} == {2, 3, 5}


# ------------------------------------------------------------------ batches


@pytest.mark.row("M3")
@pytest.mark.parametrize("stop", [*STOPS, "ahead"])
def test_a_sentence_gets_the_same_alone_and_in_any_company(stop):
    model = Hashed(9, seed=10)
    sources, limits = torch.arange(12), torch.arange(12) % 8 + 1
    options = {"width": 4, "nbest": 3, "stop": stop}
    together = search(model, sources.tolist(), limits, **options)
    alone = [search(model, [i], limits[[i]], **options)[0] for i in range(12)]
    order = torch.randperm(12, generator=torch.Generator().manual_seed(0))
    mixed = search(model, sources[order].tolist(), limits[order], **options)
    assert together == alone
    assert mixed == [together[i] for i in order.tolist()]


@pytest.mark.row("M3")
def test_every_step_expands_all_continuations_of_the_beam():
    model = Watched(1000, seed=11, width=3)
    state, first = started(model, [4])
    beam_search(model, (torch.arange(1), state), first, end=0, limits=torch.tensor([6]), width=3)
    assert model.expanded == [3000] * 6


def test_rows_stay_in_their_sentences_and_sentences_that_are_done_are_dropped():
    model = Watched(5, seed=12, width=4)
    state, first = started(model, range(9))
    limits = torch.tensor([3, 1, 4, 1, 5, 2, 2, 6, 5])
    beam_search(
        model,
        (torch.arange(9), state),
        first,
        end=0,
        limits=limits,
        width=4,
        stop="limit",
        banned=(0,),
    )
    assert model.expanded == [int((limits > t).sum()) * 4 * 5 for t in range(6)]


def test_no_sentences_give_no_results():
    assert search(Hashed(3, seed=0), [], torch.zeros(0, dtype=torch.long)) == []


# ------------------------------------------------------------------ stopping


@settings(max_examples=300)
@given(
    seed=st.integers(0, 10**6),
    V=st.integers(2, 8),
    width=st.integers(1, 6),
    alpha=st.floats(0, 2),
    limits=st.lists(st.integers(1, 12), min_size=1, max_size=3),
    bias=st.floats(-2, 2),
    data=st.data(),
)
def test_the_rule_best_never_stops_while_an_open_hypothesis_can_still_win(
    seed, V, width, alpha, limits, bias, data
):
    options = {"width": width, "alpha": alpha, "nbest": data.draw(st.integers(1, width))}
    model = Hashed(V, seed, end_bias=bias)
    sources = range(len(limits))
    best = search(model, sources, limits, stop="best", **options)
    assert best == search(model, sources, limits, stop="limit", **options)


def test_what_the_quick_rule_gives_up_is_a_higher_score_now_and_then():
    """Of translators it is the default: help, Search and docs/search.md say so."""
    lower, steps = 0, {"ahead": 0, "best": 0}
    for seed in range(300):
        model, found = Hashed(6, seed=seed), {}
        for stop in ("ahead", "best"):
            taken = []
            found[stop] = search(model, [2], [12], width=3, stop=stop, watch=taken.append)[0][0]
            steps[stop] += len(taken)
        assert found["ahead"].score <= found["best"].score
        lower += found["ahead"].score < found["best"].score
    assert 0 < lower < 60
    assert steps["ahead"] < steps["best"]
    assert DEFAULT.stop == "ahead" == SearchOptions().stop


def steps_until_stop(model, limit, **options):
    steps = []
    search(model, [2], [limit], watch=steps.append, **options)
    return len(steps)


@pytest.mark.row("M4")
def test_each_rule_stops_when_it_says():
    model = Hashed(6, seed=13, end_bias=0.5)
    options = {"width": 4, "alpha": 0.7}
    steps = []
    search(model, [2], [30], watch=steps.append, stop="limit", **options)
    ended = [int(step.ended[0, :4].sum()) for step in steps]
    assert len(steps) == 30  # never before
    for count in (1, 3, 4, 9):
        enough = next(t for t in range(1, 31) if sum(ended[:t]) >= count)
        assert steps_until_stop(model, 30, stop="count", count=count, **options) == enough
    default = steps_until_stop(model, 30, stop="count", **options)
    assert default == steps_until_stop(model, 30, stop="count", count=4, **options)
    best, hopes, leads = -math.inf, [], []
    for t, step in enumerate(steps, start=1):
        log_p, over = step.log_p[0, :4], step.ended[0, :4]
        best = max([best, *(log_p[over] / t**0.7)])
        hopes.append(max(log_p[~over] / 30**0.7) > best)
        leads.append(max(log_p[~over] / t**0.7) > best)
    assert steps_until_stop(model, 30, stop="best", **options) == hopes.index(False) + 1 < 30
    assert steps_until_stop(model, 30, stop="ahead", **options) == leads.index(False) + 1 < 30


@pytest.mark.parametrize("seed", range(40))
def test_without_normalisation_who_is_not_ahead_cannot_win(seed):
    model, limits = Hashed(5, seed, end_bias=0.2), [3, 9, 14]
    options = {"width": 3, "nbest": 2, "alpha": 0.0}
    ahead, best = (search(model, range(3), limits, stop=s, **options) for s in ("ahead", "best"))
    assert ahead == best


def test_stopping_at_a_count_can_miss_what_the_other_rules_find():
    model = Listed({(): {0: 0.4, 1: 0.6}, (1,): {1: 1.0}, (1, 1): {0: 1.0}}, V=3)

    def best(stop):
        given = {"end": 0, "limits": torch.tensor([5]), "width": 2, "count": 1}
        ((found,),) = beam_search(model, [()], torch.tensor([2]), stop=stop, alpha=1.0, **given)
        return found.tokens

    assert best("count") == []
    assert best("ahead") == best("best") == best("limit") == [1, 1]


@pytest.mark.row("M11")
def test_what_reaches_the_limit_before_its_end_is_flagged_and_comes_last():
    model = Listed({(): {0: 0.01, 1: 0.99}, (1,): {1: 1.0}, (1, 1): {1: 1.0}}, V=3)

    def found(limit, **options):
        given = {"end": 0, "limits": torch.tensor([limit]), "width": 2, **options}
        return plain(beam_search(model, [()], torch.tensor([2]), **given)[0])

    low, high = math.log(0.01), math.log(0.99)
    cut = (high / 2**0.7, [1, 1], False)
    assert_same(found(2, nbest=2), [(low, [], True), cut], tolerance=1e-6)
    assert_same(found(2, nbest=1), [(low, [], True)], tolerance=1e-6)
    assert_same(found(2, nbest=2, banned=(0,)), [cut], tolerance=1e-6)
    assert_same(found(4, nbest=1), [(high / 4**0.7, [1, 1, 1], True)], tolerance=1e-6)


def test_where_nothing_is_possible_one_empty_hypothesis_says_so():
    model = Listed({(): {1: 1.0}, (1,): {2: 1.0}}, V=4)
    given = {"end": 0, "limits": torch.tensor([5]), "banned": (2,)}
    nothing = Hypothesis([], -math.inf, -math.inf, finished=False)
    assert beam_search(model, [()], torch.tensor([3]), nbest=3, **given) == [[nothing]]


def test_a_long_sequence_has_a_finite_score_where_the_product_is_zero():
    ((found,),) = beam_search(
        Steady(50, 2000),
        torch.zeros(1, dtype=torch.long),
        torch.tensor([1]),
        end=0,
        limits=torch.tensor([4000]),
        width=2,
        alpha=1.0,
    )
    assert (len(found.tokens), found.finished) == (1999, True)
    assert found.log_probability == pytest.approx(-1999 * math.log(49), rel=1e-12)
    assert math.exp(found.log_probability) == 0.0
    assert found.score == found.log_probability / 2000


# ------------------------------------------------------------------ a real model, wrong settings


def test_an_n_gram_model_is_searched_and_agrees_with_its_own_scores():
    model = counted(random_lines(1, count=60), 3)
    network = model.network
    state = network.read(torch.zeros(1, 0, dtype=torch.long))
    given = {"end": END, "limits": torch.tensor([8]), "alpha": 0.0, "banned": CONTROL}
    first = torch.tensor([network.first])
    (found,) = beam_search(network, state, first, width=40, nbest=20, **given)
    assert len(found) == 20
    texts = [model.encoder.decode(each.tokens) for each in found if each.finished]
    scores = [line.log_probability for line in model.score(texts)]
    assert len({*texts}) == len(texts) > 10
    assert [each.log_probability for each in found if each.finished] == pytest.approx(
        scores, rel=1e-5
    )
    (taken,) = greedy(network, state, first, **given)
    assert taken.log_probability <= found[0].log_probability


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"width": 0}, r"width is 0, but must be in 1\.\.1000\. 1 is greedy search, 5 is usual"),
        ({"width": 1001}, r"width is 1001, but must be in 1\.\.1000"),
        ({"nbest": 6}, r"nbest is 6, but must be in 1\.\.5, the width\. Ask for fewer, or search"),
        ({"nbest": 0}, r"nbest is 0, but must be in 1\.\.5"),
        ({"alpha": -1.0}, "alpha is -1.0, but must be a number in 0..10.*0 compares sums"),
        ({"alpha": math.nan}, "alpha is nan, but must be a number in"),
        ({"stop": "bets"}, "stop is 'bets', but must be .* ahead, best, count, limit.*mean 'best'"),
        ({"count": 0}, r"count is 0, but must be at least 1\. Leave it out for 5"),
        ({"limits": [0]}, "limits has 0 in it, but must be at least 1 everywhere.*Leave out"),
    ],
)
def test_wrong_settings_are_refused(options, message):
    options = {"limits": [3], **options}
    with pytest.raises(ConfigError, match=message):
        search(Hashed(4, seed=0), [1], **options)
