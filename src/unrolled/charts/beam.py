"""Beam search as a tree that grows from left to right.

The layout is that of Reingold and Tilford (1981), turned on its side: children are next to each
other, a parent is in the middle of them, and subtrees are as close as their outlines allow.
"""

from collections.abc import Hashable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypedDict

import numpy as np

from unrolled.charts.base import BLUE, GREEN, GREY, ORANGE, Floats, finite, letters, themed, visible
from unrolled.errors import ConfigError, not_one_of

if TYPE_CHECKING:
    import altair as alt

STATES = {"best": ORANGE, "finished": GREEN, "open": BLUE, "pruned": "#B0B0B0"}
MOST_NODES = 1000  # a picture of more is too large to be drawn
LONGEST = 14  # letters of a label
LETTER, SCORE, PADDING, GAP = 7, 38, 10, 34  # pixels: a letter, a score, in a box, between columns
BOX, PITCH = 18, 23  # pixels: the height of a box, and from one to the next


class BeamNode(TypedDict):
    """One hypothesis: the token it adds to its parent's."""

    id: Hashable
    parent: Hashable | None
    depth: int  # steps from the root, which has 0
    label: str
    log_probability: float  # of all tokens up to here
    score: float  # what the search ranks by
    state: str  # one of STATES


def beam_tree(nodes: Sequence[BeamNode], *, title: str = "") -> "alt.LayerChart":
    """Draw every hypothesis that was looked at; the way to those called "best" is thick.

    Children are drawn from top to bottom in the order in which they are given.
    """
    import altair as alt

    parents = _checked(nodes)
    left, right = _columns(nodes)
    middle = PITCH * (_rows(parents, [node["depth"] for node in nodes]) + 0.5)
    boxes = _boxes(nodes, middle, left, right, on_way=_way(nodes, parents))
    width, height = float(right[-1]), float(middle.max() + PITCH / 2)
    layers = [_edge_layer(_edges(boxes, parents)), *_box_layers(boxes)]
    flat = alt.Scale(domain=[0, width], nice=False), alt.Scale(domain=[height, 0], nice=False)
    for layer in layers:
        layer.encoding.x.scale, layer.encoding.y.scale = flat
    chart = alt.LayerChart(layer=layers, width=width, height=height)
    chart.title = title
    return themed(chart)


# ------------------------------------------------------------------ where everything is


def _rows(parents: Sequence[int], depths: Sequence[int]) -> Floats:
    """The row of each node, 0 for the uppermost; parents holds places, -1 for none."""
    count = len(parents)
    children: list[list[int]] = [[] for _ in range(count + 1)]  # the last: of no parent
    for place, parent in enumerate(parents):
        children[parent].append(place)
    offset = np.zeros(count + 1)  # from the parent
    outlines: dict[int, tuple[Floats, Floats]] = {}  # uppermost and lowest row at each depth below
    deepest_first = sorted(range(count), key=lambda place: -depths[place])
    for place in [*deepest_first, -1]:
        offsets, outline = _side_by_side([outlines.pop(child) for child in children[place]])
        offset[children[place]] = offsets
        outlines[place] = _with_root(outline)
    row = np.zeros(count)
    for place in reversed(deepest_first):
        above = parents[place]
        row[place] = offset[place] + (row[above] if above >= 0 else 0.0)
    from_top: Floats = row - row.min()
    return from_top


def _side_by_side(
    outlines: Sequence[tuple[Floats, Floats]],
) -> tuple[Floats, tuple[Floats, Floats]]:
    """Offsets of subtrees that just do not touch, around 0, and the outline of all together."""
    offsets, low, high = np.zeros(len(outlines)), np.zeros(0), np.zeros(0)
    for place, (upper, lower) in enumerate(outlines):
        shared = min(len(upper), len(high))
        if shared:
            offsets[place] = float((high[:shared] - upper[:shared]).max()) + 1.0
        low = np.concatenate([low, upper[len(low) :] + offsets[place]])
        high = np.concatenate([lower + offsets[place], high[len(lower) :]])
    middle = (offsets[0] + offsets[-1]) / 2 if len(offsets) else 0.0
    return offsets - middle, (low - middle, high - middle)


def _with_root(outline: tuple[Floats, Floats]) -> tuple[Floats, Floats]:
    low, high = outline
    return np.concatenate([[0.0], low]), np.concatenate([[0.0], high])


def _columns(nodes: Sequence[BeamNode]) -> tuple[Floats, Floats]:
    """Left and right end of the boxes at each depth, as wide as the longest label needs."""
    widest = np.zeros(max(node["depth"] for node in nodes) + 1)
    for node in nodes:
        widest[node["depth"]] = max(widest[node["depth"]], letters(_shown(node)))
    widths = LETTER * widest + SCORE + 2 * PADDING
    right = np.cumsum(widths + GAP) - GAP
    return right - widths, right


def _way(nodes: Sequence[BeamNode], parents: Sequence[int]) -> set[int]:
    """The places of the best nodes and of all before them."""
    way: set[int] = set()
    for place, node in enumerate(nodes):
        while node["state"] == "best" and place >= 0 and place not in way:
            way.add(place)
            place = parents[place]
    return way


def _shown(node: BeamNode) -> str:
    label = visible(node["label"])
    return label if len(label) <= LONGEST else label[: LONGEST - 1] + "…"


