"""Fixed-window language models: their equations, their window, and the same uses as any other."""

import math

import numpy as np
import pytest
import torch
from networks import numeric_gradient, relative_error

from unrolled.config import parse_overrides, settings_for
from unrolled.errors import ConfigError
from unrolled.tasks.shared.language_job import training_batches
from unrolled.tasks.window.model import WindowLanguageModel
from unrolled.tasks.window.settings import WindowRun
from unrolled.text.batch import Batch
from unrolled.text.tokens import END, START, TextEncoder

pytestmark = pytest.mark.arithmetic

LINES = [
    "the cat is small",
    "the cats are small",
    "a cat sat",
    "b",
    "",
    "the small cat sat on a mat",
]
VARIANTS = [
    ("model.window=3", "model.tied=true"),
    ("model.window=1", "model.embedding_size=4"),
    ("model.window=4", "model.embedding_size=3", "model.direct=true"),
    ("model.window=2", "model.tied=true", "model.direct=true"),
    ("model.window=3", "model.tied=true", "model.context=stream"),
    ("model.window=12", "model.context=stream", "model.direct=true"),  # longer than any line
]
every_variant = pytest.mark.parametrize("overrides", VARIANTS)


def build(*overrides, lines=LINES, level="word"):
    """In float64 and with every weight large enough to matter, W³ too."""
    torch.manual_seed(1)
    chosen = ["model.hidden_size=5", f"tokens.level={level}", *overrides]
    settings = settings_for(WindowRun, overrides=parse_overrides(chosen))
    model = WindowLanguageModel.create(settings, TextEncoder.build(lines, level=level))
    model.network.to(torch.float64).eval()
    for parameter in model.network.parameters():
        torch.nn.init.normal_(parameter, std=0.5)
    return model


def rows_of(model, lines=LINES):
    return [[model.network.first, *model.encoder.encode(line).tolist(), END] for line in lines]


def chances(network, window):
    """The equations, for one window, in NumPy: the chance of each next token (V,)."""
    w = {name: value.detach().numpy() for name, value in network.state_dict().items()}
    x = np.concatenate([w["embedding.weight"][token] for token in window])
    h = np.tanh(w["hidden.weight"] @ x + w["hidden.bias"])
    z = w.get("weight", w["embedding.weight"]) @ h + w["bias"]
    if "direct" in w:
        z = z + w["direct"] @ x
    return np.exp(z) / np.exp(z).sum()


def nats_by_hand(model, ids):
    """Surprise at ids, each window written out."""
    n, first = model.settings.model.window, model.network.first
    past = [first] * n
    total = 0.0
    for wanted in ids:
        total -= math.log(chances(model.network, past[-n:])[wanted])
        past.append(wanted)
    return total


def nats_by_stepping(model, ids):
    state, total, token = model.network.read(torch.zeros(1, 0).long()), 0.0, model.network.first
    for wanted in ids:
        log_p, state = model.network.step(torch.tensor([token]), state)
        assert log_p.exp().sum().item() == pytest.approx(1.0, abs=1e-12)
        total -= log_p[0, wanted].item()
        token = wanted
    return total


@every_variant
def test_score_equals_the_equations_and_the_product_of_steps(overrides):
    model = build(*overrides)
    for score in model.score(LINES):
        ids = [*model.encoder.encode(score.text).tolist(), END]
        assert -score.log_probability == pytest.approx(nats_by_hand(model, ids), rel=1e-12)
        assert -score.log_probability == pytest.approx(nats_by_stepping(model, ids), rel=1e-12)
        assert score.tokens == len(ids)


@pytest.mark.row("B13", "B14")
@every_variant
def test_gradients_equal_finite_differences(overrides):
    model = build(*overrides, "model.hidden_size=3", lines=["a b c"])
    first = model.network.first
    batch = Batch.collate([[first, 4, 5, 6, END], [first, 5, END]])
    scale = torch.randn((), dtype=torch.float64)  # a random upstream gradient

    def loss():
        return scale * model.network.loss(batch).total

    for parameter in model.network.parameters():
        (gradient,) = torch.autograd.grad(loss(), parameter)
        assert relative_error(gradient, numeric_gradient(loss, parameter.data)) < 1e-6


