"""`unrolled lab memory --apart`: every distance learned by itself, without shorter sequences.

A network that also meets short sequences learns on them what it then need only keep. Here all
sequences have the one length, so the gradient has to come the whole way from the first update on:
what it is at the start (`unrolled lab gradients`) decides. Every network gets the same updates, and
its learning rate is the one of RATES that does best on sequences of their own; what is shown was
asked once, after that choice.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import torch
from torch import nn

from unrolled.lab.memory import (
    TASKS,
    Kind,
    Memory,
    Reader,
    Window,
    loss_of,
    ngram_tried,
    one_thread,
    share_right,
)
from unrolled.nn.cells import GRUCell, LSTMCell, RNNCell
from unrolled.training.optimise import clip_gradients

RATES = (0.001, 0.003)
DISTANCES = (5, 10, 20, 50, 100, 200)
STARTS: Mapping[str, Kind | None] = {
    "window": None,
    "rnn": Kind(RNNCell()),
    "rnn orthogonal": Kind(RNNCell(), "orthogonal"),
    "irnn": Kind(RNNCell("relu"), "identity"),
    "gru": Kind(GRUCell()),
    "lstm f=σ(1)": Kind(LSTMCell(), forget_bias=1.0),
    "lstm f=σ(4)": Kind(LSTMCell(), forget_bias=4.0),
}
DEV, TEST = 1, 2  # which sequences are drawn


def learn(
    model: nn.Module, make: Any, *, distance: int, updates: int, rate: float, seed: int
) -> None:
    """Adam on fresh sequences of one length, the rate falling over the second half."""
    random = np.random.default_rng(seed)
    optimiser = torch.optim.Adam(model.parameters(), lr=rate)
    for update in range(updates):
        examples = make(random, np.full(64, distance))
        loss = loss_of(model(examples), examples.answers)
        optimiser.zero_grad(set_to_none=False)
        loss.backward()  # type: ignore[no-untyped-call]
        clip_gradients([p.grad for p in model.parameters() if p.grad is not None], 1.0)
        for group in optimiser.param_groups:
            group["lr"] = rate * min(1.0, 2.0 * (1.0 - update / updates))
        optimiser.step()


@torch.no_grad()
def asked(model: nn.Module, make: Any, distance: int, *, which: int, seed: int) -> float:
    """The share of right answers to 500 sequences."""
    random = np.random.default_rng([seed, which, distance])
    examples = make(random, np.full(500, distance))
    return share_right(model(examples), examples.answers)


def best_of_rates(
    name: str, task: str, *, distance: int, hidden: int, updates: int, seed: int
) -> float:
    """Train at each rate, choose on the one draw, ask on the other."""
    make, inputs, outputs = TASKS[task]
    found = []
    for rate in RATES:
        with one_thread(), torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            kind = STARTS[name]
            model: nn.Module = (
                Reader(kind, inputs, hidden, outputs) if kind else Window(inputs, hidden, outputs)
            )
            learn(model, make, distance=distance, updates=updates, rate=rate, seed=seed)
            found.append((asked(model, make, distance, which=DEV, seed=seed), model))
    _, chosen = max(found, key=lambda pair: pair[0])
    return asked(chosen, make, distance, which=TEST, seed=seed)


def memory_apart(
    task: str,
    *,
    distances: Sequence[int] = (10, 100),
    hidden: int = 64,
    updates: int = 1000,
    seeds: Sequence[int] = (1,),
    names: Sequence[str] = tuple(STARTS),
    tell: Any = lambda _: None,
) -> Memory:
    """Each model on one task, a distance at a time."""
    make = TASKS[task][0]
    found: dict[str, list[list[float]]] = {}
    if task != "adding":
        found["n-gram"] = [
            [ngram_tried(make, (d,), longest=d, shortest=d, seed=s)[0] for d in distances]
            for s in seeds
        ]
    for name in names:
        for seed in seeds:
            shares = []
            for d in distances:
                shares.append(
                    best_of_rates(name, task, distance=d, hidden=hidden, updates=updates, seed=seed)
                )
                tell(f"memory: {name}, {d} steps, seed {seed}")
            found.setdefault(name, []).append(shares)
    return Memory(f"{task}, each distance apart", tuple(distances), found)