def _boxes(
    nodes: Sequence[BeamNode], middle: Floats, left: Floats, right: Floats, *, on_way: set[int]
) -> list[dict[str, Any]]:
    return [
        {
            **{name: node[name] for name in ("label", "log_probability", "score", "state")},
            "shown": _shown(node),
            "left": float(left[node["depth"]]),
            "right": float(right[node["depth"]]),
            "middle": float(middle[place]),
            "on_way": place in on_way,
        }
        for place, node in enumerate(nodes)
    ]


def _edges(boxes: Sequence[Mapping[str, Any]], parents: Sequence[int]) -> list[dict[str, Any]]:
    """From the right end of a parent to the left end of its child; the best way last, on top."""
    edges = [
        {
            **{"x": boxes[parent]["right"], "y": boxes[parent]["middle"]},
            **{"x2": box["left"], "y2": box["middle"]},
            **{"state": box["state"], "on_way": box["on_way"]},
        }
        for box, parent in zip(boxes, parents, strict=True)
        if parent >= 0
    ]
    return sorted(edges, key=lambda edge: bool(edge["on_way"]))


# ------------------------------------------------------------------ the layers


def _edge_layer(edges: list[dict[str, Any]]) -> "alt.Chart":
    import altair as alt

    on_way = alt.when(alt.datum.on_way)
    layer: alt.Chart = (
        alt.Chart(alt.InlineData(values=edges))
        .mark_rule()
        .encode(
            x=alt.X("x:Q", axis=None),
            y=alt.Y("y:Q", axis=None),
            x2="x2:Q",
            y2="y2:Q",
            color=on_way.then(alt.value(ORANGE)).otherwise(alt.value("#B0B0B0")),
            strokeWidth=on_way.then(alt.value(4)).otherwise(alt.value(1)),
        )
    )
    return layer


def _box_layers(boxes: list[dict[str, Any]]) -> list["alt.Chart"]:
    """A frame in the colour of the state, with the token at its left and the score at its right."""
    import altair as alt

    base = alt.Chart(alt.InlineData(values=boxes)).encode(
        tooltip=["label:N", alt.Tooltip("log_probability:Q", format=".4f"),
                 alt.Tooltip("score:Q", format=".4f"), "state:N"],
    )  # fmt: skip
    states = alt.Scale(domain=list(STATES), range=list(STATES.values()))
    legend = alt.Legend(title=None, orient="top", symbolType="square", symbolStrokeWidth=2)
    frames = base.mark_bar(height=BOX, cornerRadius=5, fill="white").encode(
        x=alt.X("left:Q", axis=None),
        x2="right:Q",
        y=alt.Y("middle:Q", axis=None),
        stroke=alt.Stroke("state:N", scale=states, legend=legend),
        strokeWidth=alt.when(alt.datum.on_way).then(alt.value(3)).otherwise(alt.value(1.5)),
    )
    ink = alt.when(alt.datum.state == "pruned").then(alt.value(GREY)).otherwise(alt.value("black"))
    row = alt.Y("middle:Q", axis=None)
    tokens = base.mark_text(align="left", baseline="middle", dx=PADDING - 3, fontSize=12).encode(
        x=alt.X("left:Q", axis=None), y=row, text="shown:N", color=ink
    )
    scores = base.mark_text(
        align="right", baseline="middle", dx=-(PADDING - 3), fontSize=10
    ).encode(
        x=alt.X("right:Q", axis=None),
        y=row,
        text=alt.Text("score:Q", format=".2f"),
        color=alt.value(GREY),
    )
    return [frames, tokens, scores]


# ------------------------------------------------------------------ what can be drawn


def _checked(nodes: Sequence[BeamNode]) -> list[int]:
    """The place of each node's parent, -1 for none, once the nodes are known to be a tree."""
    if not 1 <= len(nodes) <= MOST_NODES:
        raise ConfigError(
            f"there are {len(nodes)} nodes, but a picture holds 1 to {MOST_NODES}. "
            "Draw fewer steps, or a narrower beam."
        )
    finite("score", [node["score"] for node in nodes])
    finite("log_probability", [node["log_probability"] for node in nodes])
    places = {node["id"]: place for place, node in enumerate(nodes)}
    if len(places) != len(nodes):
        twice = next(n["id"] for place, n in enumerate(nodes) if places[n["id"]] != place)
        raise ConfigError(f"id {twice!r} is given to two nodes, but each must have its own.")
    return [_parent_place(node, nodes, places) for node in nodes]


def _parent_place(node: BeamNode, nodes: Sequence[BeamNode], places: Mapping[Hashable, int]) -> int:
    if node["state"] not in STATES:
        raise not_one_of(f"state of node {node['id']!r}", node["state"], STATES)
    if node["parent"] is None:
        depth, place = 0, -1
    elif node["parent"] in places:
        place = places[node["parent"]]
        depth = nodes[place]["depth"] + 1
    else:
        raise ConfigError(
            f"node {node['id']!r} has the parent {node['parent']!r}, which is not among the nodes. "
            "Add it, or give None as the parent of a root."
        )
    if node["depth"] != depth:
        raise ConfigError(
            f"node {node['id']!r} has depth {node['depth']}, but must have {depth}: 0 without a "
            "parent, one more than its parent otherwise."
        )
    return place
