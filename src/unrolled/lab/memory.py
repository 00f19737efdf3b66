"""`unrolled lab memory`: what is remembered over how many steps, and by whom.

copy        the first symbol of a sequence is asked for at its end, noise in between
adding      two of the numbers of a sequence are marked; their sum is asked for at the end
agreement   the cat , which already ate … , was: the number of the first noun decides the verb,
            and nouns of either number stand between

Networks are trained on sequences of all lengths up to the longest and tried at some of them. The
n-gram and the window see the last few symbols alone.
"""

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn import functional

from unrolled.evaluate.shown import columns
from unrolled.nn.cells import Cell, GRUCell, LSTMCell, RNNCell
from unrolled.nn.recurrent import Recurrent
from unrolled.training.optimise import clip_gradients

SYMBOLS, NOISE = 8, 8  # of the copy task: what is to be remembered, and what is not
WINDOW = 4  # symbols that the n-gram and the window see
SOLVED = 0.04  # of the adding task: an answer is right that is off by less


class Kind(NamedTuple):
    """A recurrent network as it begins."""

    cell: Cell
    init: str = "uniform"
    forget_bias: float | None = None
    rate: float = 0.005


NETWORKS: Mapping[str, Kind] = {
    "rnn": Kind(RNNCell(), rate=0.001),
    "irnn": Kind(RNNCell("relu"), "identity", rate=0.001),
    "gru": Kind(GRUCell()),
    "lstm": Kind(LSTMCell(), forget_bias=1.0),
}


class Examples(NamedTuple):
    """Sequences of unequal length and what is asked at their end."""

    x: Tensor  # (B, T, E)
    lengths: Tensor  # (B,)
    answers: Tensor  # (B,) a class, or a number


# ------------------------------------------------------------------ three tasks


def copy_examples(random: np.random.Generator, lengths: NDArray[np.int64]) -> Examples:
    """One symbol, then noise; which symbol was it?"""
    B, T = len(lengths), int(lengths.max())
    ids = SYMBOLS + random.integers(NOISE, size=(B, T))
    ids[:, 0] = random.integers(SYMBOLS, size=B)
    x = functional.one_hot(torch.from_numpy(ids), SYMBOLS + NOISE).float()
    return Examples(x, torch.from_numpy(lengths), torch.from_numpy(ids[:, 0]))


