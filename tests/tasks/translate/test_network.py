import itertools

import pytest
import torch
from networks import numeric_gradient, relative_error
from translators import (
    ARCHITECTURES,
    OUTPUTS,
    SOURCES,
    network,
    pairs,
    row_log_p,
    sees_tokens,
    stepped_log_p,
)

from unrolled.errors import ConfigError
from unrolled.nn.attention import SCORES
from unrolled.text.batch import Batch
from unrolled.text.pair_batch import PairBatch
from unrolled.text.tokens import END, START, UNK

pytestmark = [pytest.mark.arithmetic, pytest.mark.slow]

VARIANTS = {
    "plain": {"attention": "none", "bidirectional": False},
    "one stack": {"attention": "none", "bidirectional": False, "shared": True},
    "no input": {"attention": "none", "bidirectional": False, "decoder_input": "none"},
    "three inputs": {"attention": "none", "bidirectional": False, "decoder_input": "all"},
    "deep": {"attention": "none", "layers": 3},
    "both ways": {"attention": "none"},
    "reversed": {"reverse_source": True},
    **{how: {"attention": how} for how in ("additive", "general", "location")},
    "dot": {"attention": "dot", "bidirectional": False},
    "bahdanau": {"attention": "additive", "placement": "bahdanau"},
    "post-attention": {"placement": "bahdanau", "decoder_input": "none"},
    "feed": {"feed": True, "layers": 2},
    "feed all": {"feed": True, "decoder_input": "all"},
    "untied": {"tied": False, "embedding_size": 3},
    "gru": {"cell": "gru", "reset": "before"},
}
every_architecture = pytest.mark.parametrize("options", ARCHITECTURES.values(), ids=ARCHITECTURES)


@pytest.mark.parametrize("variant", VARIANTS.values(), ids=VARIANTS)
def test_a_ragged_batch_equals_its_pairs_one_by_one(variant):
    model = network(**variant)
    together = model.loss(pairs())
    expected = torch.autograd.grad(together.total, list(model.parameters()), allow_unused=True)
    alone = [model.loss(pairs([row])) for row in range(3)]
    assert together.count == sum(loss.count for loss in alone)
    total = sum(loss.total for loss in alone)
    torch.testing.assert_close(together.total, total, rtol=1e-12, atol=1e-12)
    found = torch.autograd.grad(total, list(model.parameters()), allow_unused=True)
    for one, other in zip(expected, found, strict=True):
        assert (one is None) == (other is None)
        if one is not None:
            torch.testing.assert_close(one, other, rtol=1e-9, atol=1e-11)


@pytest.mark.row("B1", "H11", "K4")
@pytest.mark.parametrize("variant", VARIANTS.values(), ids=VARIANTS)
def test_steps_say_what_the_loss_says(variant):
    model, batch = network(**variant), pairs()
    state = model.encode(batch.source)
    nats = []
    for row, target in enumerate(OUTPUTS):
        own = model.select(state, torch.tensor([row]))
        total = 0.0
        for token, following in itertools.pairwise(target):
            log_p, own = model.step(torch.tensor([token]), own)
            assert log_p.exp().sum().item() == pytest.approx(1.0, abs=1e-12)
            total -= log_p[0, following].item()
        nats.append(total)
    assert sum(nats) == pytest.approx(model.loss(batch).total.item(), rel=1e-12)
    each = model.target_nats(batch)
    assert each.sum().item() == pytest.approx(sum(nats), rel=1e-12)


@pytest.mark.row("K6")
@pytest.mark.parametrize("variant", VARIANTS.values(), ids=VARIANTS)
def test_every_parameter_learns_from_the_one_loss(variant):
    model = network(**variant)
    model.loss(pairs()).total.backward()
    for name, parameter in model.named_parameters():
        sees_nothing = model.token_size == 1 and name == "decoder_only.weight_ih_l0"
        assert parameter.grad is not None, name
        assert (parameter.grad.abs().sum() == 0) == sees_nothing, name


