"""Cells with the values of their gates, and the way from a plain network to an LSTM."""

from collections.abc import Callable, Mapping

import numpy as np

from unrolled.charts import Arrow, Frame
from unrolled.lab.by_hand import Array, Gradients, Step, forward
from unrolled.lab.drawing.drawing import GIVEN, SAID, Drawing, Node
from unrolled.lab.drawing.reading import Reading
from unrolled.nn.cells import Cell, GRUCell, LSTMCell, RNNCell

GATE = "#E4F1E1"
OPEN = 40.0  # σ of it is 1 to the last bit of a float64
Part = tuple[list[Node], list[Arrow]]


def cell(reading: Reading) -> Drawing:
    """The last step of the first layer, from x and the state before to the state after."""
    last, kind = reading.steps()[0][0][-1], reading.stack.cell
    nodes, arrows = PARTS[type(kind)](kind, reading.weights(0, 0), last)
    variant = " ".join(map(str, vars(kind).values()))
    name = f"{type(kind).__name__.removesuffix('Cell')} ({variant})"
    title = f"{name} at “{reading.tokens[-1]}”, the last of {len(reading.tokens)} steps"
    return Drawing(title, nodes, arrows, column=165, row=85)


def _rnn(kind: Cell, w: Gradients, step: Step) -> Part:
    assert isinstance(kind, RNNCell)
    (a,) = step.parts
    nodes = [
        Node("h_{t−1}", 0, 0, step.before, GIVEN),
        Node("x_t", 0, 1, step.x, GIVEN),
        Node("W x + U h + b", 1.2, 0.5, a),
        Node("h_t", 2.5, 0.5, step.after, SAID, f"h_t = {kind.activation}(…)"),
    ]
    arrows = [Arrow("h_{t−1}", "W x + U h + b"), Arrow("x_t", "W x + U h + b")]
    return nodes, [*arrows, Arrow("W x + U h + b", "h_t")]


def _lstm(kind: Cell, w: Gradients, step: Step) -> Part:
    assert isinstance(kind, LSTMCell)
    (h, c), (_, new) = np.split(step.before, 2), np.split(step.after, 2)
    i, f, g, o, out = step.parts
    shown = "tanh(c_t)" if kind.output == "tanh" else "c_t, shown as it is"
    nodes = [
        Node("c_{t−1}", 0, 0, c, GIVEN),
        Node("f ⊙ c_{t−1}", 1, 0, f * c),
        Node("c_t", 2.5, 0, new, SAID, "c_t, their sum"),
        Node(shown, 3.9, 0, out),
        Node("h_t", 5, 0, o * out, SAID, "h_t = o ⊙ …"),
        Node("i ⊙ g", 2.5, 1, i * g),
        Node("f", 1, 2, f, GATE, "f = σ(…)"),
        Node("i", 2, 2, i, GATE, "i = σ(…)"),
        Node("g", 3, 2, g, title="g = tanh(…)"),
        Node("o", 5, 2, o, GATE, "o = σ(…)"),
        Node("h_{t−1}", 0, 3.2, h, GIVEN),
        Node("[h; x]", 2.5, 3.2, np.concatenate([h, step.x]), GIVEN, "h_{t−1} and x_t"),
        Node("x_t", 5, 3.2, step.x, GIVEN),
    ]
    ways = ["c_{t−1}>f ⊙ c_{t−1}", "f ⊙ c_{t−1}>c_t", "i ⊙ g>c_t", f"c_t>{shown}", f"{shown}>h_t"]
    ways += ["f>f ⊙ c_{t−1}", "i>i ⊙ g", "g>i ⊙ g", "o>h_t", "h_{t−1}>[h; x]", "x_t>[h; x]"]
    ways += [f"[h; x]>{gate}" for gate in "figo"]
    peep = {"none": [], "output": ["c_t>o"], "full": ["c_{t−1}>f", "c_{t−1}>i", "c_t>o"]}
    return nodes, [*_arrows(ways), *_arrows(peep[kind.peephole], dashed=True)]


def _arrows(ways: list[str], *, dashed: bool = False) -> list[Arrow]:
    ends = [way.split(">") for way in ways]
    return [Arrow(source, target, dashed=dashed) for source, target in ends]


