"""Figures: every number in them is that of another computation, torch's or by hand."""

from itertools import pairwise

import numpy as np
import pytest
import torch
from chart_data import rows
from torch import nn

from unrolled.errors import ConfigError
from unrolled.lab.drawing.drawing import bars, numbers
from unrolled.lab.drawing.options import DRAWN, DrawOptions, run_draw
from unrolled.lab.drawing.reading import small_reading
from unrolled.lab.drawing.topologies import TOPOLOGIES
from unrolled.tasks.run import train

pytestmark = pytest.mark.arithmetic
TEXT = "the rat ate the"
NEAR = {"rtol": 1e-9, "atol": 1e-12}
NETWORKS = {"rnn": nn.RNN, "gru": nn.GRU, "lstm": nn.LSTM}


def drawn(figure, **options):
    return run_draw(DrawOptions(figure=figure, text=TEXT, **options), print)


def torchs(cell, *, layers=1, both=False, seed=21):
    """The same network by torch.nn, in float64, and what it reads (1, T, E)."""
    reading = small_reading(TEXT, cell, layers=layers, both=both, seed=seed)
    network = NETWORKS[cell](2, 2, layers, batch_first=True, bidirectional=both).double()
    network.load_state_dict(reading.stack.state_dict())
    return network, torch.from_numpy(reading.x)[None], reading


def states(cell):
    """h of every step by torch.nn (T, H)."""
    network, x, _ = torchs(cell)
    with torch.no_grad():
        return network(x)[0][0].numpy()


def sigmoid(a):
    return 1.0 / (1.0 + np.exp(-a))


def softmax(z):
    return np.exp(z) / np.exp(z).sum(axis=-1, keepdims=True)


def compare(found, expected):
    """All of the expected values, and no other."""
    assert found.keys() == expected.keys()
    for name, value in expected.items():
        np.testing.assert_allclose(found[name], value, **NEAR, err_msg=name)


def inputs(reading):
    return {f"x_{t}": x for t, x in enumerate(reading.x, 1)}


# ------------------------------------------------------------------ over time


@pytest.mark.row("E-a", "Q1")
@pytest.mark.parametrize("cell", NETWORKS)
def test_the_loop_and_its_copies_have_the_same_numbers(cell):
    found = drawn("folded", cell=cell).values
    h, (_, _, reading) = states(cell), torchs(cell)
    copies = {f"h_{t}": row for t, row in enumerate(h, 1)}
    compare(found, {"h, folded": h, **copies, **inputs(reading)})


@pytest.mark.row("Q2")
def test_a_step_of_a_language_model_sums_to_one():
    drawing, h, (_, _, reading) = drawn("step"), states("rnn"), torchs("rnn")
    logits = reading.output @ h[-1] + reading.bias
    compare(
        drawing.values,
        {
            "token": [reading.names.index("the")],
            "e_4": reading.table[reading.names.index("the")],
            "h_3": h[-2],
            "h_4": h[-1],
            "logits": logits,
            "P(next)": softmax(logits),
        },
    )
    (said,) = (node.shown for node in drawing.nodes if node.name == "P(next)")
    assert sum(float(line.split()[1]) for line in said) == pytest.approx(1.0, abs=0.002)


@pytest.mark.row("Q4")
@pytest.mark.parametrize("cell", NETWORKS)
def test_a_stack_in_one_direction(cell):
    network, x, reading = torchs(cell, layers=2)
    with torch.no_grad():
        top = network(x)[0][0].numpy()
        lower = NETWORKS[cell](2, 2, batch_first=True).double()
        lower.load_state_dict({k: v for k, v in network.state_dict().items() if k.endswith("l0")})
        below = lower(x)[0][0].numpy()
    layers = [("1", below), ("2", top)]
    expected = {f"h_{t} of layer {k}": h for k, y in layers for t, h in enumerate(y, 1)}
    compare(drawn("stack", cell=cell).values, {**expected, **inputs(reading)})