def adding_examples(random: np.random.Generator, lengths: NDArray[np.int64]) -> Examples:
    """Numbers in 0 … 1; the first and one of the next is marked; their sum."""
    B, T = len(lengths), int(lengths.max())
    values, marks = random.random((B, T)), np.zeros((B, T))
    second = 1 + random.integers(np.maximum(lengths // 2, 1))
    rows = np.arange(B)
    marks[rows, 0] = marks[rows, second.clip(max=lengths - 1)] = 1.0
    x = torch.from_numpy(np.stack([values, marks], axis=2)).float()
    answers = torch.from_numpy((values * marks).sum(axis=1)).float()
    return Examples(x, torch.from_numpy(lengths), answers)


def agreement_examples(random: np.random.Generator, lengths: NDArray[np.int64]) -> Examples:
    """cat or cats, then words among which nouns of both numbers; was or were?

    Words: 0 cat, 1 cats, 2 dog, 3 dogs, 4 … 9 others.
    """
    B, T = len(lengths), int(lengths.max())
    ids = random.integers(2, 10, size=(B, T))
    ids[:, 0] = random.integers(2, size=B)
    x = functional.one_hot(torch.from_numpy(ids), 10).float()
    return Examples(x, torch.from_numpy(lengths), torch.from_numpy(ids[:, 0]))


TASKS = {
    "copy": (copy_examples, SYMBOLS + NOISE, SYMBOLS),
    "adding": (adding_examples, 2, 1),
    "agreement": (agreement_examples, 10, 2),
}


# ------------------------------------------------------------------ models


class Reader(nn.Module):
    """A recurrent layer, and a linear layer on its last state."""

    def __init__(self, kind: Kind, inputs: int, hidden: int, outputs: int) -> None:
        super().__init__()
        self.stack = Recurrent(
            inputs, hidden, cell=kind.cell, init=kind.init, forget_bias=kind.forget_bias
        )
        self.head = nn.Linear(hidden, outputs)

    def forward(self, examples: Examples) -> Tensor:
        """Scores of the classes, or one number: (B, outputs)."""
        _, (h, *_) = self.stack(examples.x, lengths=examples.lengths)
        scores: Tensor = self.head(h[-1])
        return scores


class Window(nn.Module):
    """A layer on the last few symbols alone (Bengio et al. 2003)."""

    def __init__(self, inputs: int, hidden: int, outputs: int) -> None:
        super().__init__()
        self.net = nn.Sequential(
            nn.Linear(WINDOW * inputs, hidden), nn.Tanh(), nn.Linear(hidden, outputs)
        )

    def forward(self, examples: Examples) -> Tensor:
        """As Reader's."""
        x = functional.pad(examples.x, (0, 0, WINDOW, 0))  # (B, WINDOW + T, E)
        places = examples.lengths[:, None] + torch.arange(WINDOW)  # the last ones of each row
        seen = x[torch.arange(len(x))[:, None], places]  # (B, WINDOW, E)
        scores: Tensor = self.net(seen.flatten(1))
        return scores


def loss_of(scores: Tensor, answers: Tensor) -> Tensor:
    """Cross-entropy of classes, squared error of a number."""
    if answers.is_floating_point():
        return functional.mse_loss(scores[:, 0], answers)
    return functional.cross_entropy(scores, answers)


def share_right(scores: Tensor, answers: Tensor) -> float:
    """Of the answers."""
    if answers.is_floating_point():
        return float(((scores[:, 0] - answers).abs() < SOLVED).double().mean())
    return float((scores.argmax(dim=1) == answers).double().mean())


def train(
    model: nn.Module, make: Any, *, longest: int, updates: int, rate: float, seed: int
) -> None:
    """Adam on fresh sequences of random lengths, ever longer ones over the first half."""
    random = np.random.default_rng(seed)
    optimiser = torch.optim.Adam(model.parameters(), lr=rate)
    for update in range(updates):
        reach = max(4, int(longest * min(1.0, 2.0 * (update + 1) / updates)))
        examples = make(random, random.integers(2, reach + 1, size=64))
        loss = loss_of(model(examples), examples.answers)
        optimiser.zero_grad(set_to_none=False)
        loss.backward()  # type: ignore[no-untyped-call]
        clip_gradients([p.grad for p in model.parameters() if p.grad is not None], 1.0)
        for group in optimiser.param_groups:
            group["lr"] = rate * min(1.0, 2.0 * (1.0 - update / updates))
        optimiser.step()


@contextmanager
def one_thread() -> Iterator[None]:
    """Networks as small as these gain nothing from a second thread and lose much by waiting."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)


@torch.no_grad()
def tried(model: nn.Module, make: Any, distances: Sequence[int], *, seed: int) -> list[float]:
    """The share of right answers at each length, on 500 sequences each."""
    model.eval()
    found = []
    for distance in distances:
        examples = make(np.random.default_rng([seed, distance]), np.full(500, distance))
        found.append(share_right(model(examples), examples.answers))
    return found


def ngram_tried(
    make: Any, distances: Sequence[int], *, longest: int, seed: int, shortest: int = 2
) -> list[float]:
    """The same by counting what was asked after the last few symbols."""
    random = np.random.default_rng(seed)
    counts: dict[tuple[int, ...], Counter[int]] = defaultdict(Counter)
    every: Counter[int] = Counter()
    for _ in range(100):
        examples = make(random, random.integers(shortest, longest + 1, size=64))
        for gram, answer in _grams(examples):
            counts[gram][answer] += 1
            every[answer] += 1
    found = []
    for distance in distances:
        examples = make(np.random.default_rng([seed, distance]), np.full(500, distance))
        guesses = [(counts.get(g, every).most_common(1)[0][0], a) for g, a in _grams(examples)]
        found.append(sum(guess == answer for guess, answer in guesses) / len(guesses))
    return found


def _grams(examples: Examples) -> list[tuple[tuple[int, ...], int]]:
    ids = examples.x.argmax(dim=2).tolist()
    rows = zip(ids, examples.lengths.tolist(), examples.answers.tolist(), strict=True)
    return [(tuple(row[max(0, n - WINDOW + 1) : n]), answer) for row, n, answer in rows]


# ------------------------------------------------------------------ the study


@dataclass(frozen=True)
class Memory:
    """Shares of right answers by distance, a value a seed, of each model."""

    task: str
    distances: tuple[int, ...]
    found: Mapping[str, list[list[float]]]  # a row a seed

    def mean(self, name: str) -> list[float]:
        """Over the seeds."""
        return [float(value) for value in np.mean(self.found[name], axis=0)]

    def text(self) -> str:
        """A line a model."""
        seeds = len(next(iter(self.found.values())))
        head = [f"{self.task}, {seeds} seeds", *(f"{d} steps" for d in self.distances)]
        rows = [[name, *(f"{share:.1%}" for share in self.mean(name))] for name in self.found]
        return columns([head, *rows])

    def as_json(self) -> dict[str, Any]:
        """Every value."""
        return {"task": self.task, "distances": list(self.distances), "right": dict(self.found)}

    def chart(self) -> Any:
        """Accuracy over distance; the band is from the worst to the best seed."""
        from unrolled.charts import length_curve

        bands = {
            name: [(min(column), max(column)) for column in zip(*rows, strict=True)]
            for name, rows in self.found.items()
            if len(rows) > 1
        }
        return length_curve(
            self.distances,
            {name: self.mean(name) for name in self.found},
            intervals=bands,
            y_title="share of right answers",
            x_title="steps to remember",
            title=f"What is remembered: {self.task}",
        )


def memory(
    task: str,
    *,
    longest: int = 100,
    hidden: int = 64,
    updates: int = 600,
    seeds: Sequence[int] = (1,),
    tell: Any = lambda _: None,
) -> Memory:
    """Each model on one task."""
    make, inputs, outputs = TASKS[task]
    distances = tuple(d for d in (2, 5, 10, 20, 50, 100, 200) if d <= longest)
    found: dict[str, list[list[float]]] = {}
    if task != "adding":
        found["n-gram"] = [ngram_tried(make, distances, longest=longest, seed=s) for s in seeds]
    for name in ("window", *NETWORKS):
        for seed in seeds:
            with one_thread(), torch.random.fork_rng(devices=[]):
                torch.manual_seed(seed)
                kind = NETWORKS.get(name)
                model: nn.Module = (
                    Reader(kind, inputs, hidden, outputs)
                    if kind
                    else Window(inputs, hidden, outputs)
                )
                rate = kind.rate if kind else 0.005
                train(model, make, longest=longest, updates=updates, rate=rate, seed=seed)
            found.setdefault(name, []).append(tried(model, make, distances, seed=seed + 1000))
            tell(f"memory: {name}, seed {seed}")
    return Memory(task, distances, found)
