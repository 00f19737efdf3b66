"""Where the notes disagree: for every convention, what its setting changes, and its default."""

import math
import re
from collections.abc import Callable

import numpy as np
import pytest
import torch
from ngrams import counted
from torch.nn import functional
from translators import network

from unrolled.config import settings_for
from unrolled.config.sections import RecurrentSettings
from unrolled.decode.beam import STOPS
from unrolled.decode.hypothesis import normalised
from unrolled.errors import ConfigError
from unrolled.evaluate.perplexity import Counted, perplexity_scores
from unrolled.lab.equations.catalogue import entries
from unrolled.lab.equations.conventions import CONVENTIONS, GLOSSARY, NOTES
from unrolled.nn.attention import Attention
from unrolled.tasks import TASKS
from unrolled.tasks.classify.model import ClassifyModel
from unrolled.tasks.classify.settings import ClassifyRun
from unrolled.tasks.language.model import RecurrentLanguageModel
from unrolled.tasks.language.settings import LanguageRun
from unrolled.tasks.shared.stack import recurrent_stack
from unrolled.tasks.translate.search import Search
from unrolled.text.batch import Batch
from unrolled.text.labels import Labels
from unrolled.text.tokens import END, START, TextEncoder

pytestmark = pytest.mark.arithmetic

LINES = ["the cat is small", "the dog is small", "the cat is big", "a small cat is here"]
SOURCE = Batch.collate([[4, 5, 6, END]])


# ------------------------------------------------------------------ what each of them changes


def test_a_convention_is_what_it_is_said_to_be(convention):
    SHOWN[convention]()


def pytest_generate_tests(metafunc):
    if "convention" in metafunc.fixturenames:
        metafunc.parametrize("convention", [row.id for row in CONVENTIONS])


def _stacks_differ(setting: str, values: tuple[object, ...], **common: object) -> None:
    outputs = [_stacked(**common, **{setting: value}) for value in values]
    for k, y in enumerate(outputs):
        assert not any(np.array_equal(y, other) for other in outputs[:k])


def _stacked(**settings):
    """What a stack of these settings makes of an input, its weights those of their names."""
    stack = recurrent_stack(RecurrentSettings(hidden_size=3, dropout=0.0, **settings), 3).double()
    _fill(stack)
    with torch.no_grad():
        return stack(torch.ones(1, 4, 3, dtype=torch.float64))[0].numpy()


def _fill(module: torch.nn.Module) -> None:
    with torch.no_grad():
        for name, parameter in module.named_parameters():
            numbers = np.random.default_rng([*name.encode()]).standard_normal(parameter.shape)
            parameter.copy_(torch.from_numpy(numbers))


def _language(**model: object) -> RecurrentLanguageModel:
    torch.manual_seed(1)
    overrides = {"hidden_size": 6, "dropout": 0.0, "context": "line"} | model
    settings = settings_for(LanguageRun, overrides={f"model.{k}": v for k, v in overrides.items()})
    made = RecurrentLanguageModel.create(settings, TextEncoder.build(LINES, level="word"))
    made.network.double().eval()
    return made


def _classifier(labels: Labels, **model: object) -> ClassifyModel:
    overrides = {"hidden_size": 6, "embedding_size": 5} | model
    run = settings_for(ClassifyRun, overrides={f"model.{k}": v for k, v in overrides.items()})
    made = ClassifyModel.build(run, labels, LINES)
    made.network.double().eval()
    _fill(made.network)
    return made


def _one_label() -> Labels:
    return Labels(("a", "b", "c"), (2, 1, 1), 4, multi_label=False)


def _entry_holds(name: str) -> None:
    (entry,) = entries(id=name)
    assert entry.result().holds


def gate_names() -> None:
    gates = dict(zip(NOTES, GLOSSARY["LSTM input gate"], strict=True))
    assert gates["000"].startswith("g ")
    assert gates["003"] == "Γ_u"
    assert all(re.match(r"i\b", gates[note]) for note in ("001", "002", "004"))
    candidates = dict(zip(NOTES, GLOSSARY["LSTM candidate"], strict=True))
    assert (candidates["000"], candidates["001"], candidates["002"]) == ("C̃", "g", "c̃")
    assert "k" in candidates["004"]


def perplexity_is_exp_of_nats() -> None:
    nats, tokens = np.array([3.0, 7.5]), np.array([2, 5])
    counted_lines = Counted(2, 7, 0, 30, "word", "line")
    found = {score.name: score.value for score in perplexity_scores(nats, tokens, counted_lines)}
    in_nats = nats.sum() / tokens.sum()
    assert found["perplexity"] == pytest.approx(math.exp(in_nats), rel=1e-12)
    assert found["perplexity"] == pytest.approx(2 ** (in_nats / math.log(2)), rel=1e-12)
    assert found["bits_per_character"] == pytest.approx(nats.sum() / math.log(2) / 30, rel=1e-12)