@pytest.mark.row("Q4")
def test_a_stack_in_two_directions_and_its_wires():
    network, x, reading = torchs("lstm", layers=2, both=True)
    drawing = drawn("stack", cell="lstm", both=True)
    with torch.no_grad():
        top = network(x)[0][0].numpy()
        lower = nn.LSTM(2, 2, batch_first=True, bidirectional=True).double()
        lower.load_state_dict({k: v for k, v in network.state_dict().items() if "l0" in k})
        below = lower(x)[0][0].numpy()
    expected = {
        f"{sign}h_{t} of layer {layer}": h[part]
        for layer, y in ((1, below), (2, top))
        for t, h in enumerate(y, 1)
        for sign, part in (("→", slice(0, 2)), ("←", slice(2, 4)))
    }
    compare(drawing.values, {**expected, **inputs(reading)})
    wires = {(arrow.source, arrow.target) for arrow in drawing.arrows}
    assert {("→h_1 of layer 1", "←h_1 of layer 2"), ("←h_2 of layer 1", "→h_2 of layer 2")} <= wires
    assert {("→h_1 of layer 2", "→h_2 of layer 2"), ("←h_2 of layer 2", "←h_1 of layer 2")} <= wires
    assert ("→h_2 of layer 2", "→h_1 of layer 2") not in wires


@pytest.mark.row("Q5")
def test_classifier_and_tagger_are_softmaxes_of_states():
    h, (_, _, reading) = states("rnn"), torchs("rnn")
    rows_of = {f"h_{t}": row for t, row in enumerate(h, 1)} | inputs(reading)
    label, tag = (np.random.default_rng([21, 2]).standard_normal((n, 2)).round(1) for n in (2, 3))
    compare(drawn("classifier").values, rows_of | {"label": softmax(label @ h[-1])})
    tags = {f"tag_{t}": softmax(tag @ row) for t, row in enumerate(h, 1)}
    compare(drawn("tagger").values, rows_of | tags)


@pytest.mark.row("Q5")
def test_training_reads_the_right_tokens_and_asks_the_next():
    network, _, reading = torchs("rnn")
    ids = [0, *reading.ids]
    with torch.no_grad():
        x = torch.from_numpy(reading.table[ids[:-1]])
        h = network(x[None])[0][0]
        logits = h @ torch.from_numpy(reading.output).T + torch.from_numpy(reading.bias)
        nats = nn.functional.cross_entropy(logits, torch.tensor(ids[1:]), reduction="none")
    expected = {f"L_{t}": [value] for t, value in enumerate(nats.numpy(), 1)}
    expected |= {f"h_{t}": row for t, row in enumerate(h.numpy(), 1)}
    expected |= {f"x_{t}": row for t, row in enumerate(x.numpy(), 1)}
    compare(drawn("training").values, expected | {"J": [nats.mean().item()]})


@pytest.mark.row("Q5")
def test_generation_reads_what_it_said():
    drawing = drawn("generation")
    network, _, reading = torchs("rnn")
    token, state = 0, None
    for t in range(1, 6):
        x = reading.table[token]
        with torch.no_grad():
            h, state = network(torch.from_numpy(x)[None, None], state)
        chances = softmax(reading.output @ h[0, 0].numpy() + reading.bias)
        for name, value in ((f"x_{t}", x), (f"h_{t}", h[0, 0]), (f"P_{t}", chances)):
            np.testing.assert_allclose(drawing.values[name], value, **NEAR)
        token = int(chances.argmax())
    assert ("P_1", "x_2") in {(a.source, a.target) for a in drawing.arrows if a.dashed}


# ------------------------------------------------------------------ cells