def _gru(kind: Cell, w: Gradients, step: Step) -> Part:
    assert isinstance(kind, GRUCell)
    (r, z, n, from_h), h = step.parts, step.before
    keep = z if kind.update == "keep" else 1.0 - z
    kept, written = ("z", "(1 − z)") if kind.update == "keep" else ("(1 − z)", "z")
    old, new = f"{kept} ⊙ h_{{t−1}}", f"{written} ⊙ n"
    nodes = [
        Node("h_{t−1}", 0, 0, h, GIVEN),
        Node(old, 1.5, 0, keep * h),
        Node("h_t", 4, 0, step.after, SAID, "h_t, their sum"),
        Node(new, 3, 1, (1.0 - keep) * n),
        Node("z", 1.5, 1.8, z, GATE, "z = σ(…)"),
        Node("n", 4, 1.8, n, title="n = tanh(…)"),
        Node("[h; x]", 1.5, 4, np.concatenate([h, step.x]), GIVEN, "h_{t−1} and x_t"),
        Node("x_t", 4, 4, step.x, GIVEN),
    ]
    ways = [f"h_{{t−1}}>{old}", f"{old}>h_t", f"{new}>h_t", f"z>{old}", f"z>{new}", f"n>{new}"]
    ways += ["x_t>[h; x]", "x_t>n", "[h; x]>z"]
    down = Arrow("h_{t−1}", "[h; x]", ((0.0, 4.0),))
    if kind.reset == "none":
        return nodes, [down, *_arrows([*ways, "[h; x]>n"])]
    name, value = {
        "after": ("r ⊙ (U h_{t−1} + b)", r * from_h),
        "before": ("r ⊙ h_{t−1}", r * h),
    }[kind.reset]
    nodes += [Node("r", 0.75, 2.8, r, GATE, "r = σ(…)"), Node(name, 2.75, 2.8, value)]
    ways += ["[h; x]>r", f"[h; x]>{name}", f"r>{name}", f"{name}>n"]
    return nodes, [down, *_arrows(ways)]


PARTS: Mapping[type[Cell], Callable[[Cell, Gradients, Step], Part]] = {
    RNNCell: _rnn,
    GRUCell: _gru,
    LSTMCell: _lstm,
}


# ------------------------------------------------------------------ from RNN to LSTM


def rnn_to_lstm(reading: Reading) -> Drawing:
    """Three pictures: a plain network; the same with a track that carries; gates on the track.

    The candidate's weights are the same in all three: those of g in the LSTM.
    """
    plain, carrying, gated = three_steps(reading)
    first = _panel(_rnn(RNNCell(), {}, plain), "1 ", 0.0)
    second = _panel(_carry(carrying), "2 ", 2.4)
    third = _panel(_lstm(LSTMCell(), {}, gated), "3 ", 4.8)
    frames = [
        Frame(title, [node.name for node in nodes])
        for title, (nodes, _) in zip(
            (
                "1  a plain network: the state is made anew at every step",
                "2  a track carries c on: what is new is added",
                "3  gates on the track: f keeps, i writes, o shows",
            ),
            (first, second, third),
            strict=True,
        )
    ]
    nodes = [node for part in (first, second, third) for node in part[0]]
    arrows = [arrow for part in (first, second, third) for arrow in part[1]]
    title = f"From a plain network to an LSTM, at “{reading.tokens[-1]}”"
    return Drawing(title, nodes, arrows, frames, column=165, row=85)


def three_steps(reading: Reading) -> tuple[Step, Step, Step]:
    """The last step of each, all from states of zero on."""
    w, H = reading.weights(0, 0), reading.stack.hidden_size
    candidate = {name: value[2 * H : 3 * H] for name, value in w.items()}
    held = {name: _only_candidate(value, H) for name, value in w.items()}
    held["bias_ih"][: 2 * H] = held["bias_ih"][3 * H :] = OPEN
    h, s = np.zeros(H), np.zeros(2 * H)
    return (
        forward(RNNCell(), candidate, reading.x, h)[-1],
        forward(LSTMCell(), held, reading.x, s)[-1],
        forward(LSTMCell(), w, reading.x, s)[-1],
    )


def _only_candidate(value: Array, H: int) -> Array:
    kept = np.zeros_like(value)
    kept[2 * H : 3 * H] = value[2 * H : 3 * H]
    return kept


def _carry(step: Step) -> Part:
    """An LSTM whose gates are all 1."""
    (h, c), (shown, new) = np.split(step.before, 2), np.split(step.after, 2)
    nodes = [
        Node("c_{t−1}", 0, 0, c, GIVEN),
        Node("c_t", 2.5, 0, new, SAID, "c_t = c_{t−1} + g"),
        Node("h_t", 4, 0, shown, SAID, "h_t = tanh(c_t)"),
        Node("g", 2.5, 1, step.parts[2], title="g = tanh(W x + U h + b)"),
        Node("h_{t−1}", 0, 1, h, GIVEN),
        Node("x_t", 5, 1, step.x, GIVEN),
    ]
    return nodes, _arrows(["c_{t−1}>c_t", "c_t>h_t", "g>c_t", "h_{t−1}>g", "x_t>g"])


def _panel(part: Part, mark: str, down: float) -> Part:
    """The same further down, under names of its own."""
    nodes, arrows = part
    moved = [
        node._replace(name=mark + node.name, y=node.y + down, title=node.title or node.name)
        for node in nodes
    ]
    return moved, [a._replace(source=mark + a.source, target=mark + a.target) for a in arrows]
