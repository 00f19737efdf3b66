"""A drawing: nodes with the values they have, and arrows between them."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from unrolled.evaluate.shown import columns
from unrolled.lab.by_hand import Array

if TYPE_CHECKING:
    from unrolled.charts import Arrow, Frame

GIVEN, MADE, SAID = "#F5F5F5", "#D6E6F2", "#FBE9D0"  # what is read, computed, and answered
MOST_NUMBERS = 3  # of a value that is drawn
BAR = 12  # letters of a bar of length 1


class Node(NamedTuple):
    """A value by its name; x and y in columns and rows."""

    name: str
    x: float
    y: float
    value: Array
    fill: str = MADE
    title: str = ""  # where it is not the name
    lines: tuple[str, ...] = ()  # where they are not the value's numbers

    @property
    def shown(self) -> tuple[str, ...]:
        """What stands below the title."""
        return self.lines or ((numbers(self.value),) if self.value.size else ())


@dataclass(frozen=True)
class Drawing:
    """A figure: what stands where, and what goes from where to where."""

    title: str
    nodes: Sequence[Node]
    arrows: Sequence["Arrow"]
    frames: Sequence["Frame"] = ()
    column: float = 170.0  # pixels
    row: float = 80.0

    @property
    def values(self) -> dict[str, Array]:
        """Every number by the name of its node."""
        return {node.name: node.value for node in self.nodes if node.value.size}

    def text(self) -> str:
        """A line a node."""
        rows = [[n.name, ", ".join(line.rstrip(" █") for line in n.shown)] for n in self.nodes]
        return f"{self.title}\n\n{columns([['node', 'value'], *rows])}"

    def as_json(self) -> dict[str, Any]:
        """Every number, and every arrow."""
        return {
            "title": self.title,
            "values": {name: value.tolist() for name, value in self.values.items()},
            "arrows": [[arrow.source, arrow.target] for arrow in self.arrows],
        }

    def chart(self) -> Any:
        """Boxes and arrows."""
        from unrolled.charts import Box, diagram
        from unrolled.charts.base import BLUE

        boxes = [
            Box(
                node.name,
                node.x,
                node.y,
                node.title or node.name,
                [(line, BLUE) for line in node.shown],
                node.fill,
            )
            for node in self.nodes
        ]
        return diagram(
            boxes,
            self.arrows,
            frames=self.frames,
            column=self.column,
            row=self.row,
            title=self.title,
        )


def numbers(value: Array) -> str:
    """The first few of a vector's numbers."""
    flat = np.ravel(value)
    some = " ".join(f"{number:+.3f}" for number in flat[:MOST_NUMBERS])
    return some if flat.size <= MOST_NUMBERS else f"{some} … ({flat.size})"


def bars(names: Sequence[str], shares: Array, *, most: int = 6) -> tuple[str, ...]:
    """The likeliest names, each with a bar as long as its share, and all others as one."""
    order = np.argsort(-shares, kind="stable")
    first = order[: most if len(order) > most + 1 else len(order)]
    rest = order[len(first) :]
    rows = [(names[k], float(shares[k])) for k in first]
    if len(rest):
        rows.append((f"{len(rest):,} others", float(shares[rest].sum())))
    width = max(len(name) for name, _ in rows)
    return tuple(f"{name:<{width}} {share:.3f} {'█' * round(BAR * share)}" for name, share in rows)