@pytest.mark.row("Q7")
def test_the_gates_of_an_lstm():
    (network, x, reading), found = torchs("lstm"), drawn("cell").values
    with torch.no_grad():
        _, (h, c) = network(x[:, :-1])
        _, (h_next, c_next) = network(x[:, -1:], (h, c))
    h, c, h_next, c_next = (part[0, 0].numpy() for part in (h, c, h_next, c_next))
    w = {name: value.numpy() for name, value in network.state_dict().items()}
    a = w["weight_ih_l0"] @ reading.x[-1] + w["weight_hh_l0"] @ h
    i, f, g, o = np.split(a + w["bias_ih_l0"] + w["bias_hh_l0"], 4)
    i, f, g, o = sigmoid(i), sigmoid(f), np.tanh(g), sigmoid(o)
    gates = {"i": i, "f": f, "g": g, "o": o, "i ⊙ g": i * g, "f ⊙ c_{t−1}": f * c}
    ends = {"c_{t−1}": c, "c_t": c_next, "tanh(c_t)": np.tanh(c_next), "h_t": h_next, "h_{t−1}": h}
    own = {"x_t": reading.x[-1], "[h; x]": [*h, *reading.x[-1]]}
    compare(found, gates | ends | own)


@pytest.mark.row("Q7")
def test_the_gates_of_a_gru():
    (network, x, reading), found = torchs("gru"), drawn("cell", cell="gru").values
    with torch.no_grad():
        h = network(x)[0][0].numpy()
    w = {name: value.numpy() for name, value in network.state_dict().items()}
    from_x = np.split(w["weight_ih_l0"] @ reading.x[-1] + w["bias_ih_l0"], 3)
    from_h = np.split(w["weight_hh_l0"] @ h[-2] + w["bias_hh_l0"], 3)
    r, z = sigmoid(from_x[0] + from_h[0]), sigmoid(from_x[1] + from_h[1])
    n = np.tanh(from_x[2] + r * from_h[2])
    made = {"r": r, "z": z, "n": n, "r ⊙ (U h_{t−1} + b)": r * from_h[2], "h_t": h[-1]}
    parts = {"z ⊙ h_{t−1}": z * h[-2], "(1 − z) ⊙ n": (1 - z) * n, "h_{t−1}": h[-2]}
    own = {"x_t": reading.x[-1], "[h; x]": [*h[-2], *reading.x[-1]]}
    compare(found, made | parts | own)


@pytest.mark.row("Q7")
@pytest.mark.parametrize(
    "cell",
    ["lstm linear full", "lstm tanh output", "gru before write", "gru none keep", "rnn relu"],
)
def test_other_variants_end_where_the_layer_ends(cell):
    reading = small_reading(TEXT, cell, seed=21)
    found = drawn("cell", cell=cell).values
    with torch.no_grad():
        y, _ = reading.stack(torch.from_numpy(reading.x)[None])
    np.testing.assert_allclose(found["h_t"], y[0, -1].numpy(), **NEAR)


@pytest.mark.row("D21")
def test_three_pictures_from_a_plain_network_to_an_lstm():
    (network, x, reading), found = torchs("lstm"), drawn("rnn-to-lstm").values
    w = {name: value[4:6] for name, value in network.state_dict().items()}  # of g
    plain = nn.RNN(2, 2, batch_first=True).double()
    plain.load_state_dict(w)
    with torch.no_grad():
        np.testing.assert_allclose(found["1 h_t"], plain(x)[0][0, -1].numpy(), **NEAR)
        np.testing.assert_allclose(found["3 h_t"], network(x)[0][0, -1].numpy(), **NEAR)
    c = h = np.zeros(2)
    w = {name: value.numpy() for name, value in w.items()}
    for row in reading.x:
        a = w["weight_ih_l0"] @ row + w["weight_hh_l0"] @ h + w["bias_ih_l0"] + w["bias_hh_l0"]
        before, c = c, c + np.tanh(a)
        h = np.tanh(c)
    np.testing.assert_allclose(found["2 c_{t−1}"], before, **NEAR)
    np.testing.assert_allclose(found["2 c_t"], c, **NEAR)
    np.testing.assert_allclose(found["2 h_t"], h, **NEAR)


# ------------------------------------------------------------------ windows and topologies


