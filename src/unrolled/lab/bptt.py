"""`unrolled lab bptt "text"`: back-propagation through time, factor by factor, to check by pencil.

A small network reads the characters of a text, one-hot, and predicts each next one. Its weights
have one decimal. Every ∂s_t/∂s_{t−1} is shown and so is their product, and five ways to the same
gradient are compared: the double sum, the recursion, autograd, the compiled kernels, differences.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from unrolled.errors import ConfigError, not_one_of
from unrolled.evaluate.shown import columns, visible
from unrolled.lab.by_hand import (
    Array,
    Gradients,
    double_sum,
    every_cell,
    forward,
    random_weights,
    recursion,
    step_jacobian,
)
from unrolled.lab.equations.tools import apart, slope, softmax
from unrolled.nn.cells import Cell
from unrolled.nn.layer import reference
from unrolled.nn.recurrent import Recurrent

NAMES = {
    "ih": "weight_ih_l0",
    "hh": "weight_hh_l0",
    "bias_ih": "bias_ih_l0",
    "bias_hh": "bias_hh_l0",
    "peephole": "peephole_l0",
}
MOST_FACTORS = 8  # more would not be read
MOST_CHARACTERS = 200


@dataclass(frozen=True)
class Run:
    """A text read by a small network, and all derivatives of its loss."""

    cell: Cell
    variant: str
    text: str
    weights: Gradients
    output: Array  # (V, H)

    @property
    def alphabet(self) -> list[str]:
        """The different characters."""
        return sorted(set(self.text))

    @property
    def inputs(self) -> Array:
        """One-hot rows of all characters but the last."""
        ids = [self.alphabet.index(letter) for letter in self.text[:-1]]
        return np.asarray(np.eye(len(self.alphabet))[ids])

    @property
    def targets(self) -> list[int]:
        """The characters to be predicted."""
        return [self.alphabet.index(letter) for letter in self.text[1:]]

    @property
    def hidden(self) -> int:
        """H."""
        return int(self.output.shape[1])

    @property
    def first(self) -> Array:
        """A state of zeros."""
        return np.zeros(self.hidden * self.cell.state_size)

    def loss(self, weights: Gradients) -> float:
        """−Σ_t log p_t[next character]."""
        steps = forward(self.cell, weights, self.inputs, self.first)
        logits = np.stack([step.after[: self.hidden] for step in steps]) @ self.output.T
        return -float(sum(np.log(softmax(z)[y]) for z, y in zip(logits, self.targets, strict=True)))

    def slopes(self) -> list[Array]:
        """∂L_t/∂s_t of each step: Vᵀ(p_t − y_t), and 0 for c."""
        found = []
        for step, target in zip(self.steps(), self.targets, strict=True):
            p = softmax(self.output @ step.after[: self.hidden])
            p[target] -= 1.0
            rest = np.zeros(len(step.after) - self.hidden)
            found.append(np.concatenate([self.output.T @ p, rest]))
        return found

    def steps(self) -> list[Any]:
        """The forward pass."""
        return forward(self.cell, self.weights, self.inputs, self.first)

    def jacobians(self) -> list[Array]:
        """∂s_t/∂s_{t−1} of each step."""
        return [step_jacobian(self.cell, self.weights, step) for step in self.steps()]


def small_run(text: str, variant: str, *, hidden: int, seed: int) -> Run:
    """A network with weights of one decimal for a text of two or more characters."""
    if not 2 <= len(text) <= MOST_CHARACTERS:
        raise ConfigError(
            f"the text has {len(text)} characters, but must have 2 to {MOST_CHARACTERS}: "
            "each is predicted from those before it."
        )
    cells = every_cell()
    chosen = next((name for name in cells if name.startswith(variant)), None)
    if chosen is None:
        raise not_one_of("--cell", variant, cells)
    V = len(set(text))
    weights = random_weights(cells[chosen], V, hidden, seed=seed, scale=0.8)
    output = np.random.default_rng(seed + 1).standard_normal((V, hidden)).round(1)
    rounded = {name: value.round(1) for name, value in weights.items()}
    return Run(cells[chosen], chosen, text, rounded, output)


# ------------------------------------------------------------------ five ways


def by_torch(run: Run, *, compiled: bool) -> Gradients:
    """dL/dW by autograd through the plain equations, or by the layer as it runs in earnest."""
    stack = Recurrent(run.inputs.shape[1], run.hidden, cell=run.cell, dtype=torch.float64)
    with torch.no_grad():
        for name, value in run.weights.items():
            stack.get_parameter(NAMES[name]).copy_(torch.from_numpy(value))
    loss = _torch_loss(run, stack) if compiled else _plain_loss(run, stack)
    parameters = [stack.get_parameter(NAMES[name]) for name in run.weights]
    grads = torch.autograd.grad(loss, parameters)
    return {name: grad.numpy() for name, grad in zip(run.weights, grads, strict=True)}


def _plain_loss(run: Run, stack: Recurrent) -> Tensor:
    with reference():
        return _torch_loss(run, stack)


def _torch_loss(run: Run, stack: Recurrent) -> Tensor:
    y, _ = stack(torch.from_numpy(run.inputs)[None])  # (1, T, H)
    logits = y[0] @ torch.from_numpy(run.output).t()
    return functional.cross_entropy(logits, torch.tensor(run.targets), reduction="sum")


def differences(run: Run) -> Gradients:
    """dL/dW by central differences."""
    return {
        name: slope(lambda v, name=name: run.loss({**run.weights, name: v}), value)  # type: ignore[misc]
        for name, value in run.weights.items()
    }


def distance(a: Gradients, b: Gradients) -> float:
    """The largest over the parameters; a gradient of nothing but rounding counts as 0."""
    return max(apart(a[name], b[name]) for name in b if np.abs(b[name]).max() > 1e-12)


def ways(run: Run) -> dict[str, float]:
    """How far each way is from autograd."""
    steps, slopes = run.steps(), run.slopes()
    true = by_torch(run, compiled=False)
    found = {
        "double sum over t and k": double_sum(run.cell, run.weights, steps, slopes),
        "linear recursion": recursion(run.cell, run.weights, steps, slopes),
        "the layer as it runs": by_torch(run, compiled=True),
        "finite differences": differences(run),
    }
    return {name: distance(gradients, true) for name, gradients in found.items()}


def missing_by_truncation(run: Run) -> dict[int, float]:
    """By how many steps back gradients may go: the share of dL/dU that is missing."""
    steps, slopes = run.steps(), run.slopes()
    whole = double_sum(run.cell, run.weights, steps, slopes)["hh"]
    size = float(np.linalg.norm(whole)) or 1.0
    return {
        k: float(np.linalg.norm(whole - _truncated(run, steps, slopes, k)) / size)
        for k in _lengths(len(steps))
    }


def _truncated(run: Run, steps: list[Any], slopes: list[Array], k: int) -> Array:
    return double_sum(run.cell, run.weights, steps, slopes, truncated=k)["hh"]


def _lengths(steps: int) -> list[int]:
    return sorted({k for k in (1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 64, 128, steps) if k <= steps})


def sizes(run: Run) -> Array:
    """‖∂L_t/∂s_k‖, a row a t, a column a k; 0 above the diagonal."""
    jacobians, slopes = run.jacobians(), run.slopes()
    table = np.zeros((len(slopes), len(slopes)))
    for t, row in enumerate(slopes):
        for k in range(t, -1, -1):
            table[t, k] = np.linalg.norm(row)
            row = row @ jacobians[k]
    return table


# ------------------------------------------------------------------ as a result


@dataclass(frozen=True)
class Shown:
    """The factors, their product, the five ways, and what truncation leaves out."""

    run: Run

    def product(self) -> Array:
        """∂L_T/∂s_1."""
        row: Array = self.run.slopes()[-1]
        for factor in reversed(self.run.jacobians()[1:]):
            row = row @ factor
        return row

    def text(self) -> str:
        """What a student checks by pencil."""
        run, T = self.run, len(self.run.targets)
        factors = run.jacobians()[1:]
        shown = factors[:MOST_FACTORS]
        lines = [
            f"{run.variant}, {run.hidden} units, reads {run.text!r}: {T} steps, "
            f"loss {run.loss(run.weights):.4f} nats",
            *(f"\n{name} =\n{matrix(value)}" for name, value in run.weights.items()),
            f"\noutput =\n{matrix(run.output)}\n",
            columns([["step", "reads", "predicts", "state"], *map(self._row, range(T))]),
        ]
        for t, factor in enumerate(shown, 2):
            lines.append(f"\n∂s_{t}/∂s_{t - 1} =\n{matrix(factor, 4)}")
        if len(factors) > len(shown):
            lines.append(f"\n… and {len(factors) - len(shown)} more factors")
        lines.append(f"\n∂L_{T}/∂s_{T} = {matrix(run.slopes()[-1][None], 4)}")
        lines.append(f"∂L_{T}/∂s_1 = {matrix(self.product()[None], 6)}   the product of all")
        far = [[name, f"{off:.1e}"] for name, off in ways(run).items()]
        lines.append("\n" + columns([["dL/dW by", "off from autograd"], *far]))
        cut = [[str(k), f"{share:.2%}"] for k, share in missing_by_truncation(run).items()]
        lines.append("\n" + columns([["truncated at", "missing of dL/dU"], *cut]))
        return "\n".join(lines)

    def _row(self, t: int) -> list[str]:
        run = self.run
        state = " ".join(f"{value:+.4f}" for value in run.steps()[t].after)
        return [str(t + 1), visible(run.text[t]), visible(run.text[t + 1]), state]

    def as_json(self) -> dict[str, Any]:
        """All numbers."""
        run = self.run
        return {
            "cell": run.variant,
            "text": run.text,
            "weights": {name: value.tolist() for name, value in run.weights.items()},
            "output": run.output.tolist(),
            "states": [step.after.tolist() for step in run.steps()],
            "factors": [factor.tolist() for factor in run.jacobians()[1:]],
            "product": self.product().tolist(),
            "off_from_autograd": ways(run),
            "missing_by_truncation": {str(k): v for k, v in missing_by_truncation(run).items()},
        }

    def chart(self) -> Any:
        """‖∂L_t/∂s_k‖ as a heat map: how much of each loss reaches each step."""
        from unrolled.charts import heat_map

        run = self.run
        names = [f"{n} {visible(letter)}" for n, letter in enumerate(run.text, 1)]
        return heat_map(
            sizes(run),
            rows=names[1:],
            columns=names[:-1],
            row_title="loss at",
            column_title="state after",
            value_title="‖∂L_t/∂s_k‖",
            title=f"How much of each loss reaches each state: {run.variant}",
        )


def matrix(values: Array, digits: int = 1) -> str:
    """Rows of numbers, one below the other."""
    rows = np.atleast_2d(values)
    return "\n".join("  ".join(f"{value:+.{digits}f}" for value in row) for row in rows)
