import math
from itertools import product

import numpy as np
import pytest
import torch
from networks import numeric_gradient, relative_error

from unrolled.config import parse_overrides, settings_for
from unrolled.errors import ConfigError
from unrolled.tasks.language.model import RecurrentLanguageModel
from unrolled.tasks.language.settings import LanguageRun
from unrolled.tasks.shared.language_job import training_batches
from unrolled.tasks.shared.next_token import STEPS_AT_ONCE
from unrolled.text.batch import Batch
from unrolled.text.ragged import Ragged
from unrolled.text.tokens import END, PAD, START, EncodedLines, TextEncoder, one_hot

pytestmark = pytest.mark.arithmetic

LINES = [
    "the cat is small",
    "the cats are small",
    "a cat sat",
    "b",
    "",
    "the small cat sat on a mat",
]


def build(*overrides, level="word", dtype=torch.float64, lines=LINES):
    torch.manual_seed(1)
    settings = settings_for(
        LanguageRun,
        overrides=parse_overrides(["model.hidden_size=6", f"tokens.level={level}", *overrides]),
    )
    model = RecurrentLanguageModel.create(settings, TextEncoder.build(lines, level=level))
    model.network.to(dtype).eval()
    return model


VARIANTS = [
    ("model.cell=rnn",),
    ("model.cell=gru", "model.reset=before", "model.layers=2"),
    ("model.cell=lstm", "model.tied=false", "model.embedding_size=4"),
    ("model.cell=lstm", "model.layers=3", "model.first_state=learned"),
    ("model.cell=lstm", "model.context=line"),
    ("model.cell=lstm", "model.context=line", "model.first_input=zero"),
    ("model.cell=gru", "model.context=line", "model.direction=pair"),
]


def by_stepping(model, ids):
    """Surprise at ids, fed one by one through the Stepper."""
    state, total, token = model.network.read(torch.zeros(1, 0)), 0.0, model.network.first
    for wanted in ids:
        log_p, state = model.network.step(torch.tensor([token]), state)
        assert log_p.exp().sum().item() == pytest.approx(1.0, abs=1e-9)
        total -= log_p[0, wanted].item()
        token = wanted
    return total


@pytest.mark.parametrize("overrides", VARIANTS)
def test_score_equals_the_product_of_steps(overrides):
    model = build(*overrides)
    for score in model.score(LINES):
        ids = [*model.encoder.encode(score.text).tolist(), END]
        assert -score.log_probability == pytest.approx(by_stepping(model, ids), rel=1e-12)
        assert score.tokens == len(ids)


@pytest.mark.row("F3")
@pytest.mark.parametrize("overrides", VARIANTS)
def test_loss_is_the_sum_over_lines_and_counts_real_tokens(overrides):
    model = build(*overrides, "model.context=line")
    encoded = model.encoder.encode_lines(LINES)
    nats = count = 0.0
    for batch in training_batches(model, encoded).epoch(1, 0):
        loss = model.network.loss(batch)
        nats, count = nats + loss.total.item(), count + loss.count
    expected = model.line_nats(encoded).sum()
    directions = 1
    if model.network.backward_stack is not None:
        expected, directions = expected + model.line_nats(encoded, backward=True).sum(), 2
    assert nats == pytest.approx(expected, rel=1e-12)
    assert count == directions * len(encoded.ids)


def test_lines_hand_no_state_on_and_streams_do():
    batch = Batch.collate([[START, 4, 5, END]])
    assert build("model.context=line").network.loss(batch).carry is None
    carry = build().network.loss(batch).carry
    assert carry is not None
    assert not any(part.requires_grad for part in carry)


@pytest.mark.row("E-l")
@pytest.mark.parametrize("overrides", VARIANTS[:4])
@pytest.mark.parametrize("steps", [1, 3, 100])
def test_a_stream_in_pieces_equals_one_long_run(overrides, steps):
    model = build(*overrides, f"train.steps={steps}", f"train.batch_tokens={steps}")
    encoded = model.encoder.encode_lines(LINES)
    total, carry = 0.0, None
    for batch in training_batches(model, encoded).epoch(1, 0):
        loss = model.network.loss(batch, carry)
        total, carry = total + loss.total.item(), loss.carry
    assert total == pytest.approx(by_stepping(model, encoded.ids.tolist()), rel=1e-12)
    assert model.stream_nats(encoded).sum() == pytest.approx(total, rel=1e-12)


