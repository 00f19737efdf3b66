"""What a recurrent network reads and writes: five shapes, all run by one small network."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from unrolled.charts import Arrow, Frame
from unrolled.errors import ConfigError
from unrolled.lab.by_hand import Array, forward
from unrolled.lab.drawing.drawing import GIVEN, SAID, Drawing, Node
from unrolled.lab.drawing.reading import SIZE, Reading


class Topology(NamedTuple):
    """At which steps something is read from outside, and at which something is said."""

    title: str
    reads: Sequence[bool]
    says: Sequence[bool]
    feeds: bool = False  # what is said is read next, where nothing else is


YES, NO = True, False
TOPOLOGIES = (
    Topology("one to one: no recurrence", [YES], [YES]),
    Topology("one to many: music from one seed", [YES, NO, NO], [YES, YES, YES], feeds=True),
    Topology("many to one: a classifier", [YES, YES, YES], [NO, NO, YES]),
    Topology("many to many, of equal length: a tagger", [YES, YES, YES], [YES, YES, YES]),
    Topology(
        "many to many, of unequal length: a translator",
        [YES, YES, NO, NO, NO],
        [NO, NO, YES, YES, YES],
        feeds=True,
    ),
)
PLACES = ((0.0, 0.0), (1.6, 0.0), (5.2, 0.0), (0.0, 4.1), (3.6, 4.1))  # column and row of each


def topologies(reading: Reading, seed: int) -> Drawing:
    """All five, each with the numbers of its own run."""
    most = max(sum(shape.reads) for shape in TOPOLOGIES)
    if len(reading.tokens) < most:
        raise ConfigError(
            f"--text has {len(reading.tokens)} tokens, but “topologies” reads {most}. Give more."
        )
    weight = np.random.default_rng([seed, 3]).standard_normal((SIZE, SIZE)).round(1)
    nodes: list[Node] = []
    arrows: list[Arrow] = []
    frames = []
    for number, (shape, place) in enumerate(zip(TOPOLOGIES, PLACES, strict=True), 1):
        more, ways = _drawn(reading, weight, shape, (f"{number} ", *place))
        nodes, arrows = nodes + more, arrows + ways
        frames.append(Frame(shape.title, [node.name for node in more]))
    title = "One network, five shapes: what is read (below) and what is said (above)"
    return Drawing(title, nodes, arrows, frames, column=140, row=72)


def _drawn(
    reading: Reading, weight: Array, shape: Topology, place: tuple[str, float, float]
) -> tuple[list[Node], list[Arrow]]:
    mark, left, top = place
    nodes, arrows = [], []
    for t, (x, h, y) in enumerate(run(reading, weight, shape), 1):
        state, column = f"{mark}h_{t}", left + t - 1
        nodes.append(Node(state, column, top + 1.2, h, title=f"h_{t}"))
        if shape.reads[t - 1]:
            nodes.append(Node(f"{mark}x_{t}", column, top + 2.4, x, GIVEN, f"x_{t}"))
            arrows.append(Arrow(f"{mark}x_{t}", state))
        if shape.says[t - 1]:
            nodes.append(Node(f"{mark}y_{t}", column, top, y, SAID, f"y_{t}"))
            arrows.append(Arrow(state, f"{mark}y_{t}"))
        if t > 1:
            arrows.append(Arrow(f"{mark}h_{t - 1}", state))
        if t > 1 and shape.feeds and shape.says[t - 2]:
            arrows.append(Arrow(f"{mark}y_{t - 1}", state, dashed=True))
    return nodes, arrows


def run(reading: Reading, weight: Array, shape: Topology) -> list[tuple[Array, Array, Array]]:
    """x, h and y = V h of each step; where nothing is read, the last y, or zeros."""
    state, y, found = reading.first(), np.zeros(SIZE), []
    given = iter(reading.x)
    for reads, says in zip(shape.reads, shape.says, strict=True):
        x = next(given) if reads else y
        (step,) = forward(reading.stack.cell, reading.weights(0, 0), [x], state)
        state = step.after
        y = weight @ state[:SIZE] if says else np.zeros(SIZE)
        found.append((x, state[:SIZE], y))
    return found
