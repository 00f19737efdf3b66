"""A classifier: its loss, its independence of padding and neighbours, its reasons, its files."""

import json

import numpy as np
import pytest
import torch

from unrolled.config import settings_for
from unrolled.errors import ConfigError, DataError
from unrolled.tasks.classify.model import ClassifyModel
from unrolled.tasks.classify.network import label_weights
from unrolled.tasks.classify.reader import MAX_TOKENS, LabelledBatches, TextBatches
from unrolled.tasks.classify.settings import ClassifyRun
from unrolled.text.labels import Labels

pytestmark = pytest.mark.arithmetic

TEXTS = ["the cat sat", "a Dog", "the the dog ran off home", "", "x"]
ONE = Labels(("no", "yes"), (3, 2), 5, multi_label=False)
SEVERAL = Labels(("a", "b", "c"), (3, 1, 2), 5, multi_label=True)
SMALL = {"model.hidden_size": 6, "model.embedding_size": 5, "model.character_hidden_size": 3}
KINDS = [
    *({"model.pooling": how} for how in ("last", "mean", "max", "attention")),
    {"model.pooling": "last", "model.layers": 2, "model.cell": "gru"},
    {"model.pooling": "last", "model.bidirectional": False, "model.cell": "rnn"},
    {"model.pooling": "last", "model.combine": "mean"},
    {"model.kind": "mean"},
    {"model.positions": 2},
    {"model.characters": "lstm"},
    {"model.characters": "suffix"},
    {"tokens.level": "char"},
    {"tokens.level": "bpe"},
]


def build(labels=ONE, *, double=False, **settings):
    torch.manual_seed(3)
    run = settings_for(ClassifyRun, overrides=SMALL | settings)
    model = ClassifyModel.build(run, labels, TEXTS)
    with torch.no_grad():
        for parameter in model.network.parameters():
            parameter.uniform_(-0.7, 0.7)
    model.network.eval()
    if double:
        model.network.double()
    return model


def batch_of(model, targets, texts=TEXTS):
    encoded = model.reader.encode(texts)
    return LabelledBatches(encoded, targets, batch_tokens=999).build(np.arange(len(texts)))


@pytest.mark.parametrize("settings", KINDS, ids=str)
@pytest.mark.parametrize("labels", [ONE, SEVERAL], ids=["one", "several"])
def test_padding_and_neighbours_change_no_probability(settings, labels):
    model = build(labels, double=True, **settings)
    together = model.probabilities(TEXTS)
    alone = np.concatenate([model.probabilities([text]) for text in TEXTS])
    np.testing.assert_allclose(together, alone, rtol=0, atol=1e-13)
    backwards = model.probabilities(TEXTS[::-1])[::-1]
    np.testing.assert_allclose(together, backwards, rtol=0, atol=1e-13)


@pytest.mark.parametrize("settings", KINDS, ids=str)
def test_what_stands_in_the_padding_changes_nothing(settings):
    model = build(double=True, **settings)
    batch = TextBatches(model.reader.encode(TEXTS), batch_tokens=999).build(np.arange(len(TEXTS)))
    vectors = model.network.embedder(batch)
    spoilt = vectors.masked_fill(~batch.mask[:, :, None], 1e6)
    first, second = (model.network.read(v, batch.lengths) for v in (vectors, spoilt))
    assert torch.equal(first.logits, second.logits)


def test_probabilities_of_one_label_sum_to_one_and_of_several_need_not():
    np.testing.assert_allclose(build().probabilities(TEXTS).sum(axis=1), 1.0, rtol=1e-6)
    several = build(SEVERAL).probabilities(TEXTS)
    assert ((several > 0) & (several < 1)).all()
    assert np.abs(several.sum(axis=1) - 1.0).max() > 0.01


@pytest.mark.parametrize("combine", ["concat", "mean"])
def test_the_last_state_is_that_of_both_directions(combine):
    model = build(double=True, **{"model.pooling": "last", "model.combine": combine})
    batch = batch_of(model, np.zeros(5, np.int64)).texts
    network = model.network
    _, (h, _) = network.stack(network.embedder(batch), batch.lengths)
    both = torch.cat([h[-2], h[-1]], dim=1) if combine == "concat" else (h[-2] + h[-1]) / 2
    expected = both @ network.weight.t() + network.bias
    torch.testing.assert_close(network(batch).logits, expected)


def test_the_mean_of_embeddings_knows_no_order():
    model = build(double=True, **{"model.kind": "mean"})
    first, second = model.probabilities(["the cat sat", "sat the cat"])
    np.testing.assert_allclose(first, second, rtol=0, atol=1e-14)
    recurrent = build(double=True)
    first, second = recurrent.probabilities(["the cat sat", "sat the cat"])
    assert np.abs(first - second).max() > 1e-4