@pytest.mark.row("Q12")
@pytest.mark.parametrize("direct", [False, True])
def test_the_window_is_the_network_s_own(direct):
    from unrolled.lab.drawing.window import window
    from unrolled.tasks.window.network import WindowNetwork
    from unrolled.tasks.window.settings import WindowSettings

    settings = WindowSettings(
        window=2, embedding_size=3, hidden_size=3, direct=direct, tied=not direct
    )
    network = WindowNetwork(settings, 5).double().eval()
    with torch.no_grad():
        for parameter in network.parameters():
            parameter.normal_()
    found = window(network, [0, 0, 4, 2, 3], list("abcde")).values
    log_p, _ = network.step(torch.tensor([3]), (torch.tensor([[4, 2]]),))
    np.testing.assert_allclose(found["P(next)"], log_p[0].exp().numpy(), **NEAR)
    table = network.embedding.weight.detach().numpy()
    compare(
        {name: found[name] for name in ("e_1", "e_2", "x")},
        {"e_1": table[2], "e_2": table[3], "x": np.concatenate([table[2], table[3]])},
    )
    with torch.no_grad():
        hidden = torch.tanh(network.hidden(torch.from_numpy(found["x"])))
    np.testing.assert_allclose(found["h"], hidden.numpy(), **NEAR)


@pytest.mark.row("Q13")
def test_five_topologies_by_their_own_numbers():
    drawing, (network, _, reading) = drawn("topologies"), torchs("rnn")
    weight = np.random.default_rng([21, 3]).standard_normal((2, 2)).round(1)
    reads = [(1, 1), (1, 3), (3, 3), (3, 3), (2, 5)]
    says = [[1], [1, 2, 3], [3], [1, 2, 3], [3, 4, 5]]
    for k, ((read, steps), said) in enumerate(zip(reads, says, strict=True), 1):
        y, state = np.zeros(2), None
        for t in range(1, steps + 1):
            x = reading.x[t - 1] if t <= read else y
            with torch.no_grad():
                h, state = network(torch.from_numpy(x)[None, None], state)
            np.testing.assert_allclose(drawing.values[f"{k} h_{t}"], h[0, 0].numpy(), **NEAR)
            assert (f"{k} x_{t}" in drawing.values) == (t <= read)
            assert (f"{k} y_{t}" in drawing.values) == (t in said)
            if t in said:
                y = weight @ h[0, 0].numpy()
                np.testing.assert_allclose(drawing.values[f"{k} y_{t}"], y, **NEAR)
    assert len(drawing.frames) == len(TOPOLOGIES) == 5


# ------------------------------------------------------------------ what is shown


@pytest.mark.row("Q1", "Q2", "Q4", "Q5", "Q7", "Q12", "Q13", "D21")
@pytest.mark.parametrize("figure", DRAWN)
def test_what_is_drawn_is_what_was_computed(figure):
    drawing = drawn(figure)
    framed = 2 * bool(drawing.frames)
    layers = drawing.chart().to_dict()["layer"]
    texts = {
        row["text"].replace("\xa0", " ")
        for layer in range(framed, len(layers))
        for row in rows(drawing.chart(), layer)
        if "text" in row
    }
    for node in drawing.nodes:
        assert {node.title or node.name, *node.shown} <= texts
        if not node.lines:
            assert node.shown == (numbers(node.value),)
    assert drawing.as_json()["values"].keys() == drawing.values.keys()
    assert drawing.text().startswith(drawing.title)


@pytest.mark.parametrize("figure", DRAWN)
def test_no_box_lies_on_another_and_no_arrow_crosses_one(figure):
    options = [{}, {"cell": "gru before"}, {"both": True}, {"direct": True}]
    for option in options:
        if {*option} <= DRAWN[figure].options:
            assert_apart(drawn(figure, **option))


