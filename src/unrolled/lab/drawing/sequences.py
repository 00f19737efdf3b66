"""Networks over time: folded and unrolled, one step, stacks, and what is put on top of them."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import torch

from unrolled.charts import Arrow, Frame
from unrolled.errors import ConfigError
from unrolled.lab.by_hand import Array, forward
from unrolled.lab.drawing.drawing import GIVEN, SAID, Drawing, Node, bars
from unrolled.lab.drawing.reading import FIRST, SIZE, Reading
from unrolled.lab.equations.tools import softmax

TOP = 3  # tokens in a list of what may come next
LABELS = ("negative", "positive")
TAGS = ("NOUN", "VERB", "OTHER")


def folded(reading: Reading) -> Drawing:
    """One cell that feeds itself, turn by turn, beside T copies of it in one call."""
    turns = looped(reading)
    with torch.no_grad():
        y, _ = reading.stack(torch.from_numpy(reading.x)[None])
    copies, T = y[0].numpy(), len(reading.tokens)
    lines = tuple(f"{t}: " + " ".join(f"{v:+.3f}" for v in h[:3]) for t, h in enumerate(turns, 1))
    loop = [
        Node("x", 0, 2, np.empty(0), GIVEN, "x_t", tuple(reading.tokens)),
        Node("h, folded", 0, 1, turns, title="h_t, turn by turn", lines=lines),
    ]
    arrows = [Arrow("x", "h, folded"), Arrow("h, folded", "h, folded", LOOP, "U")]
    nodes, more = _chain(reading, copies[None], left=1.8)
    every = [*loop, *nodes]
    frames = [
        Frame("folded", ["x", "h, folded"], [(0.8, 0.15)]),
        Frame("unrolled", [n.name for n in nodes]),
    ]
    title = f"One network, {T} turns: the loop and its {T} copies have the same states"
    return Drawing(title, every, [*arrows, *more], frames, row=120)


LOOP = ((0.62, 1.0), (0.62, 0.35), (0.0, 0.35))  # out to the right, back from above


def looped(reading: Reading) -> Array:
    """h after each turn of the one cell (T, H)."""
    state, found = reading.first(), []
    for x in reading.x:
        (step,) = forward(reading.stack.cell, reading.weights(0, 0), [x], state)
        state = step.after
        found.append(state[: reading.stack.hidden_size])
    return np.stack(found)


def _chain(reading: Reading, layers: Array, *, left: float = 0.0) -> tuple[list[Node], list[Arrow]]:
    """Tokens below, states (L, T, H) above them, each made of the one before and the one below."""
    L = len(layers)
    nodes = [
        Node(f"x_{t + 1}", left + t, L + 1, reading.x[t], GIVEN, f"x_{t + 1} {token}")
        for t, token in enumerate(reading.tokens)
    ]
    arrows = []
    for layer, states in enumerate(layers, 1):
        for t, h in enumerate(states, 1):
            nodes.append(Node(_h(t, layer, L), left + t - 1, L + 1 - layer, h))
            below = _h(t, layer - 1, L) if layer > 1 else f"x_{t}"
            arrows.append(Arrow(below, _h(t, layer, L)))
            if t > 1:
                arrows.append(Arrow(_h(t - 1, layer, L), _h(t, layer, L)))
    return nodes, arrows


def _h(t: int, layer: int = 1, layers: int = 1) -> str:
    return f"h_{t}" + (f" of layer {layer}" if layers > 1 else "")


def step(reading: Reading) -> Drawing:
    """The last step of a language model with all its numbers."""
    states = reading.states(reading.steps()[-1][0])
    T, token = len(states), reading.tokens[-1]
    before = states[-2] if T > 1 else reading.first(reading.stack.layers - 1)[: len(states[0])]
    logits = states[-1] @ reading.output.T + reading.bias
    chances = softmax(logits)
    best = np.argsort(-chances, kind="stable")[:TOP]
    said = tuple(f"{reading.names[k]} {logits[k]:+.3f}" for k in best)
    nodes = [
        Node(
            "token",
            0,
            2,
            np.array([reading.ids[-1]]),
            GIVEN,
            f"“{token}”",
            (f"id {reading.ids[-1]}",),
        ),
        Node(f"e_{T}", 1, 2, reading.x[-1], GIVEN, f"e_{T}, its row of E"),
        Node(f"h_{T - 1}", 0, 1, before),
        Node(f"h_{T}", 1, 1, states[-1], title=f"h_{T} = {_rule(reading)}"),
        Node("logits", 2.15, 1, logits, title=f"V h_{T} + b", lines=said),
        Node("P(next)", 3.35, 1, chances, SAID, "softmax: P(next)", bars(reading.names, chances)),
    ]
    arrows = [
        Arrow("token", f"e_{T}"),
        Arrow(f"e_{T}", f"h_{T}"),
        Arrow(f"h_{T - 1}", f"h_{T}"),
        Arrow(f"h_{T}", "logits"),
        Arrow("logits", "P(next)"),
    ]
    title = f"A step of a language model, after “{' '.join(reading.tokens)}”"
    return Drawing(title, nodes, arrows, column=180, row=110)


def _rule(reading: Reading) -> str:
    kind = type(reading.stack.cell).__name__.removesuffix("Cell")
    return f"{kind}(h_{len(reading.ids) - 1}, e_{len(reading.ids)})"


def stacked(reading: Reading) -> Drawing:
    """Layers on layers, in one direction or two."""
    states = [[reading.states(run) for run in runs] for runs in reading.steps()]
    if reading.stack.bidirectional:
        return _both_ways(reading, states)
    nodes, arrows = _chain(reading, np.stack([runs[0] for runs in states]))
    return Drawing(f"{len(states)} layers: each reads the one below", nodes, arrows)


def _both_ways(reading: Reading, states: list[list[Array]]) -> Drawing:
    """→ and ← of each layer, both of which both of the next layer read."""
    L, T = len(states), len(reading.tokens)
    nodes = [
        Node(f"x_{t + 1}", t, 2 * L, x, GIVEN, f"x_{t + 1} {reading.tokens[t]}")
        for t, x in enumerate(reading.x)
    ]
    arrows = []
    for layer, runs in enumerate(states):
        for way, run in enumerate(runs):
            for t, h in enumerate(run):
                place = (t + (0.24 if way else -0.24), 2 * (L - layer) - 1 - 0.75 * way)
                name = _directed(layer, way, t)
                nodes.append(Node(name, *place, h))
                below = [_directed(layer - 1, k, t) for k in (0, 1)] if layer else [f"x_{t + 1}"]
                arrows += [Arrow(source, name) for source in below]
                before = t + 1 if way else t - 1
                if 0 <= before < T:
                    arrows.append(Arrow(_directed(layer, way, before), name))
    title = f"{L} layers in two directions: both directions feed both of the next layer"
    return Drawing(title, nodes, arrows, column=270, row=75)


def _directed(layer: int, way: int, t: int) -> str:
    return f"{'←' if way else '→'}h_{t + 1} of layer {layer + 1}"


# ------------------------------------------------------------------ on top


def _heads(names: Sequence[str], states: Array, seed: int) -> Array:
    """Chances of labels by a layer of chance weights with one decimal."""
    weight = np.random.default_rng([seed, 2]).standard_normal((len(names), SIZE)).round(1)
    return softmax(states @ weight.T)


def classifier(reading: Reading, seed: int) -> Drawing:
    """The last state says what the text is."""
    states = reading.states(reading.steps()[-1][0])
    nodes, arrows = _chain(reading, states[None])
    shares, T = _heads(LABELS, states[-1], seed), len(states)
    nodes.append(_answer("label", T - 1, LABELS, shares))
    title = "A classifier: the last state says what the text is"
    return Drawing(title, nodes, [*arrows, Arrow(f"h_{T}", "label")], row=110, column=190)


def tagger(reading: Reading, seed: int) -> Drawing:
    """Every state says what its word is."""
    states = reading.states(reading.steps()[-1][0])
    nodes, arrows = _chain(reading, states[None])
    for t, shares in enumerate(_heads(TAGS, states, seed), 1):
        nodes.append(_answer(f"tag_{t}", t - 1, TAGS, shares))
        arrows.append(Arrow(f"h_{t}", f"tag_{t}"))
    title = "A tagger: every state says what its word is"
    return Drawing(title, nodes, arrows, row=110, column=190)


def _answer(name: str, x: float, names: Sequence[str], shares: Array) -> Node:
    lines = bars(names, shares, most=TOP)
    return Node(name, x, -0.05 * len(lines), shares, SAID, f"P({name})", lines)


def training(reading: Reading) -> Drawing:
    """Teacher forcing: the right token goes in, whatever was said, and the next one is asked."""
    states = reading.states(reading.steps()[-1][0])[:-1]
    read = _of(reading, reading.ids[:-1])  # the last is asked for and not read
    nodes, arrows = _chain(read, states[None])
    chances = reading.next(states)
    asked = reading.ids[1:]
    nats = -np.log(chances[np.arange(len(asked)), asked])
    for t, (k, loss) in enumerate(zip(asked, nats, strict=True), 1):
        lines = (f"p({reading.names[k]}) = {chances[t - 1, k]:.3f}", f"−ln p = {loss:.3f}")
        nodes.append(Node(f"L_{t}", t - 1, -0.1, np.array([loss]), SAID, lines=lines))
        arrows.append(Arrow(f"h_{t}", f"L_{t}"))
    total = np.array([nats.mean()])
    middle = (len(asked) - 1) / 2
    nodes.append(Node("J", middle, -1.1, total, SAID, "J, their mean", (f"{total[0]:.3f}",)))
    arrows += [Arrow(f"L_{t}", "J") for t in range(1, len(asked) + 1)]
    title = "A language model in training: the right tokens go in"
    return Drawing(title, nodes, arrows, row=110)


def generation(reading: Reading) -> Drawing:
    """What is said is read next: the likeliest token at each step."""
    written = _written(reading)
    states = written.states(written.steps()[-1][0])
    nodes, arrows = _chain(written, states[None])
    for t, chances in enumerate(written.next(states), 1):
        name = f"P_{t}"
        lines = bars(written.names, chances, most=TOP)
        nodes.append(Node(name, t - 1, -0.3, chances, SAID, "P(next)", lines))
        arrows.append(Arrow(f"h_{t}", name))
        if t < len(states):
            way = ((t - 0.5, -0.3), (t - 0.5, 2.0))
            arrows.append(Arrow(name, f"x_{t + 1}", way, dashed=True))
    title = "A language model that writes: the likeliest token is read next"
    return Drawing(title, nodes, arrows, row=110, column=230)


def _written(reading: Reading) -> Reading:
    """As many tokens as the text has, the first one given and each the likeliest."""
    ids = reading.ids[:1]
    while len(ids) < len(reading.ids):
        so_far = _of(reading, ids)
        state = so_far.states(so_far.steps()[-1][0])[-1]
        ids = [*ids, int(np.argmax(reading.next(state)))]
    return _of(reading, ids)


def _of(reading: Reading, ids: list[int]) -> Reading:
    return replace(reading, tokens=[reading.names[k] for k in ids], ids=ids)


def started(reading: Reading) -> Reading:
    """With what stands before the first token."""
    if reading.tokens[0] == FIRST or FIRST not in reading.names:
        return reading
    return _of(reading, [reading.names.index(FIRST), *reading.ids])


def one_layer(reading: Reading) -> Reading:
    """The reading, if its network has one layer and one direction."""
    stack = reading.stack
    if stack.layers > 1 or stack.bidirectional:
        raise ConfigError(
            f"the network has {stack.layers} layers and {stack.directions} directions, but this "
            "picture is of one layer and one direction. Take stack, or another model."
        )
    return reading