def slope_error(loss, parameter, gradient):
    """Relative error of a gradient along a random direction in which no two parts cancel."""
    signs = torch.where(gradient < 0, -1.0, 1.0)
    direction = signs * (0.5 + torch.rand_like(gradient))
    direction /= direction.norm()
    kept, shift = parameter.detach().clone(), torch.zeros(1, dtype=gradient.dtype)

    def moved():
        parameter.copy_(kept + shift * direction)
        return loss()

    numeric = numeric_gradient(moved, shift)
    parameter.data.copy_(kept)
    return relative_error((gradient * direction).sum(), numeric)


@pytest.mark.row("K2", "L3", "L4")
@every_architecture
def test_gradients_equal_finite_differences(options):
    model, batch = network(size=3, std=1.0, **options), pairs((0, 2))
    named = dict(model.named_parameters())

    def loss():
        return model.loss(batch).total

    exact = torch.autograd.grad(loss(), list(named.values()), materialize_grads=True)
    for (name, parameter), gradient in zip(named.items(), exact, strict=True):
        error = slope_error(loss, parameter, gradient)
        assert error < 1e-6, f"{name}: relative error {error:.1e}"


@pytest.mark.row("K4")
@every_architecture
def test_a_decoder_sees_what_it_has_written_and_nothing_later(options):
    model = network(**options)
    right = [START, 4, 5, 6, 5, END]
    changed = [[*right[:place], UNK, *right[place + 1 :]] for place in range(1, len(right) - 1)]
    shorter = [right[:length] for length in range(2, len(right))]
    before, *others = row_log_p(model, SOURCES[0], [right, *changed, *shorter])
    for place, log_p in enumerate(others[: len(changed)]):
        torch.testing.assert_close(log_p[:place], before[:place], rtol=1e-12, atol=1e-13)
        difference = (log_p - before)[place + 1 :].abs()
        assert difference.min() > 1e-8 if sees_tokens(model) else difference.max() < 1e-12
    for log_p in others[len(changed) :]:
        torch.testing.assert_close(log_p, before[: len(log_p)], rtol=1e-12, atol=1e-13)


def every_output(limit):
    """All that three tokens and END can say, cut at the limit, where END would be forced."""
    others = [token for token in range(4) if token != END]
    for length in range(limit + 1):
        for written in itertools.product(others, repeat=length):
            yield [START, *written] if length == limit else [START, *written, END]


@pytest.mark.row("K3")
@every_architecture
def test_the_chances_of_all_outputs_sum_to_one(options):
    model, rows = network(**{**options, "joint": False}, targets=4), [*every_output(4)]
    found = []
    for source in (SOURCES[1], SOURCES[2]):
        scored = torch.stack([part.sum() for part in row_log_p(model, source, rows)])
        stepped = torch.stack([part.sum() for part in stepped_log_p(model, source, rows)])
        assert scored.exp().sum().item() == pytest.approx(1.0, abs=1e-12)
        torch.testing.assert_close(scored, stepped, rtol=1e-12, atol=1e-12)
        found.append(scored.exp())
    assert (found[0] - found[1]).abs().sum() > 1e-3  # it is P(y | x), not P(y)


@pytest.mark.parametrize("name", ["general", "additive", "bahdanau", "feed all"])
def test_selected_rows_go_on_as_if_alone(name):
    model = network(**VARIANTS[name])
    state = model.encode(pairs().source)
    first = torch.full((3,), START)
    _, state = model.step(first, state)
    for rows in ([0, 0, 1, 1, 2, 2], [2], [0, 0, 2, 2], [2, 0, 1], [1, 1, 0], [0, 1, 0, 1]):
        chosen = model.select(state, torch.tensor(rows))
        tokens = torch.tensor([4 + n % 3 for n in range(len(rows))])
        found, _ = model.step(tokens, chosen)
        for n, row in enumerate(rows):
            own = model.encode(pairs([row]).source)
            _, own = model.step(first[:1], own)
            alone, _ = model.step(tokens[n : n + 1], own)
            torch.testing.assert_close(found[n], alone[0], rtol=1e-11, atol=1e-12)