@pytest.mark.parametrize("overrides", VARIANTS)
def test_gradients_of_a_ragged_batch_equal_one_by_one_runs(overrides):
    model = build(*overrides, "model.context=line")
    rows = [[model.network.first, *model.encoder.encode(line).tolist(), END] for line in LINES]
    parameters = list(model.network.parameters())
    together = torch.autograd.grad(model.network.loss(Batch.collate(rows)).total, parameters)
    apart = [torch.zeros_like(p) for p in parameters]
    for row in rows:
        nats = model.network.loss(Batch.collate([row])).total
        for total, g in zip(apart, torch.autograd.grad(nats, parameters), strict=True):
            total += g
    for a, b in zip(together, apart, strict=True):
        torch.testing.assert_close(a, b, rtol=1e-10, atol=1e-10)


@pytest.mark.row("A4")
@pytest.mark.parametrize("overrides", VARIANTS)
def test_gradients_equal_finite_differences(overrides):
    model = build(*overrides, "model.hidden_size=3", lines=["a b c"])
    first = model.network.first
    batch = Batch.collate([[first, 4, 5, 6, END], [first, 5, END]])
    for parameter in model.network.parameters():  # large enough for every layer to matter
        torch.nn.init.normal_(parameter, std=0.5)
    for parameter in model.network.parameters():
        (gradient,) = torch.autograd.grad(model.network.loss(batch).total, parameter)
        numeric = numeric_gradient(lambda: model.network.loss(batch).total, parameter.data)
        assert relative_error(gradient, numeric) < 1e-6


@pytest.mark.parametrize("overrides", VARIANTS)
def test_a_model_sees_what_came_before_and_nothing_later(overrides):
    model = build(*overrides)
    for parameter in model.network.parameters():
        torch.nn.init.normal_(parameter, std=0.5)
    right = [model.network.first, 4, 5, 6, 7, END]
    changed = [[*right[:place], 8, *right[place + 1 :]] for place in range(1, 5)]
    nats, _ = model.network.token_nats(Batch.collate([right, *changed]))
    before, *others = nats.view(5, 5)
    for place, after in enumerate(others):
        torch.testing.assert_close(after[:place], before[:place], rtol=1e-12, atol=1e-13)
        assert (after - before)[place:].abs().min() > 1e-8


@pytest.mark.row("E-h")
def test_the_forward_half_of_a_pair_is_a_plain_model():
    model = build("model.context=line", "model.direction=pair")
    plain = build("model.context=line")
    plain.network.load_state_dict(
        {k: v for k, v in model.network.state_dict().items() if not k.startswith("backward")}
    )
    for one, other in zip(plain.score(LINES), model.score(LINES), strict=True):
        assert one.log_probability == pytest.approx(other.log_probability, rel=1e-12)


@pytest.mark.row("E-h")
def test_the_backward_half_reads_from_the_end():
    model = build("model.context=line", "model.direction=pair")
    forward = build("model.context=line")
    state = model.network.state_dict()
    forward.network.load_state_dict(
        {
            name: state[name.replace("stack.", "backward_stack.")]
            for name in forward.network.state_dict()
        }
    )
    mirrored = [" ".join(reversed(line.split())) for line in LINES]
    np.testing.assert_allclose(
        model.line_nats(model.encoder.encode_lines(LINES), backward=True),
        forward.line_nats(forward.encoder.encode_lines(mirrored)),
        rtol=1e-12,
    )


def every_line(V, limit):
    """All lines of at most so many tokens, and END."""
    others = [token for token in range(V) if token != END]
    for length in range(limit + 1):
        for tokens in product(others, repeat=length):
            yield [*tokens, END]


def stepped_nats(network, lines):
    """Surprise at each token of lines (B, T), all fed through the Stepper side by side."""
    wanted = Batch.collate(lines).tokens  # (B, T)
    token, found = torch.full((len(lines),), network.first), []
    state = network.read(torch.zeros(len(lines), 0, dtype=torch.int64))
    for following in wanted.T:
        log_p, state = network.step(token, state)
        found.append(-log_p.gather(1, following[:, None])[:, 0])
        token = following
    return torch.stack(found, dim=1)


