"""The language model of a fixed window, drawn from a network of tasks/window."""

from typing import Any

import numpy as np
import torch

from unrolled.charts import Arrow
from unrolled.errors import ConfigError
from unrolled.evaluate.shown import visible
from unrolled.lab.by_hand import Array
from unrolled.lab.drawing.drawing import GIVEN, SAID, Drawing, Node, bars
from unrolled.lab.drawing.reading import FIRST, SIZE, words_of
from unrolled.lab.equations.tools import softmax
from unrolled.tasks.window.model import WindowLanguageModel
from unrolled.tasks.window.network import WindowNetwork
from unrolled.tasks.window.settings import WindowSettings

WINDOW = 3  # tokens of a small network


def small_window(text: str, *, direct: bool, seed: int) -> Drawing:
    """A network of chance with weights of one decimal, after a text."""
    tokens = words_of(text)
    names = [FIRST, *sorted({*tokens})]
    settings = WindowSettings(
        window=WINDOW, embedding_size=SIZE, hidden_size=SIZE, direct=direct, tied=False
    )
    network = WindowNetwork(settings, len(names)).double()
    draw = np.random.default_rng(seed).standard_normal
    with torch.no_grad():
        for parameter in network.parameters():
            parameter.copy_(torch.from_numpy(draw(tuple(parameter.shape)).round(1)))
    return window(network, [0] * WINDOW + list(map(names.index, tokens)), names)


def model_window(model: Any, text: str) -> Drawing:
    """The same of a window model."""
    if not isinstance(model, WindowLanguageModel):
        raise ConfigError(
            f"the model is of task {model.settings.task!r}, but this picture is one of a window "
            "model. Train one with `unrolled train window`, or leave out --model."
        )
    network: Any = model.network
    own = model.encoder.encode_lines([text]).ids.tolist()[:-1]  # without the line's end
    names = model.encoder.vocabulary.decode(range(len(model.encoder.vocabulary)))
    before = [network.first] * network.settings.window
    return window(network, [*before, *own], [visible(name) for name in names])


def window(network: WindowNetwork, ids: list[int], names: list[str]) -> Drawing:
    """What the network makes of the last n tokens."""
    n = network.settings.window
    seen = ids[-n:]
    parts = {name: value.detach().double().numpy() for name, value in network.named_parameters()}
    e = parts["embedding.weight"][seen]  # (n, E)
    h = np.tanh(parts["hidden.weight"] @ e.ravel() + parts["hidden.bias"])
    shares = softmax(_logits(parts, h, e.ravel()))
    middle = (n - 1) / 2
    nodes = [
        Node(f"e_{k}", k - 1, 4, vector, GIVEN, f"e_{k} of “{names[token]}”")
        for k, (token, vector) in enumerate(zip(seen, e, strict=True), 1)
    ]
    nodes += [
        Node("x", middle, 3, e.ravel(), title="x, side by side"),
        Node("h", middle, 2, h, title="h = tanh(W x + b)"),
        Node(
            "P(next)", middle, 0.4, shares, SAID, "softmax(U h + b): P(next)", bars(names, shares)
        ),
    ]
    arrows = [Arrow(f"e_{k}", "x") for k in range(1, n + 1)]
    arrows += [Arrow("x", "h"), Arrow("h", "P(next)")]
    if "direct" in parts:
        nodes[-1] = nodes[-1]._replace(title="softmax(U h + W₃ x + b): P(next)")
        aside = middle + 1.1
        arrows.append(Arrow("x", "P(next)", ((aside, 3.0), (aside, 0.4)), "W₃", dashed=True))
    title = f"A window of {n}: what is older does not matter"
    return Drawing(title, nodes, arrows, column=190)


def _logits(parts: dict[str, Array], h: Array, x: Array) -> Array:
    logits: Array = parts.get("weight", parts["embedding.weight"]) @ h + parts["bias"]
    return logits + parts["direct"] @ x if "direct" in parts else logits