def loss_is_a_mean_and_a_score_is_a_sum() -> None:
    model = _language()
    scores = model.score(LINES)
    total = sum(-score.log_probability for score in scores)
    encoded = model.encoder.encode_lines(LINES)
    assert total == pytest.approx(model.line_nats(encoded).sum(), rel=1e-12)
    loss = model.network.loss(Batch.collate([[START, *model._ids(line), END] for line in LINES]))
    assert loss.count == sum(score.tokens for score in scores)  # no padding among them
    assert loss.total.item() == pytest.approx(total, rel=1e-12)


def first_input_and_first_state() -> None:
    kinds = [_language(), _language(first_input="zero"), _language(first_state="learned")]
    for model in kinds:
        _fill(model.network)
    found = [model.score("the cat").log_probability for model in kinds]
    assert len(set(found)) == 3


def order_counts_the_predicted_word() -> None:
    lines = ["x a b c", "y a b d", "x e b f"]
    trigram, bigram = (counted(lines, order, "mle") for order in (3, 2))
    after = [{s.token for s in trigram.next(text, top=2) if s.probability} for text in _CONTEXTS]
    assert after == [{"c", "d"}, {"c", "d"}, {"f"}]  # two words before it, not three
    assert len([s for s in bigram.next("x a b", top=3) if s.probability]) == 3  # one


_CONTEXTS = ("x a b", "y a b", "x e b")


def pooling_makes_the_sentence_vector() -> None:
    values = []
    for how in ("last", "mean", "max"):
        values.append(_classifier(_one_label(), pooling=how).probabilities(LINES[:1]).tolist())
    assert values[0] != values[1] != values[2] != values[0]


def attention_asks_before_or_after_the_step() -> None:
    """Bahdanau's first weights come from s₀, before a token is read; Luong's from s₁, after."""
    for placement, sees in (("bahdanau", False), ("luong", True)):
        model = network(attention="general", placement=placement)
        state = model.encode(SOURCE)
        looked = [
            model._step(model._inputs(torch.tensor([[token]]))[:, 0], state)[1] for token in (4, 5)
        ]
        assert torch.equal(*looked) is not sees


def scaled_divides_by_the_root_of_the_features() -> None:
    chance = torch.Generator().manual_seed(1)
    s, h = (torch.randn(2, 3, 16, generator=chance, dtype=torch.float64) for _ in range(2))
    dot, scaled = (Attention(how, 16, 16).score(s, h) for how in ("dot", "scaled"))
    torch.testing.assert_close(scaled, dot / 4.0, rtol=1e-12, atol=0)


def length_is_normalised_by_a_power() -> None:
    assert Search().alpha == 0.7
    assert normalised(-6.0, 4, 1.0) == pytest.approx(-1.5)
    assert normalised(-6.0, 4, 0.7) == pytest.approx(-6.0 / 4**0.7)
    assert normalised(-6.0, 4, 0.0) == -6.0


def beams_keep_their_width() -> None:
    assert Search().width == 5
    options = TASKS["translate"].uses["predict"].options
    assert [options(beam=width).beam for width in (1, 2, 3, 10, 1000)] == [1, 2, 3, 10, 1000]


def the_sum_reaches_a_learned_first_state() -> None:
    x = torch.randn(1, 3, 2, generator=torch.Generator().manual_seed(1))
    fixed, learned = (
        recurrent_stack(RecurrentSettings(hidden_size=3, dropout=0.0, first_state=how), 2)
        for how in ("zero", "learned")
    )
    names = {name for name, _ in learned.named_parameters()}
    (extra, *more) = sorted(names - {name for name, _ in fixed.named_parameters()})
    torch.randn_like(learned(x)[0]).mul(learned(x)[0]).sum().backward()
    gradients = dict(learned.named_parameters())
    assert all(gradients[name].grad.abs().sum() > 0 for name in (extra, *more))


def scrambled_sentences_are_less_likely() -> None:
    model = counted(LINES, 3)
    good, *bad = model.score(["the cat is small", "small the cat is", "small the is cat"])
    assert all(good.log_probability > other.log_probability for other in bad)


