"""`unrolled lab layers`: seven dense layers on handwritten digits, and what reaches the first.

The digits are those of scikit-learn (8 × 8 pixels, no download). The mean |gradient| of the first
and of the last layer is kept through training for σ, ReLU and leaky ReLU; so is the share of units
that are 0 for every digit, which no gradient passes any more.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from unrolled.evaluate.shown import columns

LAYERS, WIDTH, BATCH = 7, 32, 64
ACTIVATIONS: Mapping[str, Callable[[Tensor], Tensor]] = {
    "sigmoid": torch.sigmoid,
    "relu": torch.relu,
    "leaky_relu": functional.leaky_relu,
}


class Course(NamedTuple):
    """What was seen at each update that was looked at."""

    updates: list[int]
    first: list[float]  # mean |gradient| of the first layer's weights
    last: list[float]
    accuracy: float  # in the end, on digits not trained on
    dead: float  # share of hidden units that are 0 for every digit


class Dense(nn.Module):
    """Seven layers: six hidden ones and the output."""

    def __init__(self, activation: Callable[[Tensor], Tensor]) -> None:
        super().__init__()
        sizes = [64, *[WIDTH] * (LAYERS - 1), 10]
        self.layers = nn.ModuleList(nn.Linear(a, b) for a, b in pairwise(sizes))
        for parameter in self.parameters():  # He et al. 2015: activations keep their size
            if parameter.dim() == 2:
                nn.init.kaiming_normal_(parameter, nonlinearity="relu")
            else:
                nn.init.zeros_(parameter)
        self.activation = activation

    def hidden(self, x: Tensor) -> list[Tensor]:
        """What every hidden layer gives."""
        found = []
        for layer in self.layers[:-1]:
            x = self.activation(layer(x))
            found.append(x)
        return found

    def forward(self, x: Tensor) -> Tensor:
        """Scores of the ten digits."""
        scores: Tensor = self.layers[-1](self.hidden(x)[-1])
        return scores

    def mean_gradient(self, layer: int) -> float:
        """Of a layer's weights."""
        grad = self.layers[layer].weight.grad
        assert isinstance(grad, Tensor)
        return float(grad.abs().mean())


def course(activation: str, *, updates: int, rate: float, seed: int) -> Course:
    """Train one net and watch its first and its last layer."""
    from sklearn.datasets import load_digits

    digits = load_digits()
    x = torch.from_numpy(digits.data / 16.0).float()
    y = torch.from_numpy(digits.target).long()
    order = torch.from_numpy(np.random.default_rng(seed).permutation(len(x)))
    test, train = order[:400], order[400:]
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        net = Dense(ACTIVATIONS[activation])
    updates_seen: list[int] = []
    first: list[float] = []
    last: list[float] = []
    random = np.random.default_rng(seed)
    for update in range(updates):
        rows = train[torch.from_numpy(random.integers(len(train), size=BATCH))]
        net.zero_grad()
        functional.cross_entropy(net(x[rows]), y[rows]).backward()  # type: ignore[no-untyped-call]
        if update % max(1, updates // 20) == 0:
            updates_seen.append(update)
            first.append(net.mean_gradient(0))
            last.append(net.mean_gradient(-1))
        with torch.no_grad():
            for parameter in net.parameters():
                if parameter.grad is not None:
                    parameter.sub_(parameter.grad, alpha=rate)
    with torch.no_grad():
        accuracy = float((net(x[test]).argmax(dim=1) == y[test]).double().mean())
        dead = float(torch.cat([(h == 0.0).all(dim=0) for h in net.hidden(x)]).double().mean())
    return Course(updates_seen, first, last, accuracy, dead)


@dataclass(frozen=True)
class DeepGradients:
    """A course an activation."""

    courses: Mapping[str, Course]

    def text(self) -> str:
        """Mean gradients over all that was looked at."""
        head = ["activation", "first layer", "last layer", "last/first", "accuracy", "dead units"]
        rows = []
        for name, c in self.courses.items():
            first, last = float(np.mean(c.first)), float(np.mean(c.last))
            numbers = [f"{first:.2e}", f"{last:.2e}", f"{last / first:.0f}"]
            rows.append([name, *numbers, f"{c.accuracy:.1%}", f"{c.dead:.1%}"])
        return "mean |gradient| of the weights, seven dense layers\n" + columns([head, *rows])

    def as_json(self) -> dict[str, Any]:
        """Every number."""
        return {name: c._asdict() for name, c in self.courses.items()}

    def chart(self) -> Any:
        """First and last layer of each, over training."""
        from unrolled.charts import gradient_curve

        lines: dict[str, list[float]] = {}
        for name, c in self.courses.items():
            lines |= {f"{name}, first layer": c.first, f"{name}, last layer": c.last}
        updates = next(iter(self.courses.values())).updates
        return gradient_curve(
            updates,
            lines,
            x_title="updates",
            y_title="mean |gradient|",
            title="What reaches the first of seven layers",
        )


def layers(
    *, updates: int = 600, rate: float = 0.1, seed: int = 1, tell: Any = lambda _: None
) -> DeepGradients:
    """All three activations."""
    found = {}
    for name in ACTIVATIONS:
        found[name] = course(name, updates=updates, rate=rate, seed=seed)
        tell(f"layers: {name}")
    return DeepGradients(found)
