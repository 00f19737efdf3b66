"""The studies: what they claim, on sizes that a test can afford."""

import json

import numpy as np
import pytest
import torch

from unrolled.errors import ConfigError, DataError
from unrolled.lab.activations import activation_curves
from unrolled.lab.agreement import judged, read_pairs
from unrolled.lab.clipping import Clipping, clipping, gradient, loss
from unrolled.lab.equations.tools import slope
from unrolled.lab.gradients import KINDS, Flow, flow
from unrolled.lab.half_life import half_life
from unrolled.lab.layers import layers
from unrolled.lab.memory import TASKS, memory, ngram_tried, tried
from unrolled.lab.memory_apart import memory_apart
from unrolled.lab.trained_gradients import text_gradients
from unrolled.nn.cells import GRUCell, LSTMCell
from unrolled.nn.recurrent import Recurrent
from unrolled.tasks.run import train

pytestmark = [pytest.mark.arithmetic, pytest.mark.trains]


# ------------------------------------------------------------------ gradients


@pytest.fixture(scope="module")
def flows():
    names = ("rnn sigmoid", "rnn tanh", "rnn linear", "lstm f=σ(0)", "lstm f=σ(4)")
    return {name: flow(KINDS[name], hidden=16, steps=101, seed=1) for name in names}


@pytest.mark.row("G4", "R2")
def test_gradients_of_a_plain_network_vanish_and_those_of_an_open_lstm_do_not(flows):
    for name in ("rnn sigmoid", "rnn tanh"):
        assert flows[name].norms[100] < 1e-12 * flows[name].norms[0]
        assert flows[name].slope < -0.3  # a line, on a scale of logarithms
    open_gates = flows["lstm f=σ(4)"].norms
    assert open_gates.max() / open_gates.min() < 10.0
    assert flows["lstm f=σ(0)"].norms[100] < 1e-12


@pytest.mark.row("G2")
def test_no_gradient_passes_its_bound(flows):
    for found in flows.values():
        assert (found.norms <= found.bounds * (1.0 + 1e-9)).all()


@pytest.mark.row("G3")
def test_a_linear_network_has_the_slope_of_its_spectral_radius(flows):
    linear = flows["rnn linear"]
    assert linear.slope == pytest.approx(linear.radius, rel=0.02)


@pytest.mark.row("R3")
def test_half_lives_are_those_of_the_forget_gates(flows):
    assert half_life(0.0) == pytest.approx(1.0)
    assert half_life(1.0) == pytest.approx(np.log(0.5) / np.log(1 / (1 + np.exp(-1))))
    assert flows["lstm f=σ(0)"].half_life == pytest.approx(1.0, rel=0.2)
    assert flows["lstm f=σ(4)"].half_life > 20


def test_norms_are_those_of_autograd():
    """A GRU as torch runs it from the state k on."""
    found = flow(KINDS["gru"], hidden=5, steps=12, seed=3)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(3)
        stack = Recurrent(5, 5, cell=GRUCell()).double()
    draw = np.random.default_rng(3).standard_normal
    x, u = torch.from_numpy(draw((12, 5)))[None], torch.from_numpy(draw(5))
    _, (h,) = stack(x[:, :4])
    h = h.detach().requires_grad_()
    y, _ = stack(x[:, 4:], state=(h,))
    (y[0, -1] @ u).backward()
    assert found.norms[8] == pytest.approx(float(h.grad.norm()), rel=1e-6)


def test_dead_units_are_counted():
    assert Flow(np.ones(4), np.ones(4), 0.0, 0.0, 0.25).dead == 0.25
    kind = KINDS["rnn relu"]
    assert flow(kind, hidden=8, steps=12, seed=1).dead < 1.0