def decoder_sees_what_it_is_given() -> None:
    for given, sees in (("token", True), ("all", True), ("none", False)):
        model = network(attention="none", bidirectional=False, decoder_input=given)
        state = model.encode(SOURCE)
        after = [model.step(torch.tensor([token]), state)[0] for token in (4, 5)]
        assert torch.equal(*after) is not sees
        assert (state.summary is not None) == (given == "all")


def a_language_model_reads_one_way() -> None:
    with pytest.raises(ConfigError, match="bidirectional"):
        _language(bidirectional=True)
    assert _language().network.backward_stack is None
    assert _language(direction="pair").network.backward_stack is not None


def search_stops_as_it_is_told() -> None:
    assert Search().stop == "ahead"
    options = TASKS["translate"].uses["predict"].options
    assert [options(stop=stop).stop for stop in STOPS] == [*STOPS]


def several_labels_are_logistic() -> None:
    one = _classifier(_one_label()).probabilities(LINES)
    np.testing.assert_allclose(one.sum(axis=1), 1.0, rtol=1e-12)
    labels = Labels(("a", "b", "c"), (2, 1, 1), 4, multi_label=True)
    several = _classifier(labels).probabilities(LINES)
    odds = np.log(several / (1 - several))
    np.testing.assert_allclose(functional.softmax(torch.tensor(odds), dim=1), one, rtol=1e-9)
    assert np.abs(several.sum(axis=1) - 1.0).min() > 1e-3


SHOWN: dict[str, Callable[[], None]] = {
    "X1": lambda: _stacks_differ("update", ("keep", "write"), cell="gru"),
    "X2": lambda: _stacks_differ("reset", ("after", "before"), cell="gru"),
    "X3": gate_names,
    "X4": lambda: _stacks_differ("output", ("tanh", "linear"), cell="lstm"),
    "X5": lambda: _stacks_differ("bias", (True, False), cell="lstm"),
    "X6": lambda: _stacks_differ("activation", ("tanh", "sigmoid", "relu"), cell="rnn"),
    "X7": lambda: _entry_holds("D7"),
    "X8": perplexity_is_exp_of_nats,
    "X9": loss_is_a_mean_and_a_score_is_a_sum,
    "X10": first_input_and_first_state,
    "X11": order_counts_the_predicted_word,
    "X12": pooling_makes_the_sentence_vector,
    "X13": attention_asks_before_or_after_the_step,
    "X14": lambda: _entry_holds("L6"),
    "X15": scaled_divides_by_the_root_of_the_features,
    "X16": length_is_normalised_by_a_power,
    "X17": beams_keep_their_width,
    "X18": lambda: _stacks_differ("combine", ("concat", "mean"), bidirectional=True),
    "X19": the_sum_reaches_a_learned_first_state,
    "X20": scrambled_sentences_are_less_likely,
    "X21": decoder_sees_what_it_is_given,
    "X22": a_language_model_reads_one_way,
    "X23": search_stops_as_it_is_told,
    "X24": several_labels_are_logistic,
}


# ------------------------------------------------------------------ what is said of them


def test_every_convention_names_a_setting_that_there_is():
    assert [row.id for row in CONVENTIONS] == [f"X{n}" for n in range(1, 25)]
    models = {
        name
        for task in TASKS.values()
        for name in task.settings.model_fields["model"].annotation.model_fields
    }
    for row in CONVENTIONS:
        for name in re.findall(r"model\.(\w+)", row.setting):
            assert name in models, row.id
    options = {
        field
        for task in TASKS.values()
        for use in task.uses.values()
        for field in use.options.model_fields
    }
    for row in CONVENTIONS:
        for name in re.findall(r"^--(\w+)", row.setting):
            assert name in options, row.id


SAID = {  # tasks whose defaults the table says, by setting
    **dict.fromkeys(("update", "reset", "output", "activation", "bias", "first_state"), "lm"),
    **dict.fromkeys(("first_input", "direction"), "lm"),
    **dict.fromkeys(("pooling", "combine"), "classify"),
    **dict.fromkeys(("placement", "decoder_input"), "translate"),
}


@pytest.mark.parametrize("setting", SAID)
def test_defaults_are_those_that_are_said(setting):
    rows = [row for row in CONVENTIONS if setting in re.findall(r"model\.(\w+)", row.setting)]
    model = TASKS[SAID[setting]].settings.model_fields["model"].annotation
    default = model.model_fields[setting].default
    usual = {"update": "keep", "reset": "after", "output": "tanh", "activation": "tanh"}
    default = usual[setting] if default is None else default
    assert any(str(default).lower() in re.findall(r"\w+", row.default) for row in rows)


def test_the_glossary_has_a_word_for_every_note():
    assert all(len(names) == len(NOTES) for names in GLOSSARY.values())