@pytest.mark.parametrize("overrides", VARIANTS)
def test_probabilities_of_all_lines_sum_to_one(overrides):
    """Lines of four tokens stand for all that begin so: their END is left out."""
    model = build(*overrides, lines=["a b"])
    for parameter in model.network.parameters():  # far from uniform
        torch.nn.init.normal_(parameter, std=0.5)
    lines = [*every_line(len(model.encoder.vocabulary), 4)]
    counted = [len(line) - (len(line) == 5) for line in lines]
    lengths = np.array([len(line) for line in lines])
    ids = np.concatenate(lines).astype(np.int32)
    encoded = EncodedLines(Ragged.joined(ids, lengths), 0)
    scored = np.split(model.network.nats_in_lines(encoded), np.cumsum(lengths)[:-1])
    stepped = stepped_nats(model.network, lines).numpy()
    total = 0.0
    for nats, steps, count in zip(scored, stepped, counted, strict=True):
        np.testing.assert_allclose(nats, steps[: len(nats)], rtol=1e-12, atol=1e-13)
        total += math.exp(-nats[:count].sum())
    assert total == pytest.approx(1.0, abs=1e-12)
    whole = [nats.sum() for nats in scored]
    np.testing.assert_allclose(model.line_nats(encoded), whole, rtol=1e-12)


@pytest.mark.row("I3")
@pytest.mark.parametrize("context", ["line", "stream"])
def test_a_first_input_of_zero_is_a_zero_vector(context):
    model = build(f"model.context={context}", "model.first_input=zero")
    assert model.network.first == PAD
    log_p, _ = model.network.step(torch.tensor([PAD]), model.network.stack.start(1))
    h, _ = model.network.stack(torch.zeros(1, 1, 6, dtype=torch.float64))
    expected = (h[:, 0] @ model.network.output_weight.t() + model.network.bias).log_softmax(1)
    torch.testing.assert_close(log_p, expected)
    (first, *_) = model.network.nats_in_lines(model.encoder.encode_lines(["the cat"]))
    if context == "stream":
        first = model.stream_nats(model.encoder.encode_lines(["the cat"]))[0]
    token = int(model.encoder.encode("the cat")[0])
    assert first == pytest.approx(-float(log_p[0, token]), abs=1e-12)
    assert build(f"model.context={context}").network.first == (START if context == "line" else END)


@pytest.mark.row("I2")
def test_generation_is_the_same_for_a_seed_and_argmax_without_temperature():
    model = build()
    assert model.generate("the", seed=3) == model.generate("the", seed=3)
    assert model.generate("the", seed=3) != model.generate("the", seed=4)
    greedy = model.generate("the", tokens=8, temperature=0.0)[0]
    text = "the"
    for _ in range(8):
        token = model.next(text, top=1)[0].token
        text = text + "\n" if token == "</s>" else f"{text} {token}"
    assert greedy.split() == text.split()


def test_more_texts_than_are_written_at_once():
    texts = build().generate("the", tokens=3, count=1100, seed=1)
    assert len(texts) == 1100
    assert len(set(texts)) > 500


def test_a_seed_beyond_the_generators_is_refused():
    with pytest.raises(ConfigError, match="seed is -1, but must be in 0"):
        build().generate("the", seed=-1)


def test_generation_keeps_the_prompt_and_never_writes_control_tokens():
    model = build(level="char")
    for text in model.generate("the\nca", tokens=300, count=3, seed=1):
        assert text.startswith("the\nca")
        assert len(text) == 6 + 300
        assert "<" not in text


@pytest.mark.row("A6")
def test_a_model_of_lines_stops_at_the_end_of_the_line():
    model = build("model.context=line")
    texts = model.generate("", tokens=500, count=20, seed=1)
    assert len(set(map(len, texts))) > 1
    assert not any("\n" in text for text in texts)


def test_a_prompt_is_taken_as_it_is():
    model = build()
    assert model.generate("the  zebra", tokens=1, seed=1)[0].startswith("the  zebra ")


def test_generated_frequencies_match_probabilities():
    model = build(lines=["a b c d"])
    texts = model.generate("a", tokens=1, count=20_000, seed=1)
    seen = {token: 0 for token in ("a", "b", "c", "d", "</s>")}
    for text in texts:
        seen[text[1:].strip() or "</s>"] += 1
    p = {s.token: s.probability for s in model.next("a", top=10)}
    mass = sum(p.values())  # unknown and control tokens are left out
    chi = sum((seen[t] - 20_000 * p[t] / mass) ** 2 / (20_000 * p[t] / mass) for t in seen)
    assert chi < 13.28  # p > 0.01 at 4 degrees


@pytest.mark.row("I7")
def test_suggestions_are_the_likeliest_in_order():
    model = build()
    best = model.next("the cat", top=3)
    assert [s.probability for s in best] == sorted((s.probability for s in best), reverse=True)
    whole = model.next("the cat", top=1000)
    assert [s.token for s in whole[:3]] == [s.token for s in best]
    for one, other in zip(whole, best, strict=False):
        assert one.probability == pytest.approx(other.probability, rel=1e-12)
    assert len(whole) == len(model.encoder.vocabulary) - 3
    assert 0.0 < sum(s.probability for s in whole) < 1.0


