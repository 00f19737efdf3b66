"""A text as a recurrent network reads it: a small network of chance, or a language model's own."""

from collections.abc import Sequence
from copy import deepcopy
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from unrolled.errors import ConfigError, not_one_of
from unrolled.evaluate.shown import visible
from unrolled.lab.by_hand import Array, Gradients, Step, every_cell, forward
from unrolled.lab.equations.tools import softmax
from unrolled.nn.cells import Cell
from unrolled.nn.recurrent import Recurrent

MOST_STEPS = 8  # more would not be read in a picture
FIRST = "<s>"
SIZE = 2  # numbers of a vector and units of a small network
SCALE = 0.8
NEVER = -99.0  # of a token that never comes next: what stands before the first
WEIGHTS = {
    "ih": "weight_ih",
    "hh": "weight_hh",
    "bias_ih": "bias_ih",
    "bias_hh": "bias_hh",
    "peephole": "peephole",
}


@dataclass(frozen=True)
class Reading:
    """A network and what it reads."""

    tokens: list[str]  # T
    ids: list[int]  # T
    names: Sequence[str]  # V
    table: Array  # (V, E), the vector of each token
    stack: Recurrent  # in float64
    output: Array  # (V, H), a row a token that may come next
    bias: Array  # (V,)

    @property
    def x(self) -> Array:
        """(T, E)."""
        return np.asarray(self.table[self.ids])

    def weights(self, layer: int, direction: int) -> Gradients:
        """As by_hand names them; an absent bias is 0."""
        suffix = f"_l{layer}" + "_reverse" * direction
        given = dict(self.stack.named_parameters())
        size = self.stack.cell.gates * self.stack.hidden_size
        found = {"bias_ih": np.zeros(size), "bias_hh": np.zeros(size)}
        for name, full in WEIGHTS.items():
            if full + suffix in given:
                found[name] = given[full + suffix].detach().numpy()
        return found

    def steps(self) -> list[list[list[Step]]]:
        """By layer, direction and time; the backward direction in the order of the text, too."""
        x, found = self.x, []
        for layer in range(self.stack.layers):
            runs = [self._run(layer, direction, x) for direction in range(self.stack.directions)]
            found.append(runs)
            states = [self.states(run) for run in runs]
            joined = np.concatenate if self.stack.combine == "concat" else np.mean
            x = joined(states, 1 if self.stack.combine == "concat" else 0)
        return found

    def _run(self, layer: int, direction: int, x: Array) -> list[Step]:
        way = slice(None, None, -1 if direction else 1)
        first = self.first(layer, direction)
        return forward(self.stack.cell, self.weights(layer, direction), x[way], first)[way]

    def first(self, layer: int = 0, direction: int = 0) -> Array:
        """The state before the first token."""
        start = self.stack.start(1)
        return np.concatenate(
            [part[layer * self.stack.directions + direction, 0].detach().numpy() for part in start]
        )

    def states(self, steps: Sequence[Step]) -> Array:
        """h of each step (T, H)."""
        return np.stack([step.after[: self.stack.hidden_size] for step in steps])

    def next(self, h: Array) -> Array:
        """The chances of the next token (…, V)."""
        return softmax(h @ self.output.T + self.bias)


def words_of(text: str) -> list[str]:
    """Words, or the characters of a text that has no space."""
    words = text.split() if " " in text.strip() else list(text.strip())
    if not 2 <= len(words) <= MOST_STEPS:
        raise ConfigError(
            f"--text has {len(words)} tokens, but a picture holds 2 to {MOST_STEPS}: words, or "
            "characters where there is no space. Give another text."
        )
    return words


def cell_named(variant: str) -> Cell:
    """The first cell whose name begins so."""
    cells = every_cell()
    for name, cell in cells.items():
        if f"{name} ".startswith(f"{variant} "):
            return cell
    raise not_one_of("--cell", variant, cells)


def small_reading(
    text: str, variant: str, *, layers: int = 1, both: bool = False, seed: int = 1
) -> Reading:
    """A network of two units with weights of one decimal."""
    tokens = words_of(text)
    names = [FIRST, *sorted({*tokens})]
    stack = small_stack(variant, layers=layers, both=both, seed=seed)
    draw = np.random.default_rng([seed, 1]).standard_normal
    table, output, bias = (
        draw(shape).round(1)
        for shape in ((len(names), SIZE), (len(names), stack.output_size), (len(names),))
    )
    bias[0] = NEVER
    return Reading(tokens, list(map(names.index, tokens)), names, table, stack, output, bias)


def small_stack(variant: str, *, layers: int = 1, both: bool = False, seed: int = 1) -> Recurrent:
    """Two units a layer and direction, weights of one decimal."""
    stack = Recurrent(
        SIZE,
        SIZE,
        cell=cell_named(variant),
        layers=layers,
        bidirectional=both,
        dtype=torch.float64,
    )
    draw = np.random.default_rng(seed).standard_normal
    with torch.no_grad():
        for parameter in stack.parameters():
            drawn = (SCALE * draw(tuple(parameter.shape))).round(1)
            parameter.copy_(torch.from_numpy(drawn))
    return stack


def model_reading(model: Any, text: str) -> Reading:
    """The same of a recurrent language model, from what stands before its first token on."""
    from unrolled.tasks.language.model import RecurrentLanguageModel

    if not isinstance(model, RecurrentLanguageModel):
        raise ConfigError(
            f"the model is of task {model.settings.task!r}, but this picture is one of a recurrent "
            "language model. Train one with `unrolled train lm`, or leave out --model."
        )
    network: Any = model.network
    own = model.encoder.encode_lines([text]).ids.tolist()[:-1]  # without the line's end
    ids = [network.first, *own]
    if not 2 <= len(ids) <= MOST_STEPS:
        raise ConfigError(
            f"--text has {len(own)} tokens of the model, but a picture holds 1 to {MOST_STEPS - 1}."
        )
    names = model.encoder.vocabulary.decode(range(len(model.encoder.vocabulary)))
    every = torch.arange(len(names))
    with torch.no_grad():
        table, output, bias = (
            part.double().numpy()
            for part in (network.embed(every), network.output_weight, network.bias)
        )
    shown = [visible(name) for name in names]
    stack = deepcopy(network.stack).double()
    return Reading([shown[k] for k in ids], ids, shown, table, stack, output, bias)