def test_the_forget_bias_is_where_it_should_be():
    stack = Recurrent(3, 4, cell=LSTMCell(), layers=2, bidirectional=True, forget_bias=2.5)
    for name, value in stack.named_parameters():
        if name.startswith("bias"):
            i, f, g, o = value.chunk(4)
            assert (f == (2.5 if name.startswith("bias_ih") else 0.0)).all()
            assert (torch.cat([i, g, o]).abs() <= 0.5).all()
            assert torch.cat([i, g, o]).std() > 0.1
    with pytest.raises(ConfigError, match="GRUCell has no forget gate"):
        Recurrent(3, 4, cell=GRUCell(), forget_bias=1.0)


def test_without_a_forget_bias_weights_are_drawn_as_before():
    drawn = []
    for options in ({}, {"forget_bias": None}):
        torch.manual_seed(5)
        drawn.append(
            torch.cat(
                [p.flatten() for p in Recurrent(3, 4, cell=LSTMCell(), **options).parameters()]
            )
        )
    torch.manual_seed(5)
    torchs = torch.nn.LSTM(3, 4)
    assert torch.equal(drawn[0], drawn[1])
    assert torch.equal(drawn[0], torch.cat([p.flatten() for p in torchs.parameters()]))


# ------------------------------------------------------------------ a user's own model


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    folder = tmp_path_factory.mktemp("model")
    text = folder / "text.txt"
    text.write_text("the cat is here\nthe cats are here\n" * 40, encoding="utf-8")
    settings = {
        "model.hidden_size": 16,
        "model.context": "line",
        "model.dropout": 0.0,
        "model.layers": 2,
        "model.forget_bias": 1.0,
        "train.epochs": 2,
        "train.batch_tokens": 128,
        "train.learning_rate": 0.02,
        "train.threads": 1,
    }
    return train("lm", train=text, out=folder / "model", settings=settings)


@pytest.fixture(scope="module")
def counts(tmp_path_factory):
    """A trigram model: what it finds likelier is a matter of counts."""
    folder = tmp_path_factory.mktemp("counts")
    text = folder / "text.txt"
    text.write_text("the cat is here\nthe cats are here\n" * 40, encoding="utf-8")
    return train("ngram", train=text, out=folder / "model", settings={"model.order": 3})


def test_gradients_of_a_trained_model(model):
    found = text_gradients(model, "the cat is here")
    assert found.tokens == ["the", "cat", "is", "here", "</s>"]
    assert (np.triu(found.sizes, 1) == 0.0).all()
    assert (np.diagonal(found.sizes) > 0.0).all()
    assert [layer for layer, *_ in found.gates] == ["1", "2"]
    assert all(0.0 < mean < 1.0 < life + 1.0 for _, mean, life in found.gates)
    assert "mean gate that keeps" in found.text()
    assert json.dumps(found.as_json())
    assert found.chart().to_dict()


def test_sizes_of_a_trained_model_are_those_of_differences(model):
    """The surprise at the third token, its first state moved in a random direction."""
    found, network = text_gradients(model, "the cat is"), model.network
    ids = torch.tensor(
        [[network.first, *model.encoder.encode_lines(["the cat is"]).ids[:3].tolist()]]
    )
    with torch.no_grad():
        _, state = network.stack(network.embed(ids[:, :1]))
        double = network.stack.double()
        state = tuple(part.double() for part in state)

        def nats(state):
            x = network.embed(ids[:, 1:3]).double()
            _, (h, *_) = double(x, state=state)
            logits = h[-1] @ network.output_weight.double().t() + network.bias.double()
            return float(-logits.log_softmax(dim=1)[0, ids[0, 3]])

        def of(flat):
            parts = torch.from_numpy(flat).view(len(state), *state[0].shape)
            return nats(tuple(parts))

        flat = torch.stack(list(state)).flatten().numpy()
        numeric = np.linalg.norm(slope(of, flat))
        network.stack.float()
    assert found.sizes[2, 0] == pytest.approx(numeric, rel=1e-3)


