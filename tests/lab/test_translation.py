import numpy as np
import pytest
import torch

from unrolled.errors import ConfigError
from unrolled.evaluate.score import named
from unrolled.evaluate.translation import translation_measures
from unrolled.lab.translation import (
    ATTENTIONS,
    EXTENSIONS,
    SHORT_COPY,
    Toy,
    accuracies,
    attention_models,
    extensions,
    gradient_shortcut,
    job_for,
    length_curves,
    source_reversal,
    state_gradients,
)
from unrolled.tasks.translate.network import DecoderState
from unrolled.text.tokens import END, START

pytestmark = [pytest.mark.arithmetic, pytest.mark.trains]

SMALL = Toy("copy", symbols=4, lengths=(3, 6), pairs=1100, held_out=100)
SHORT = Toy("reverse", symbols=6, lengths=(2, 12), pairs=1100, held_out=100)
FEW = SMALL._replace(pairs=150, held_out=20)
SHARED, SEPARATE = list(EXTENSIONS)[:2]


def test_held_out_pairs_are_never_among_those_learned():
    lines = SHORT_COPY.made(1)
    assert len({source for source, _ in lines}) == len(lines)
    assert lines == SHORT_COPY.made(1) != SHORT_COPY.made(2)


def test_accuracies_are_those_of_an_evaluation():
    said = ["a b c", "a b", "", "a b c d", "x a b c"]
    lines = [("", "a b c"), ("", "a b c"), ("", "a"), ("", "a b"), ("", "a b c")]
    found = translation_measures(said, [target for _, target in lines], counted={})
    scores = [measure.score for measure in found]
    expected = [named(scores, name).value for name in ("token_accuracy", "exact_match")]
    assert accuracies(said, lines) == pytest.approx(expected, rel=1e-12)


@pytest.mark.row("K1")
def test_one_shared_stack_learns_less_than_separate_weights():
    small = {"model.hidden_size": 32, "train.batch_tokens": 128}
    kinds = {name: {**EXTENSIONS[name], **small} for name in (SHARED, SEPARATE)}
    found = extensions(SMALL, kinds=kinds, epochs=12, seeds=(2,))
    (shared,), (separate,) = found.values()
    assert shared.token_accuracy < separate.token_accuracy - 0.05
    assert shared.nats > separate.nats + 0.1
    assert shared.updates == separate.updates


@pytest.mark.row("H7")
def test_every_extension_runs_and_is_the_same_for_the_same_seed():
    found = extensions(FEW, epochs=1, seeds=(3,))
    assert found.keys() == EXTENSIONS.keys()
    assert found == extensions(FEW, epochs=1, seeds=(3,))
    for (outcome,) in found.values():
        assert 0.0 < outcome.nats < np.log(4 + 4) + 0.5
        assert 0.0 <= outcome.exact_match <= outcome.token_accuracy <= 1.0
    parameters = [runs[0].parameters for runs in found.values()]
    assert parameters[0] < parameters[1] < parameters[3] < min(parameters[4:6])


@pytest.mark.row("H10", "R10")
def test_a_reversed_source_is_learned_in_fewer_updates():
    found = source_reversal(SMALL, goal=0.6, epochs=40, seeds=(1,))
    (plain,), (turned,) = found.values()
    assert 0 < turned < 0.75 * plain


def test_a_goal_that_is_not_reached_has_no_number_of_updates():
    found = source_reversal(FEW, goal=1.0, epochs=1, seeds=(1,))
    assert found == {"as it stands": [None], "reversed": [None]}


@pytest.mark.row("K5", "R6")
def test_long_sources_need_attention():
    models = attention_models(SHORT, epochs=14, seed=1)
    curves = length_curves(models, (3, 6, 9), toy=SHORT)
    attended, bottleneck = curves["with attention"], curves["without attention"]
    assert min(attended) > 0.85
    assert bottleneck[0] > 0.9
    assert bottleneck[0] - 0.1 > bottleneck[1] > bottleneck[2] + 0.1


@pytest.mark.row("L16")
def test_attention_is_a_short_way_for_the_gradient():
    models = attention_models(epochs=None, seed=1)
    for length in (10, 20):
        norms = gradient_shortcut(models, length)
        attended, bottleneck = norms["with attention"], norms["without attention"]
        assert len(attended) == len(bottleneck) == length
        assert attended[0] > 0.5 * attended[-1]
        assert bottleneck[0] < 0.7**length * bottleneck[-1]


@pytest.mark.row("L16")
@pytest.mark.parametrize("attends", [True, False])
def test_state_gradients_equal_finite_differences(attends):
    changes = ATTENTIONS["with attention" if attends else "without attention"]
    changes = {**changes, "model.hidden_size": 6}
    model = job_for(SHORT.made(2), changes, held_out=100, seed=2).model
    for parameter in model.network.parameters():
        parameter.data.mul_(3.0)  # far from linear
    model.network.double()
    lines = [("s1 s4 s2", "s2 s4 s1"), ("s0 s0 s5", "s5 s0 s0")]
    expected = np.mean([_norms(model, *line) for line in lines], axis=0)
    np.testing.assert_allclose(state_gradients(model, lines), expected, rtol=1e-6)


def _norms(model, source, target):
    """By central differences of what the network says when it is asked token by token."""
    H, size, found = model.network.settings.hidden_size, 1e-5, []
    for place in range(3):
        slopes = []
        for bump in torch.eye(H, dtype=torch.float64) * size:
            above, below = (_nats(model, source, target, place, sign * bump) for sign in (1, -1))
            slopes.append((above - below) / (2 * size))
        found.append(np.linalg.norm(slopes))
    return found


@torch.inference_mode()
def _nats(model, source, target, place, bump):
    network, stack, seen = model.network, None, []
    ids = torch.tensor([[*model.source.encode(source), END]])
    for number, x in enumerate(network.source_embedding(ids).split(1, dim=1)):
        _, stack = network.encoder(x, state=stack)
        stack = (stack[0] + bump * (number == place),)
        seen.append(stack[0][0])
    h = torch.stack(seen, dim=1)  # (1, S, H)
    nothing = torch.zeros(h.shape[:2], dtype=torch.bool)
    memory = network.attention.remember(h, nothing) if network.attention else None
    state = DecoderState(stack, None, None, memory)
    *before, last = model.target.encode(target).tolist()
    for token in [START, *before]:
        scores, state = network.step(torch.tensor([token]), state)
    return -float(scores[0, last])


def test_pairs_of_unlike_length_have_no_common_places():
    model = attention_models(SHORT, epochs=None)["with attention"]
    with pytest.raises(ConfigError, match="have 3 to 4 tokens a side, but must be of one length"):
        state_gradients(model, [("s1 s2", "s2 s1"), ("s1 s2 s3", "s3 s2 s1")])