def test_positions_add_to_the_first_tokens_and_to_no_other():
    model = build(double=True, **{"model.kind": "mean", "model.positions": 2})
    network = model.network
    batch = batch_of(model, np.zeros(1, np.int64), ["the cat sat the"]).texts
    vectors = network.embedder(batch)[0]
    vectors = torch.cat([vectors[:2] + network.positions, vectors[2:]])
    expected = vectors.mean(dim=0) @ network.weight.t() + network.bias
    torch.testing.assert_close(network(batch).logits[0], expected)


# ------------------------------------------------------------------ the loss


def test_the_loss_is_minus_the_log_of_the_right_probability():
    model = build(double=True)
    targets = np.array([0, 1, 1, 0, 1])
    loss = model.network.loss(batch_of(model, targets))
    p = model.probabilities(TEXTS)
    assert loss.count == 5
    assert loss.total.item() == pytest.approx(-np.log(p[np.arange(5), targets]).sum(), rel=1e-12)


@pytest.mark.row("F9")
def test_the_logistic_loss_sums_over_every_label():
    model = build(SEVERAL, double=True)
    y = np.array([[1, 0, 1], [0, 0, 0], [1, 1, 1], [0, 1, 0], [1, 0, 0]])
    loss = model.network.loss(batch_of(model, y))
    p = model.probabilities(TEXTS)
    assert loss.count == 15
    expected = -(y * np.log(p) + (1 - y) * np.log(1 - p)).sum()
    assert loss.total.item() == pytest.approx(expected, rel=1e-12)


@pytest.mark.row("F9")
@pytest.mark.parametrize(
    "settings", [{"model.pooling": "attention"}, {"model.kind": "mean"}], ids=str
)
@pytest.mark.parametrize("how", ["none", "balanced"])
def test_the_gradient_of_the_logistic_loss_equals_differences(settings, how):
    model = build(SEVERAL, double=True, **settings, **{"model.class_weights": how})
    batch = batch_of(model, np.array([[1, 0, 1], [0, 0, 0], [1, 1, 1], [0, 1, 0], [1, 0, 0]]))
    network, generator = model.network, torch.Generator().manual_seed(0)
    network.loss(batch).total.backward()
    for parameter in network.parameters():
        direction = torch.randn(parameter.shape, generator=generator, dtype=torch.float64)
        values = []
        for step in (1e-5, -1e-5):
            with torch.no_grad():
                parameter += step * direction
                values.append(network.loss(batch).total.item())
                parameter -= step * direction
        slope = (values[0] - values[1]) / 2e-5
        assert (parameter.grad * direction).sum().item() == pytest.approx(slope, rel=1e-6, abs=1e-8)


def test_balanced_weights_are_those_of_scikit_learn():
    compute = pytest.importorskip("sklearn.utils.class_weight").compute_class_weight
    expected = compute("balanced", classes=np.array([0, 1]), y=np.array([0, 0, 0, 1, 1]))
    assert label_weights(ONE, "balanced")[1].tolist() == pytest.approx(expected.tolist())
    yes_or_no = label_weights(SEVERAL, "balanced")
    for k, count in enumerate(SEVERAL.counts):
        y = np.arange(5) < count
        expected = compute("balanced", classes=np.array([False, True]), y=y)
        assert yes_or_no[:, k].tolist() == pytest.approx(expected.tolist())


def test_weights_scale_the_surprise_of_their_label():
    plain, balanced = build(double=True), build(double=True, **{"model.class_weights": "balanced"})
    targets = np.array([0, 1, 1, 0, 1])
    nats = -np.log(plain.probabilities(TEXTS)[np.arange(5), targets])
    weights = np.array([5 / 6, 5 / 4])[targets]
    loss = balanced.network.loss(batch_of(balanced, targets))
    assert loss.total.item() == pytest.approx((nats * weights).sum(), rel=1e-7)


# ------------------------------------------------------------------ reasons


@pytest.mark.parametrize("settings", KINDS, ids=str)
@pytest.mark.parametrize("labels", [ONE, SEVERAL], ids=["one", "several"])
def test_gradient_times_input_equals_differences(settings, labels):
    model = build(labels, double=True, **settings)
    text = "the dog sat home"
    found = model.explain(text)
    batch = TextBatches(model.reader.encode([text]), batch_tokens=999).build(np.array([0]))
    vectors = model.network.embedder(batch).detach()
    k = model.labels.names.index(found.label)

    def log_odds(scale):
        logits = model.network.read(vectors * scale[None, :, None], batch.lengths).logits
        p = model.network.probabilities(logits)[0, k].item()
        return np.log(p / (1 - p))

    ones = torch.ones(vectors.size(1), dtype=torch.float64)
    for place, value in enumerate(found.gradient):
        step = torch.zeros_like(ones)
        step[place] = 1e-5
        slope = (log_odds(ones + step) - log_odds(ones - step)) / 2e-5
        assert value == pytest.approx(slope, rel=1e-5, abs=1e-8)


