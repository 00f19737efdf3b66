"""`unrolled lab gradients MODEL TEXT`: the same question asked of a trained language model."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from unrolled.errors import ConfigError, DataError
from unrolled.evaluate.shown import columns, visible
from unrolled.lab.by_hand import Array, Gradients, forward
from unrolled.lab.half_life import half_life
from unrolled.nn.cells import GRUCell, LSTMCell
from unrolled.nn.recurrent import Recurrent
from unrolled.tasks.language.model import RecurrentLanguageModel
from unrolled.tasks.shared.finite import numbers

MOST_TOKENS = 200


@dataclass(frozen=True)
class TextGradients:
    """‖∂L_t/∂s_k‖ of a text: how much each token's surprise depends on each state before it."""

    tokens: list[str]  # what was read, the first input left out
    sizes: Array  # (T, T): a row a predicted token, a column a state
    gates: list[tuple[str, float, float]]  # layer, mean gate, half-life in steps

    def by_distance(self) -> Array:
        """The mean over all t of ‖∂L_t/∂s_{t−d}‖, d from 0."""
        return np.array([np.diagonal(self.sizes, -d).mean() for d in range(len(self.sizes))])

    def text(self) -> str:
        """Means by distance, then what the gates keep."""
        means = self.by_distance()
        at = [d for d in (0, 1, 2, 3, 5, 10, 20, 50, 100) if d < len(means)]
        first = means[0] or 1.0
        rows = [[str(d), f"{means[d]:.3e}", f"{means[d] / first:.1%}"] for d in at]
        parts = [columns([["distance", "mean ‖∂L_t/∂s_k‖", "of the first"], *rows])]
        if self.gates:
            kept = [[name, f"{mean:.3f}", f"{life:.1f}"] for name, mean, life in self.gates]
            parts.append(columns([["layer", "mean gate that keeps", "half-life"], *kept]))
        return "\n\n".join(parts)

    def as_json(self) -> dict[str, Any]:
        """Every number."""
        return {
            "tokens": self.tokens,
            "sizes": self.sizes.tolist(),
            "by_distance": self.by_distance().tolist(),
            "gates": [
                {"layer": name, "mean": mean, "half_life": life} for name, mean, life in self.gates
            ],
        }

    def chart(self) -> Any:
        """A heat map, a row a predicted token."""
        from unrolled.charts import heat_map

        names = [f"{n} {visible(token)}" for n, token in enumerate(self.tokens, 1)]
        return heat_map(
            self.sizes,
            rows=names,
            columns=["0", *names[:-1]],
            row_title="surprise at",
            column_title="state after",
            value_title="‖∂L_t/∂s_k‖",
            title="How much each token's surprise depends on each state",
        )


def text_gradients(model: Any, text: str) -> TextGradients:
    """Of a recurrent language model, for the tokens of one text."""
    if not isinstance(model, RecurrentLanguageModel):
        raise ConfigError(
            f"the model is of task {model.settings.task!r}, but gradients through time are those "
            "of a recurrent language model. Train one with `unrolled train lm`."
        )
    network: Any = model.network
    ids = model.encoder.encode_lines(text.split("\n")).ids
    if not 2 <= len(ids) <= MOST_TOKENS:
        raise DataError(
            "TEXT",
            f"has {len(ids)} tokens, but must have 2 to {MOST_TOKENS}, line ends among them.",
        )
    tokens = torch.tensor([[network.first, *ids.tolist()]])
    states, nats = _unrolled(network, tokens)
    sizes = np.zeros((len(nats), len(states)))
    for t, loss in enumerate(nats):
        parts = [part for state in states[: t + 1] for part in state]
        grads = torch.autograd.grad(loss, parts, retain_graph=True, materialize_grads=True)
        per_step = torch.stack([g.double().pow(2).sum() for g in grads]).view(t + 1, -1)
        sizes[t, : t + 1] = per_step.sum(dim=1).sqrt().numpy()
    names = model.encoder.vocabulary.decode(ids)
    sizes = numbers(sizes, of="the text", finite=True)
    return TextGradients(names, sizes, _kept(network.stack, network.embed(tokens[:, :-1])))


def _unrolled(network: Any, tokens: Tensor) -> tuple[list[tuple[Tensor, ...]], list[Tensor]]:
    """The state after each token, made from the one before, and the surprise at each next one."""
    states: list[tuple[Tensor, ...]] = []
    nats: list[Tensor] = []
    for x, target in zip(tokens[0, :-1], tokens[0, 1:], strict=True):
        _, state = network.stack(network.embed(x[None, None]), state=states[-1] if states else None)
        states.append(state)
        logits = functional.linear(state[0][-1], network.output_weight, network.bias)
        nats.append(functional.cross_entropy(logits, target[None]))
    return states, nats


def _kept(stack: Recurrent, x: Tensor) -> list[tuple[str, float, float]]:
    """The mean gate that keeps the memory, layer by layer: f of an LSTM, z of a GRU."""
    if not isinstance(stack.cell, LSTMCell | GRUCell):
        return []
    found, inputs = [], x[0].detach().double().numpy()
    for layer in range(stack.layers):
        run = forward(stack.cell, _weights(stack, layer), inputs, _zeros(stack))
        gate = np.stack([step.parts[1] for step in run])
        if isinstance(stack.cell, GRUCell) and stack.cell.update == "write":
            gate = 1.0 - gate
        open_gate = np.clip(gate, np.finfo(float).tiny, 1.0 - np.finfo(float).epsneg)  # has a log
        log = float(np.log(open_gate).mean())
        bias = log - float(np.log1p(-np.exp(log)))
        found.append((f"{layer + 1}", float(gate.mean()), half_life(bias)))
        inputs = np.stack([step.after[: stack.hidden_size] for step in run])
    return found


def _zeros(stack: Recurrent) -> Array:
    return np.zeros(stack.hidden_size * stack.cell.state_size)


def _weights(stack: Recurrent, layer: int) -> Gradients:
    """The weights of a layer as by_hand names them; an absent bias is 0."""
    size = stack.cell.gates * stack.hidden_size
    names = {"ih": "weight_ih", "hh": "weight_hh", "bias_ih": "bias_ih", "bias_hh": "bias_hh"}
    names["peephole"] = "peephole"
    given = dict(stack.named_parameters())
    found = {"bias_ih": np.zeros(size), "bias_hh": np.zeros(size)}
    for name, full in names.items():
        if f"{full}_l{layer}" in given:
            found[name] = given[f"{full}_l{layer}"].detach().double().numpy()
    return found
