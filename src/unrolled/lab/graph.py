"""`unrolled lab graph`: a net of three layers, every value and every adjoint, and its picture."""

from dataclasses import dataclass
from typing import Any

from unrolled.evaluate.shown import columns
from unrolled.lab.net import Net, Node, graph

# Where each node stands: column and row; weights above the values that they make.
PLACES = {
    "h0": (0, 1),
    **{f"w{n}": (2 * n - 2, 0) for n in (1, 2, 3)},
    **{f"b{n}": (2 * n - 1, 0) for n in (1, 2, 3)},
    **{f"z{n}": (2 * n - 1, 1) for n in (1, 2, 3)},
    **{f"h{n}": (2 * n, 1) for n in (1, 2, 3)},
    "y": (7, 0),
    "L": (7, 1),
}


@dataclass(frozen=True)
class ShownGraph:
    """The graph of a net."""

    net: Net

    def text(self) -> str:
        """A line a node in the order of the forward pass; adjoints are read from below upwards."""
        head = ["node", "made by", "value", "adjoint ∂L/∂node"]
        rows = [
            [node.name, node.rule, _numbers(node.value), _numbers(node.adjoint)]
            for node in graph(self.net)
        ]
        return columns([head, *rows])

    def as_json(self) -> list[dict[str, Any]]:
        """An object a node."""
        return [
            {
                "node": node.name,
                "from": list(node.inputs),
                "rule": node.rule,
                "value": node.value.tolist(),
                "adjoint": node.adjoint.tolist(),
            }
            for node in graph(self.net)
        ]

    def chart(self) -> Any:
        """Boxes with values and adjoints, and arrows between them."""
        from unrolled.charts import Arrow, diagram

        nodes = graph(self.net)
        arrows = [Arrow(source, node.name) for node in nodes for source in node.inputs]
        title = "Values forward (blue), adjoints ∂L/∂node backward (orange)"
        return diagram([_box(node) for node in nodes], arrows, row=170, column=195, title=title)


def _box(node: Node) -> Any:
    from unrolled.charts import Box
    from unrolled.charts.base import BLUE, ORANGE

    lines = [(row, BLUE) for row in _rows(node.value)] + [(r, ORANGE) for r in _rows(node.adjoint)]
    return Box(node.name, *PLACES[node.name], node.name, lines, "#F5F5F5")


def _rows(value: Any) -> list[str]:
    return [_numbers(row) for row in value] if value.ndim == 2 else [_numbers(value)]


def _numbers(value: Any) -> str:
    """Rows in brackets, three digits."""
    if value.ndim == 0:
        return f"{float(value):.3f}"
    if value.ndim == 1:
        return "[" + " ".join(f"{number:+.3f}" for number in value) + "]"
    return " ".join(map(_numbers, value))