def assert_apart(drawing):
    """The rectangles are apart, and the lines between two boxes stay out of the others."""
    chart, shift = drawing.chart(), 2 * bool(drawing.frames)
    boxes = rows(chart, shift + 2)
    for k, a in enumerate(boxes):
        for b in boxes[:k]:
            apart = a["x"] >= b["x2"] or b["x"] >= a["x2"] or a["y"] >= b["y2"] or b["y"] >= a["y2"]
            assert apart, (drawing.nodes[k].name, drawing.title)
    ways = {}
    for point in rows(chart, shift):
        ways.setdefault(point["arrow"], []).append((point["x"], point["y"]))
    for number, way in ways.items():
        arrow = drawing.arrows[number]
        for node, box in zip(drawing.nodes, boxes, strict=True):
            if node.name not in (arrow.source, arrow.target):
                for start, end in pairwise(way):
                    share = np.linspace(0.0, 1.0, 200)[:, None]
                    x, y = (np.array(start) * (1 - share) + np.array(end) * share).T
                    inside = (x > box["x"]) & (x < box["x2"]) & (y > box["y"]) & (y < box["y2"])
                    assert not inside.any(), (arrow.source, arrow.target, node.name)


def test_bars_are_as_long_as_shares_and_nothing_is_left_out():
    assert bars(["a", "bb"], np.array([0.25, 0.75])) == (
        "bb 0.750 █████████",
        "a  0.250 ███",
    )
    shares = np.arange(1.0, 11.0) / 55.0
    lines = bars([f"w{k}" for k in range(10)], shares, most=3)
    assert [line.split()[0] for line in lines] == ["w9", "w8", "w7", "7"]
    assert lines[-1].startswith("7 others 0.509")


# ------------------------------------------------------------------ a user's own models


@pytest.mark.trains
def test_models_are_drawn_from_their_own_weights(tmp_path):
    text = tmp_path / "text.txt"
    text.write_text("the rat ate the cheese\nthe cat ate the rat\n" * 20, encoding="utf-8")
    common = {"model.hidden_size": 8, "model.context": "line", "train.epochs": 1}
    common |= {"train.threads": 1}
    lm = train("lm", train=text, out=tmp_path / "lm", settings=common | {"model.layers": 2})
    found = run_draw(
        DrawOptions(figure="step", text="the rat", model=str(tmp_path / "lm")), print
    ).values
    expected = {s.token: s.probability for s in lm.next("the rat", top=3)}
    names = lm.encoder.vocabulary.decode(range(len(lm.encoder.vocabulary)))
    for token, p in expected.items():
        assert found["P(next)"][names.index(token)] == pytest.approx(p, rel=1e-4)
    stack = run_draw(DrawOptions(figure="stack", text="the rat", model=str(tmp_path / "lm")), print)
    assert stack.values["h_3 of layer 2"] == pytest.approx(found["h_3"])
    with pytest.raises(ConfigError, match="has 2 layers and 1 directions"):
        run_draw(DrawOptions(figure="folded", text="the", model=str(tmp_path / "lm")), print)
    window = train("window", train=text, out=tmp_path / "window", settings=common)
    asked = DrawOptions(figure="window", text="the cat", model=str(tmp_path / "window"))
    shares = run_draw(asked, print).values["P(next)"]
    (best,) = window.next("the cat", top=1)
    assert shares[names.index(best.token)] == pytest.approx(best.probability, rel=1e-4)
    for figure, folder in (("window", "lm"), ("cell", "window")):
        with pytest.raises(ConfigError, match="but this picture is one of a"):
            run_draw(DrawOptions(figure=figure, text="a b", model=str(tmp_path / folder)), print)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"figure": "cell", "layers": 2}, "--layers was given, but “cell” has no such option"),
        ({"figure": "step", "cell": "gru", "model": "x"}, "--model was given: its own cell"),
        ({"figure": "step", "cell": "gur"}, "--cell is 'gur', but must be one of"),
        ({"figure": "step", "text": "a"}, "--text has 1 tokens, but a picture holds 2 to 8"),
        ({"figure": "topologies", "text": "ab"}, "--text has 2 tokens, but “topologies” reads 3"),
        ({"figure": "step", "text": ""}, "--text has 0 tokens"),
        ({"figure": "tagger", "text": "a b c d e f g h i"}, "--text has 9 tokens"),
    ],
)
def test_what_cannot_be_drawn(options, message):
    with pytest.raises(ConfigError, match=message):
        run_draw(DrawOptions(**options), print)