@pytest.mark.row("B14")
@pytest.mark.parametrize("tied", ["true", "false"])
def test_with_direct_connections_of_zero_it_is_the_plain_model(tied):
    plain = build("model.window=3", f"model.tied={tied}")
    direct = build("model.window=3", f"model.tied={tied}", "model.direct=true")
    zero = torch.zeros_like(direct.network.direct)
    direct.network.load_state_dict({**plain.network.state_dict(), "direct": zero})
    encoded = plain.encoder.encode_lines(LINES)
    np.testing.assert_allclose(
        direct.network.nats_in_lines(encoded), plain.network.nats_in_lines(encoded), rtol=1e-13
    )
    torch.nn.init.normal_(direct.network.direct)
    assert abs(direct.line_nats(encoded) - plain.line_nats(encoded)).min() > 1e-6


def test_direct_connections_start_at_zero():
    settings = settings_for(WindowRun, overrides={"model.direct": True, "model.hidden_size": 4})
    model = WindowLanguageModel.create(settings, TextEncoder.build(LINES, level="word"))
    assert not model.network.direct.any()


@every_variant
def test_loss_is_the_sum_over_lines_and_counts_real_tokens(overrides):
    model = build(*overrides, "model.context=line", "train.batch_tokens=12")
    encoded = model.encoder.encode_lines(LINES)
    losses = [model.network.loss(batch) for batch in training_batches(model, encoded).epoch(1, 0)]
    assert len(losses) > 1
    assert all(loss.carry is None for loss in losses)
    assert sum(loss.count for loss in losses) == len(encoded.ids)
    nats = sum(loss.total.item() for loss in losses)
    assert nats == pytest.approx(model.line_nats(encoded).sum(), rel=1e-12)


@every_variant
@pytest.mark.parametrize("steps", [1, 3, 100])
def test_a_stream_in_pieces_equals_one_long_run(overrides, steps):
    model = build(
        *overrides, "model.context=stream", f"train.steps={steps}", f"train.batch_tokens={steps}"
    )
    encoded = model.encoder.encode_lines(LINES)
    total, carry = 0.0, None
    for batch in training_batches(model, encoded).epoch(1, 0):
        loss = model.network.loss(batch, carry)
        total, carry = total + loss.total.item(), loss.carry
    assert total == pytest.approx(nats_by_hand(model, encoded.ids.tolist()), rel=1e-12)
    assert model.stream_nats(encoded).sum() == pytest.approx(total, rel=1e-12)


@every_variant
def test_gradients_of_a_ragged_batch_equal_one_by_one_runs(overrides):
    model = build(*overrides)
    parameters = list(model.network.parameters())
    together = torch.autograd.grad(
        model.network.loss(Batch.collate(rows_of(model))).total, parameters
    )
    apart = [torch.zeros_like(p) for p in parameters]
    for row in rows_of(model):
        nats = model.network.loss(Batch.collate([row])).total
        for total, g in zip(apart, torch.autograd.grad(nats, parameters), strict=True):
            total += g
    for a, b in zip(together, apart, strict=True):
        torch.testing.assert_close(a, b, rtol=1e-10, atol=1e-10)


def test_carried_tokens_are_each_rows_own_last():
    network = build("model.window=3", "model.context=stream").network
    rows = [[END, 4, 5, 6, 7], [END, 4, 5], [END]]
    _, (last,) = network.token_nats(Batch.collate(rows))
    # the last token of a row is predicted only; the next batch begins with it
    assert last.tolist() == [[4, 5, 6], [END, END, 4], [END, END, END]]


def test_scores_do_not_depend_on_neighbours():
    model = build("model.window=3")
    alone = [model.score([line])[0].log_probability for line in LINES]
    together = [score.log_probability for score in model.score(LINES)]
    assert alone == pytest.approx(together, rel=1e-12)
    assert model.score([]) == []


@pytest.mark.row("B4")
@pytest.mark.parametrize("window", [1, 2, 3])
def test_only_the_window_matters(window):
    network = build(f"model.window={window}").network
    past = torch.tensor([[START, 4, 5, 6, 7, 8, 9]])
    token = torch.tensor([4])
    expected, _ = network.step(token, network.read(past))
    for place in range(past.size(1)):
        changed = past.clone()
        changed[0, place] = 10
        seen, _ = network.step(token, network.read(changed))
        inside = place >= past.size(1) - (window - 1)
        assert torch.equal(seen, expected) is not inside


@pytest.mark.row("B15")
def test_each_slot_has_its_own_weights():
    network = build("model.window=3").network
    outputs = [
        network.step(torch.tensor([6]), (torch.tensor([[0, *order]]),))[0]
        for order in ([4, 5], [5, 4])
    ]
    assert (outputs[0] - outputs[1]).abs().max() > 1e-3


