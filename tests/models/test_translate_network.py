import itertools

import pytest
import torch

from unrolled.config import settings_for
from unrolled.errors import ConfigError
from unrolled.models.translate_network import TranslateNetwork
from unrolled.nn.attention import SCORES
from unrolled.text.batch import Batch
from unrolled.text.pair_batch import PairBatch
from unrolled.text.tokens import END, START

SIZE, TARGETS = 9, 7
SOURCES = [[4, 5, 6, END], [8, END], [7, 7, 4, 5, 8, END]]
OUTPUTS = [[START, 4, END], [START, 5, 6, 4, 6, END], [START, 6, 5, END]]

VARIANTS = {
    "plain": {"attention": "none", "bidirectional": False},
    "one stack": {"attention": "none", "bidirectional": False, "shared": True},
    "no input": {"attention": "none", "bidirectional": False, "decoder_input": "none"},
    "three inputs": {"attention": "none", "bidirectional": False, "decoder_input": "all"},
    "deep": {"attention": "none", "layers": 3, "dropout": 0.0},
    "both ways": {"attention": "none"},
    "reversed": {"reverse_source": True},
    **{how: {"attention": how, "attention_size": 3} for how in ("additive", "general", "location")},
    "dot": {"attention": "dot", "bidirectional": False},
    "bahdanau": {"attention": "additive", "placement": "bahdanau"},
    "post-attention": {"placement": "bahdanau", "decoder_input": "none"},
    "feed": {"feed": True, "layers": 2},
    "feed all": {"feed": True, "decoder_input": "all"},
    "untied": {"tied": False, "embedding_size": 3},
    "gru": {"cell": "gru", "reset": "before"},
}


def network(*, joint=False, dtype=torch.float64, **options):
    torch.manual_seed(0)
    chosen = {"hidden_size": 6, "dropout": 0.0, **options}
    settings = settings_for("translate", overrides={f"model.{k}": v for k, v in chosen.items()})
    made = TranslateNetwork(settings.model, SIZE, None if joint else TARGETS).to(dtype)
    with torch.no_grad():
        for parameter in made.parameters():
            parameter.normal_(0.0, 0.5)
    return made.eval()


def pairs(rows=(0, 1, 2)):
    source, target = ([side[row] for row in rows] for side in (SOURCES, OUTPUTS))
    return PairBatch(Batch.collate(source), Batch.collate(target))


@pytest.mark.parametrize("variant", VARIANTS.values(), ids=VARIANTS)
def test_a_ragged_batch_equals_its_pairs_one_by_one(variant):
    model = network(**variant)
    together = model.loss(pairs())
    expected = torch.autograd.grad(together.nats, list(model.parameters()), allow_unused=True)
    alone = [model.loss(pairs([row])) for row in range(3)]
    assert together.predictions == sum(loss.predictions for loss in alone)
    total = sum(loss.nats for loss in alone)
    torch.testing.assert_close(together.nats, total, rtol=1e-12, atol=1e-12)
    found = torch.autograd.grad(total, list(model.parameters()), allow_unused=True)
    for one, other in zip(expected, found, strict=True):
        assert (one is None) == (other is None)
        if one is not None:
            torch.testing.assert_close(one, other, rtol=1e-9, atol=1e-11)


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
    assert sum(nats) == pytest.approx(model.loss(batch).nats.item(), rel=1e-12)
    each = model.target_nats(batch)
    assert each.sum().item() == pytest.approx(sum(nats), rel=1e-12)


@pytest.mark.parametrize("variant", VARIANTS.values(), ids=VARIANTS)
def test_every_parameter_learns_from_the_one_loss(variant):
    model = network(**variant)
    model.loss(pairs()).nats.backward()
    for name, parameter in model.named_parameters():
        sees_nothing = model.token_size == 1 and name == "decoder_only.weight_ih_l0"
        assert parameter.grad is not None, name
        assert (parameter.grad.abs().sum() == 0) == sees_nothing, name


@pytest.mark.parametrize("name", ["plain", "three inputs", "additive", "bahdanau", "feed"])
def test_gradients_equal_finite_differences(name):
    model = network(**VARIANTS[name])
    parameters = list(model.parameters())

    def run(*_):
        return model.loss(pairs()).nats

    assert torch.autograd.gradcheck(run, parameters, fast_mode=True, atol=1e-6, rtol=1e-5)


@pytest.mark.parametrize("variant", VARIANTS.values(), ids=VARIANTS)
def test_a_decoder_does_not_see_what_it_has_yet_to_write(variant):
    model = network(**variant)
    source = Batch.collate([SOURCES[0]] * 2)
    target = Batch.collate([[START, 4, 5, 6, END], [START, 4, 6, 4, END]])
    nats = model.target_nats(PairBatch(source, target)).view(2, 4)
    torch.testing.assert_close(nats[0, 0], nats[1, 0], rtol=1e-13, atol=0)
    start = model.encode(source)
    log_p, _ = model.step(target.tokens[:, 0], start)
    torch.testing.assert_close(log_p[0], log_p[1], rtol=1e-13, atol=1e-13)


@pytest.mark.parametrize("name", ["plain", "general", "bahdanau"])
def test_the_chances_of_all_outputs_sum_to_one(name):
    model, limit = network(**VARIANTS[name]), 3
    source = Batch.collate([SOURCES[2]])

    def mass(prefix):
        """Of all that begins so, END at the limit at the latest."""
        state = model.encode(source)
        for token in [START, *prefix]:
            log_p, state = model.step(torch.tensor([token]), state)
        p = log_p[0].exp()
        if len(prefix) == limit:
            return 1.0
        ends = p[END].item()
        return ends + sum(
            p[token].item() * mass([*prefix, token]) for token in range(TARGETS) if token != END
        )

    assert mass([]) == pytest.approx(1.0, abs=1e-9)


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


def test_reversal_is_reading_the_turned_source():
    turned = network(attention="none", bidirectional=False, reverse_source=True)
    plain = network(attention="none", bidirectional=False)
    plain.load_state_dict(turned.state_dict())
    batch = pairs()
    flipped = Batch.collate([source[::-1] for source in SOURCES])
    torch.testing.assert_close(
        turned.loss(batch).nats, plain.loss(PairBatch(flipped, batch.target)).nats
    )


def test_weights_of_a_turned_source_stand_in_its_own_order():
    model = network(reverse_source=True)
    weights = model.alignment(pairs())
    for row, source in enumerate(SOURCES):
        assert (weights[row, 0, len(source) :] == 0).all()
        assert (weights[row, 0, : len(source)] > 0).all()


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
    assert torch.equal(model.loss(pairs()).nats, plain.loss(pairs()).nats)
    assert model.train().loss(pairs()).nats != plain.train().loss(pairs()).nats


def test_own_tokens_are_fed_in_training_as_often_as_asked():
    none, all_ = network(sampling=0.0).train(), network(sampling=1.0).train()
    batch = pairs()
    start = all_.encode(batch.source)
    inputs, _ = batch.target.shifted()
    fed = all_._with_own_tokens(inputs, start, batch.target.lengths - 1)
    assert (fed[:, 0] == START).all()
    log_p, _ = all_.step(fed[:, 0], start)
    assert torch.equal(fed[:, 1], log_p.argmax(1))
    assert none.loss(batch).nats != all_.loss(batch).nats
    assert torch.equal(none.eval().loss(batch).nats, all_.eval().loss(batch).nats)


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