def test_surprise_lists_every_token_and_line_end():
    model = build()
    tokens, nats = model.surprise("the cat\nsat")
    assert tokens == ["the", "cat", "</s>", "sat", "</s>"]
    ids = model.encoder.encode_lines(["the cat", "sat"]).ids.tolist()
    assert sum(nats) == pytest.approx(by_stepping(model, ids), rel=1e-12)


def test_a_line_longer_than_a_block_is_scored_like_any_other():
    model = build(level="char", lines=["abc"])
    text = "abcabcbac" * 100  # 900 tokens, over several pieces
    ids = [*model.encoder.encode(text).tolist(), END]
    (score,) = model.score([text])
    assert -score.log_probability == pytest.approx(by_stepping(model, ids), rel=1e-12)


def test_scores_do_not_depend_on_neighbours():
    model = build()
    alone = [model.score([line])[0].log_probability for line in LINES]
    together = [score.log_probability for score in model.score(LINES)]
    assert alone == pytest.approx(together, rel=1e-12)
    assert model.score([]) == []


def test_unknown_tokens_are_counted():
    (score,) = build().score(["the zebra <s> sat"])
    assert (score.tokens, score.unknown) == (5, 2)
    assert score.perplexity == pytest.approx(math.exp(-score.log_probability / 5))


@pytest.mark.row("R8")
@pytest.mark.parametrize("tied", [True, False])
@pytest.mark.parametrize(("cell", "gates"), [("rnn", 1), ("gru", 3), ("lstm", 4)])
def test_parameter_counts(cell, gates, tied):
    """Layer: gates · (h (h + inputs) + 2 h), torch.nn having two biases; embedding V d; bias V;
    the softmax's V h where it has a matrix of its own."""
    h, d = 6, 6 if tied else 4
    V = len({*" ".join(LINES).split()}) + 4  # the special tokens

    def count(*overrides):
        given = [f"model.cell={cell}", f"model.tied={str(tied).lower()}"]
        return build(*given, f"model.embedding_size={d}", *overrides).about()["parameters"]

    others = V * d + V + (0 if tied else V * h)
    assert count() == others + gates * (h * (h + d) + 2 * h)
    assert count("model.layers=3") - count() == 2 * gates * (h * (h + h) + 2 * h)
    assert count("model.bias=false") == others + gates * h * (h + d)


@pytest.mark.row("A4")
def test_an_embedding_is_the_product_with_a_one_hot():
    network = build("model.tied=false", "model.embedding_size=4").network
    V = len(network.embedding.weight)
    ids = torch.tensor([[4, 7, 4], [END, 5, V - 1]])
    hot = torch.from_numpy(one_hot(ids, V)).double()  # (2, 3, V)
    product = hot @ network.embedding.weight  # (2, 3, E), each a sum of one number and zeros
    torch.testing.assert_close(network.embed(ids), product, rtol=1e-15, atol=0)
    network.loss(Batch.collate([[END, 4, 7, 4, 8], [END, 5, 6]])).total.backward()
    used = network.embedding.weight.grad.abs().sum(1).nonzero().flatten().tolist()
    assert used == [END, 4, 5, 7]  # 6 and 8 are predicted, not read


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"tokens": 0}, "tokens is 0, but must be at least 1"),
        ({"count": 0}, "count is 0, but must be at least 1"),
        ({"tokens": 10**7, "count": 2}, "at most 10000000 tokens"),
    ],
)
def test_wrong_amounts_are_refused(arguments, message):
    with pytest.raises(ConfigError, match=message):
        build().generate("the", **arguments)
    with pytest.raises(ConfigError, match="top is 0, but must be at least 1"):
        build().next("the", top=0)


@pytest.mark.row("H3")
def test_dropout_acts_in_training_alone():
    model = build("model.dropout=0.5", "model.layers=2")
    batch = Batch.collate([[END, 4, 5, 6, END]])
    assert model.network.loss(batch).total == model.network.loss(batch).total
    model.network.train()
    assert model.network.loss(batch).total != model.network.loss(batch).total


@pytest.mark.parametrize("length", [1, 2, 9, STEPS_AT_ONCE + 3])
def test_what_comes_next_is_what_a_step_says(length):
    network = build("model.layers=2").network
    tokens = torch.randint(4, 9, (2, length), generator=torch.Generator().manual_seed(1))
    expected, _ = network.step(tokens[:, -1], network.read(tokens[:, :-1]))
    torch.testing.assert_close(network.next_log_p(tokens), expected, rtol=0, atol=1e-12)