def test_minimal_pairs_are_judged(counts, tmp_path):
    path = tmp_path / "pairs.tsv"
    path.write_text(
        "the cat is here\tthe cat are here\nthe cats is here\tthe cats are here\n", "utf-8"
    )
    (every,) = judged(counts, read_pairs(path)).shares
    assert (every.group, every.pairs, every.right) == ("all", 2, 0.5)
    assert 0.0 <= every.low <= 0.5 <= every.high <= 1.0


@pytest.mark.row("G13")
def test_pairs_by_template_and_by_attractors(counts, tmp_path):
    path = tmp_path / "pairs.tsv"
    rows = [
        "a\tsg\tthe cat is here\tthe cat are here",
        "b\tpl\tthe cats is here\tx\tthe cats are here",
    ]
    path.write_text("\n".join(rows) + "\n", encoding="utf-8")
    found = {share.group: share.right for share in judged(counts, read_pairs(path)).shares}
    assert found == {"all": 0.5, "a": 1.0, "b": 0.0}
    text, gold = tmp_path / "x.text", tmp_path / "x.gold"
    text.write_text("the cat is here <eos>\nthe cats are here <eos>\n", encoding="utf-8")
    gold.write_text("2\tis\tare\t0\n2\tare\tis\t3\n", encoding="utf-8")
    pairs = list(read_pairs(text))
    assert pairs[1][:2] == ("the cats are here", "the cats is here")
    found = judged(counts, pairs)
    assert [share.group for share in found.shares] == ["all", "0 attractors", "3 attractors"]
    assert found.shares[0].right == 1.0
    assert found.chart().to_dict()


def test_pairs_in_unknown_forms_can_be_left_out(counts, tmp_path):
    path = tmp_path / "pairs.tsv"
    rows = ["the cat is here\tthe cat are here", "the cat sits here\tthe cat sit here"]
    path.write_text("\n".join(rows) + "\n", encoding="utf-8")
    (every,), (known,) = (
        judged(counts, read_pairs(path), known=known).shares for known in (False, True)
    )
    assert (every.pairs, every.right) == (2, 0.5)
    assert (known.pairs, known.right) == (1, 1.0)
    path.write_text(rows[1] + "\n", encoding="utf-8")
    with pytest.raises(ConfigError, match="no pairs whose forms the model knows"):
        judged(counts, read_pairs(path), known=True)


@pytest.mark.parametrize(
    ("content", "message"),
    [("a\tb\nonly one\n", "line 2: the line has 1 columns"), ("a\tb\tc\n", "line 1")],
)
def test_what_is_no_pair(tmp_path, content, message):
    path = tmp_path / "pairs.tsv"
    path.write_text(content, encoding="utf-8")
    with pytest.raises(DataError, match=message):
        list(read_pairs(path))


@pytest.mark.parametrize(
    ("gold", "message"),
    [
        ("9\tis\tare\t0\n", "line 1: must hold the verb's place"),
        ("1\tis\n", "line 1: must hold"),
        ("", "line 1: ends here, but x.text goes on"),
        ("1\tis\tare\t0\n1\tis\tare\t0\n", "goes on, but x.text ends"),
    ],
)
def test_gold_that_does_not_fit(tmp_path, gold, message):
    (tmp_path / "x.text").write_text("a b c\n", encoding="utf-8")
    (tmp_path / "x.gold").write_text(gold, encoding="utf-8")
    with pytest.raises(DataError, match=message):
        list(read_pairs(tmp_path / "x.text"))


def test_what_no_gradient_can_be_taken_of_is_refused(model, counts):
    with pytest.raises(ConfigError, match="of task 'ngram', but gradients"):
        text_gradients(counts, "the cat")
    with pytest.raises(DataError, match="has 201 tokens"):
        text_gradients(model, "the " * 200)


# ------------------------------------------------------------------ memory


@pytest.mark.row("G12")
def test_a_memory_is_learned_where_a_window_is_at_chance():
    found = memory("agreement", longest=20, hidden=24, updates=150)
    assert found.distances == (2, 5, 10, 20)
    assert found.mean("lstm")[-1] >= 0.95
    for name in ("n-gram", "window"):
        assert found.mean(name)[-1] < 0.65
    assert found.chart().to_dict()
    assert "lstm" in found.text()


