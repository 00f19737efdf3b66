import math

import pytest
import torch

from unrolled.errors import ConfigError
from unrolled.nn.attention import SCORES, Attention

pytestmark = pytest.mark.arithmetic

B, T, S, H = 3, 4, 5, 6
LENGTHS = torch.tensor([5, 2, 1])
BEYOND = torch.arange(S) >= LENGTHS[:, None]


def made(how, query_size=H, key_size=H, **sizes):
    torch.manual_seed(0)
    return Attention(how, query_size, key_size, **{"size": 7, "span": 9, **sizes}).double()


def inputs(query_size=H, key_size=H):
    torch.manual_seed(1)
    s = torch.randn(B, T, query_size, dtype=torch.float64, requires_grad=True)
    h = torch.randn(B, S, key_size, dtype=torch.float64, requires_grad=True)
    return s, h


def formula(how, p, s, h, place):
    """The score of one query and one key, as it is written in the papers."""
    if how in ("dot", "scaled", "cosine"):
        by = {"dot": 1.0, "scaled": math.sqrt(len(s)), "cosine": s.norm() * h.norm()}
        return s @ h / by[how]
    if how == "general":
        return s @ p["weight"] @ h
    if how == "reduced":
        return (p["query"] @ s) @ (p["key"] @ h)
    if how == "additive":
        return p["vector"] @ torch.tanh(p["key"] @ h + p["query"] @ s)
    if how == "concat":
        return p["vector"] @ torch.tanh(p["weight"] @ torch.cat([s, h]))
    return p["weight"][place] @ s


@pytest.mark.row("L1")
@pytest.mark.parametrize("how", SCORES)
def test_it_is_the_formula_row_by_row(how):
    attention, (s, h) = made(how), inputs()
    context, weights = attention(s, attention.remember(h, BEYOND))
    parameters = dict(attention.score.named_parameters())
    for b, length in enumerate(LENGTHS.tolist()):
        for t in range(T):
            scores = [formula(how, parameters, s[b, t], h[b, i], i) for i in range(length)]
            expected = torch.stack(scores).softmax(0)
            torch.testing.assert_close(weights[b, t, :length], expected, rtol=1e-12, atol=1e-13)
            assert (weights[b, t, length:] == 0).all()
            torch.testing.assert_close(context[b, t], expected @ h[b, :length])


@pytest.mark.parametrize("how", SCORES)
def test_gradients_equal_finite_differences(how):
    attention, (s, h) = made(how), inputs()
    upstream = torch.randn(B, T, H, dtype=torch.float64)

    def run(s, h, *_):
        context, weights = attention(s, attention.remember(h, BEYOND))
        return (context * upstream).sum() + (weights**2).sum()

    assert torch.autograd.gradcheck(run, (s, h, *attention.parameters()), atol=1e-7, rtol=1e-6)


@pytest.mark.row("L1", "L2")
@pytest.mark.parametrize("how", SCORES)
def test_weights_sum_to_one_and_contexts_lie_between_the_values(how):
    attention, (s, h) = made(how), inputs()
    context, weights = attention(s * 5, attention.remember(h, BEYOND))
    assert (weights >= 0).all()
    torch.testing.assert_close(weights.sum(2), torch.ones(B, T, dtype=torch.float64))
    for b, length in enumerate(LENGTHS.tolist()):
        assert (context[b] >= h[b, :length].amin(0) - 1e-12).all()
        assert (context[b] <= h[b, :length].amax(0) + 1e-12).all()


def test_padding_gets_no_gradient():
    attention, (s, h) = made("additive"), inputs()
    context, _ = attention(s, attention.remember(h, BEYOND))
    (gradient,) = torch.autograd.grad(context, h, torch.randn_like(context))
    assert (gradient[BEYOND] == 0).all()
    assert (gradient[~BEYOND] != 0).all()


@pytest.mark.row("L5")
def test_concat_is_additive_with_both_matrices_side_by_side():
    (s, h), additive, concat = inputs(), made("additive"), made("concat")
    with torch.no_grad():
        concat.score.weight.copy_(torch.cat([additive.score.query, additive.score.key], dim=1))
        concat.score.vector.copy_(additive.score.vector)
    one, other = (a(s, a.remember(h, BEYOND)) for a in (additive, concat))
    torch.testing.assert_close(one, other, rtol=1e-13, atol=1e-14)


@pytest.mark.row("L7")
def test_general_with_the_identity_is_dot():
    (s, h), general, dot = inputs(), made("general"), made("dot")
    with torch.no_grad():
        general.score.weight.copy_(torch.eye(H))
    one, other = (a(s, a.remember(h, BEYOND)) for a in (general, dot))
    torch.testing.assert_close(one, other)


@pytest.mark.row("L7", "L8")
def test_reduced_is_general_of_low_rank_with_fewer_parameters():
    s, h = inputs(6, 8)
    reduced, general = made("reduced", 6, 8, size=2), made("general", 6, 8)
    with torch.no_grad():
        general.score.weight.copy_(reduced.score.query.t() @ reduced.score.key)
    one, other = (a(s, a.remember(h, BEYOND)) for a in (reduced, general))
    torch.testing.assert_close(one, other)
    assert sum(p.numel() for p in reduced.parameters()) == 2 * (6 + 8)


@pytest.mark.row("L10")
def test_scaled_scores_of_unit_variance_have_unit_variance():
    torch.manual_seed(0)
    attention = Attention("scaled", 512, 512)
    scores = attention.score(torch.randn(8, 50, 512), torch.randn(8, 50, 512))
    assert scores.var().item() == pytest.approx(1.0, abs=0.05)


@pytest.mark.row("L11")
def test_cosine_scores_do_not_see_length():
    attention, (s, h) = made("cosine"), inputs()
    scores = attention.score(s, attention.score.keys(h))
    assert (scores.abs() <= 1.0).all()
    torch.testing.assert_close(attention.score(100 * s, attention.score.keys(h / 100)), scores)


@pytest.mark.row("L12")
def test_location_looks_at_places_not_at_what_stands_there():
    attention, (s, h) = made("location"), inputs()
    _, weights = attention(s, attention.remember(h, BEYOND))
    _, others = attention(s, attention.remember(torch.randn_like(h), BEYOND))
    assert torch.equal(weights, others)


@pytest.mark.row("L12")
def test_location_knows_its_places_only():
    attention, (s, h) = made("location", span=4), inputs()
    with pytest.raises(ConfigError, match=r"a source has 5 tokens, but .* knows 4 places"):
        attention(s, attention.remember(h, BEYOND))


@pytest.mark.row("L9")
@pytest.mark.parametrize("how", ["dot", "scaled", "cosine"])
def test_a_product_of_unlike_sizes_is_refused(how):
    with pytest.raises(ConfigError, match=f'{how} attention compares .* 6 .* 8.*"general"'):
        Attention(how, 6, 8)


def test_an_unknown_score_is_refused():
    with pytest.raises(ConfigError, match=r"attention is 'genral'.*Did you mean 'general'\?"):
        Attention("genral", 6, 6)