def test_rows_of_rows_share_the_memory_of_their_source():
    model = network()
    state = model.encode(pairs().source)
    wide = model.select(state, torch.tensor([0, 0, 1, 1, 2, 2]))
    assert len(wide.memory.values) == 3
    assert wide.memory.values is state.memory.values
    fewer = model.select(wide, torch.tensor([1, 0, 5, 5]))
    assert torch.equal(fewer.memory.values, state.memory.values[[0, 2]])


@pytest.mark.parametrize("attention", ["none", "additive"])
def test_reversal_is_reading_the_turned_source(attention):
    options = {"attention": attention, "bidirectional": False}
    turned, plain = network(reverse_source=True, **options), network(**options)
    plain.load_state_dict(turned.state_dict())
    batch = pairs()
    flipped = PairBatch(Batch.collate([source[::-1] for source in SOURCES]), batch.target)
    found, expected = turned.loss(batch).total, plain.loss(flipped).total
    torch.testing.assert_close(found, expected, rtol=1e-12, atol=0)
    assert abs(found - plain.loss(batch).total) > 1e-3


def test_weights_of_a_turned_source_stand_in_its_own_order():
    options = {"attention": "additive", "bidirectional": False}
    turned, plain = network(reverse_source=True, **options), network(**options)
    plain.load_state_dict(turned.state_dict())
    for source, target in zip(SOURCES, OUTPUTS, strict=True):
        weights, mirrored = (
            model.alignment(PairBatch(Batch.collate([ids]), Batch.collate([target])))
            for model, ids in ((turned, source), (plain, source[::-1]))
        )
        torch.testing.assert_close(weights, mirrored.flip(2), rtol=1e-12, atol=1e-13)


@pytest.mark.row("H6")
def test_one_stack_is_one_set_of_parameters():
    shared, apart = (
        network(attention="none", bidirectional=False, shared=s) for s in (True, False)
    )
    assert shared.decoder is shared.encoder
    of_stack = sum(p.numel() for p in apart.encoder.parameters())
    sizes = [sum(p.numel() for p in model.parameters()) for model in (shared, apart)]
    assert sizes[1] - sizes[0] == of_stack


def test_a_joint_vocabulary_has_one_embedding():
    model = network(joint=True)
    assert model.source_embedding is model.target_embedding
    assert "source_only.weight" not in model.state_dict()


def test_smoothing_acts_in_training_alone():
    model = network(label_smoothing=0.3)
    plain = network(label_smoothing=0.0)
    assert torch.equal(model.loss(pairs()).total, plain.loss(pairs()).total)
    assert model.train().loss(pairs()).total != plain.train().loss(pairs()).total


@pytest.mark.row("H1")
def test_own_tokens_are_fed_in_training_as_often_as_asked():
    none, all_ = network(sampling=0.0).train(), network(sampling=1.0).train()
    batch = pairs()
    start = all_.encode(batch.source)
    inputs, _ = batch.target.shifted()
    fed = all_._with_own_tokens(inputs, start, batch.target.lengths - 1)
    assert (fed[:, 0] == START).all()
    log_p, _ = all_.step(fed[:, 0], start)
    assert torch.equal(fed[:, 1], log_p.argmax(1))
    assert none.loss(batch).total != all_.loss(batch).total
    assert torch.equal(none.eval().loss(batch).total, all_.eval().loss(batch).total)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"attention": "none", "feed": True}, 'feed is true, but model.attention is "none"'),
        ({"attention": "none", "placement": "bahdanau"}, "nothing to place"),
        ({"feed": True, "placement": "bahdanau"}, "enters the state already"),
        ({"shared": True}, "has one direction"),
        ({"attention": "none", "embedding_size": 3}, "embedding_size is 3 and model.hidden_size"),
    ],
)
def test_parts_that_do_not_fit_are_refused(options, message):
    with pytest.raises(ConfigError, match=message):
        network(**options)


def test_every_attention_is_a_setting():
    for how in SCORES:
        options = {"bidirectional": False} if how in ("dot", "scaled", "cosine") else {}
        assert network(attention=how, **options).alignment(pairs()).shape == (3, 5, 6)