@pytest.mark.row("G15", "R1")
@pytest.mark.slow
def test_over_a_hundred_steps_open_gates_carry_a_symbol_and_a_plain_network_does_not():
    found = memory_apart("copy", distances=(100,), names=("rnn", "lstm f=σ(4)"), updates=800)
    assert found.mean("lstm f=σ(4)") >= [0.99]
    assert found.mean("rnn") < [0.5]
    assert found.mean("n-gram") < [0.25]


@pytest.mark.row("G15")
def test_a_plain_network_carries_a_symbol_over_few_steps():
    found = memory_apart("copy", distances=(5,), names=("rnn", "window"), updates=300)
    assert found.mean("rnn") >= [0.99]
    assert found.mean("window") < [0.25]
    assert "each distance apart" in found.text()


@pytest.mark.parametrize("task", TASKS)
def test_only_the_beginning_tells_the_answer(task):
    make, inputs, _ = TASKS[task]
    examples = make(np.random.default_rng(1), np.array([5, 9, 9, 3]))
    assert examples.x.shape == (4, 9, inputs)
    if task == "adding":
        values, marks = examples.x.unbind(2)
        assert (marks.sum(dim=1) == 2).all()
        torch.testing.assert_close((values * marks).sum(dim=1), examples.answers)
    else:
        assert torch.equal(examples.x[:, 0].argmax(dim=1), examples.answers)
        assert (examples.x[:, 1:].argmax(dim=2) >= 2).all()


def test_counting_is_right_where_the_answer_is_near():
    make = TASKS["agreement"][0]
    near, far = ngram_tried(make, (2, 30), longest=4, seed=1)
    assert near > 0.95
    assert 0.35 < far < 0.65
    assert tried(torch.nn.Identity(), lambda *_: _Answered(), (2,), seed=1) == [1.0]


class _Answered(torch.Tensor):
    """An identity model's own answer."""

    @staticmethod
    def __new__(cls):
        return torch.eye(2).as_subclass(cls)

    @property
    def answers(self):
        return torch.arange(2)


# ------------------------------------------------------------------ clipping, layers, curves


def test_the_gradient_of_the_surface_equals_differences():
    for place in ((5.5, -2.5), (4.8, -2.4), (4.0, -1.0)):
        numeric = slope(lambda p: float(loss(p[0], p[1])), np.array(place))
        np.testing.assert_allclose(gradient(*place), numeric, rtol=1e-5, atol=1e-8)


@pytest.mark.row("G7", "Q6")
def test_clipped_descent_ends_lower_from_the_same_start():
    found = clipping()
    assert found.plain[0] == found.clipped[0]
    assert found.clipped[-1].loss < found.plain[-1].loss - 0.3
    assert max(point.norm for point in found.plain) > 10  # it met the wall
    steps = np.diff([(p.w, p.b) for p in found.clipped], axis=0)
    assert np.hypot(*steps.T).max() <= 0.1 + 1e-12
    assert isinstance(found, Clipping)
    assert found.chart().to_dict()


@pytest.mark.row("G9", "G10")
def test_little_reaches_the_first_of_seven_sigmoid_layers():
    found = layers(updates=100).courses
    means = {name: float(np.mean(course.first)) for name, course in found.items()}
    assert means["relu"] >= 100 * means["sigmoid"]
    assert found["leaky_relu"].dead == 0.0
    assert found["relu"].accuracy > 0.5


@pytest.mark.row("Q16")
def test_curves_of_activations_have_their_slopes():
    found = activation_curves()
    x = np.linspace(-5.0, 5.0, 51)
    for name, y in found.values.items():
        smooth = np.abs(x) > 0.3  # a kink is at 0
        numeric = np.gradient(y, x)
        np.testing.assert_allclose(found.slopes[name][smooth], numeric[smooth], atol=0.02)
    assert found.slopes["sigmoid"].max() == pytest.approx(0.25)