def test_shares_sum_to_one_and_keep_their_signs():
    found = build().explain("the cat sat")
    assert sum(map(abs, found.shares)) == pytest.approx(1.0)
    assert [np.sign(s) for s in found.shares] == [np.sign(g) for g in found.gradient]


def test_attention_is_one_weight_a_token_and_absent_without_attention():
    found = build().explain("the cat sat")
    assert found.tokens == ["the", "cat", "sat"]
    assert sum(found.attention) == pytest.approx(1.0, abs=1e-6)
    assert len(found.attention) == len(found.gradient) == 3
    assert build(**{"model.pooling": "max"}).explain("the cat sat").attention is None


def test_a_label_may_be_asked_for_and_two_labels_oppose_each_other():
    model = build(double=True)
    yes, no = (model.explain("the cat", label=name).gradient for name in ("yes", "no"))
    np.testing.assert_allclose(yes, -np.array(no), rtol=0, atol=1e-14)
    with pytest.raises(ConfigError, match=r"label is 'yse', but must be one of no, yes\. Did"):
        model.explain("x", label="yse")


@pytest.mark.parametrize("settings", KINDS, ids=str)
@pytest.mark.parametrize("text", ["The cat, sat.", "", "naïve İ 東京"])
def test_there_is_a_token_to_show_for_every_number(settings, text):
    found = build(**settings).explain(text)
    assert len(found.tokens) == len(found.gradient) >= 1


# ------------------------------------------------------------------ predictions, files, refusals


def test_predictions_are_the_likeliest_label_or_all_above_one_half():
    model = build()
    for row, said in zip(model.probabilities(TEXTS), model.predict(TEXTS), strict=True):
        assert said.labels == (model.labels.names[row.argmax()],)
        assert said.probabilities == (row.max(),)
    assert model.predict([]) == []
    several = build(SEVERAL).prediction(np.array([0.5, 0.49, 0.9]))
    assert several == (("a", "c"), (0.5, 0.9))


def test_a_text_beyond_all_measure_is_named_by_its_line():
    model = build()
    with pytest.raises(DataError, match=rf"in\.txt, line 9: the text has {MAX_TOKENS + 1} tokens"):
        model.probabilities(["x", "x " * (MAX_TOKENS + 1)], source="in.txt", lines=[8, 9])


def test_a_long_text_is_read():
    assert len(build().predict(["the cat " * 5000])) == 1


def test_characters_are_of_words():
    with pytest.raises(
        ConfigError, match=r'model.characters is "lstm", but .*tokens.level is "char"'
    ):
        settings_for(ClassifyRun, overrides={"model.characters": "lstm", "tokens.level": "char"})


def test_a_default_stays_when_another_setting_of_its_section_changes():
    run = settings_for(ClassifyRun, overrides={"train.epochs": 3, "tokens.level": "char"})
    plain = settings_for(ClassifyRun)
    assert run.train.learning_rate == plain.train.learning_rate
    assert run.tokens.lowercase == plain.tokens.lowercase


@pytest.mark.parametrize("labels", [ONE, SEVERAL], ids=["one", "several"])
@pytest.mark.parametrize("settings", KINDS, ids=str)
def test_files_describe_the_model(settings, labels):
    model = build(labels, **settings)
    with torch.device("meta"):
        again = ClassifyModel.restore(model.settings, model.files())
    assert again.labels == labels
    shapes = {name: value.shape for name, value in again.network.state_dict().items()}
    assert shapes == {name: v.shape for name, v in model.network.state_dict().items()}
    again.network.load_state_dict(model.network.state_dict(), assign=True)
    again.network.eval()
    np.testing.assert_array_equal(again.probabilities(TEXTS), model.probabilities(TEXTS))


def test_missing_or_wrong_files_are_named():
    files = build().files()
    with pytest.raises(ValueError, match=r"labels\.json is missing"):
        ClassifyModel.restore(build().settings, {})
    with pytest.raises(ValueError, match=r"labels\.json: the keys must be"):
        ClassifyModel.restore(build().settings, files | {"labels.json": b"{}"})
    wrong = json.dumps({"features": 10**9, "order": 2, "tokens": 5}).encode()
    with pytest.raises(ValueError, match=r"baselines\.json: features is 1000000000, but must be"):
        ClassifyModel.restore(build().settings, files | {"baselines.json": wrong})