@pytest.mark.row("B15")
@pytest.mark.parametrize("direct", [False, True])
@pytest.mark.parametrize("tied", [False, True])
def test_parameter_counts(tied, direct):
    """V E embeddings, H (n E + 1) hidden, V output biases; U and W³ where they are apart."""
    h, d = 5, 5 if tied else 4

    def count(window):
        given = [f"model.window={window}", f"model.tied={str(tied).lower()}"]
        given += [f"model.direct={str(direct).lower()}", f"model.embedding_size={d}"]
        model = build(*given)
        return model.about()["parameters"], len(model.encoder.vocabulary)

    parameters, V = count(3)
    output = V + (0 if tied else V * h) + (V * 3 * d if direct else 0)
    assert parameters == V * d + h * (3 * d + 1) + output
    assert count(4)[0] - parameters == h * d + (V * d if direct else 0)


def test_rows_of_a_state_can_be_taken_in_any_order():
    network = build("model.window=2").network
    state = network.read(torch.tensor([[4, 5], [6, 7]]))
    (taken,) = network.select(state, torch.tensor([1, 0, 1]))
    assert taken.tolist() == [[6, 7], [4, 5], [6, 7]]


def test_a_text_begins_with_start_in_lines_and_with_a_line_end_in_streams():
    assert build("model.window=2").network.read(torch.zeros(1, 0).long())[0].tolist() == [[2, 2]]
    stream = build("model.window=2", "model.context=stream").network
    assert stream.read(torch.tensor([[7]]))[0].tolist() == [[END, 7]]


def test_it_suggests_writes_and_tells_surprise():
    model = build("model.window=3")
    best = model.next("the cat", top=3)
    ids = [START, *model.encoder.encode("the cat").tolist()]
    p = chances(model.network, ids)
    assert [s.probability for s in best] == pytest.approx(
        sorted(np.delete(p, [0, 1, 2]), reverse=True)[:3]
    )
    assert model.generate("the", seed=3) == model.generate("the", seed=3)
    assert model.generate("the", count=9, seed=3) != model.generate("the", count=9, seed=4)
    tokens, nats = model.surprise("the cat\nsat")
    assert tokens == ["the", "cat", "</s>", "sat", "</s>"]
    lines = [-score.log_probability for score in model.score(["the cat", "sat"])]
    assert [sum(nats[:3]), sum(nats[3:])] == pytest.approx(lines, rel=1e-12)


def test_a_line_longer_than_a_block_is_scored_like_any_other():
    model = build("model.window=7", level="char", lines=["abc"])
    text = "abcabcbac" * 100
    ids = [*model.encoder.encode(text).tolist(), END]
    (score,) = model.score([text])
    assert -score.log_probability == pytest.approx(nats_by_stepping(model, ids), rel=1e-12)


@pytest.mark.parametrize(
    ("hidden", "embeddings", "acts"), [(0.5, 0.0, True), (0.0, 0.5, True), (0.0, 0.0, False)]
)
def test_dropout_acts_in_training_alone(hidden, embeddings, acts):
    network = build(
        "model.window=3", f"model.dropout={hidden}", f"model.input_dropout={embeddings}"
    ).network
    batch = Batch.collate([[START, 4, 5, 6, END]])
    assert network.loss(batch).total == network.loss(batch).total
    network.train()
    assert (network.loss(batch).total != network.loss(batch).total) == acts


@pytest.mark.parametrize(
    ("overrides", "message"),
    [
        (
            ["model.tied=true", "model.embedding_size=7"],
            r"model\.embedding_size is 7 and model\.hidden_size is 5, but model\.tied shares one "
            r"matrix between them\. Make them equal or set model\.tied to false\.",
        ),
        (["model.window=0"], r"model\.window is 0, but must be greater than or equal to 1"),
        (["model.window=1025"], r"model\.window is 1025, but must be less than or equal to 1024"),
        (["model.context=text"], r"model\.context is 'text', but must be one of line, stream"),
        (["model.dropout=1.0"], r"model\.dropout is 1\.0, but must be less than 1"),
        (["model.input_dropout=-1"], r"model\.input_dropout is -1, but must be greater than or"),
    ],
)
def test_wrong_settings_are_refused(overrides, message):
    with pytest.raises(ConfigError, match=message):
        build(*overrides)
