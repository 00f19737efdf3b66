"""A tree over the words of a sentence: labels, the order of merging, errors.

Words stand at the bottom from left to right, a parent in the middle above its children, as high as
the longest way down to a word.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from unrolled.charts.base import BLUE, GREY, ORANGE, Floats, finite, letters, themed, visible
from unrolled.errors import ConfigError

if TYPE_CHECKING:
    import altair as alt

MOST_NODES = 1000  # a picture of more is too large to be drawn
MOST_NUMBERS = 20  # labels that are drawn as a scale
LETTER, WORD_GAP, ROW = 8, 18, 46  # pixels: a letter, between words, from level to level
CIRCLE = 520  # square pixels of a node


def parse_tree(
    words: Sequence[str],
    parents: ArrayLike,
    *,
    labels: Sequence[str | None] | None = None,
    probabilities: ArrayLike | None = None,
    steps: ArrayLike | None = None,
    errors: ArrayLike | None = None,
    title: str = "",
) -> "alt.LayerChart":
    """Draw a tree of n nodes in post-order, parents (n,) with −1 for the root.

    labels and probabilities (n,) of nodes; steps (n,) number the inner nodes as they were made,
    0 for leaves; errors (n,) are those of inner nodes.
    """
    import altair as alt

    above = np.asarray(parents, dtype=np.int64)
    _check(words, above)
    x, height = _places(words, above)
    y = ROW * (height.max() - height + 0.5)
    known = {"probability": probabilities, "step": steps, "error": errors}
    numbers = {name: finite(name, each) for name, each in known.items() if each is not None}
    rows = _rows(words, above, x, y, labels, numbers)
    flat = {
        "x": alt.Scale(domain=[0, float(x.max() + x.min())], nice=False),
        "y": alt.Scale(domain=[float(y.max() + ROW), 0], nice=False),
    }
    layers = [_edges(above, x, y), *_nodes(rows, labels), *_texts(rows)]
    for layer in layers:
        layer.encoding.x.scale, layer.encoding.y.scale = flat["x"], flat["y"]
    chart = alt.LayerChart(
        layer=layers, width=max(240.0, float(x.max() + x.min())), height=float(y.max() + ROW)
    )
    chart.title = alt.TitleParams(visible_title(title))
    return themed(chart)


def visible_title(title: str) -> str:
    """A title that fits above a picture."""
    return title if len(title) <= 80 else title[:79] + "…"


def _check(words: Sequence[str], parents: NDArray[np.int64]) -> None:
    if not 1 <= len(parents) <= MOST_NODES:
        raise ConfigError(
            f"the tree has {len(parents):,} nodes, but a picture holds 1 to {MOST_NODES:,}. Draw a "
            "shorter text, or ask for numbers: --json."
        )
    leaves = len(parents) - len(np.unique(parents[:-1]))
    if leaves != len(words):
        raise ConfigError(f"the tree has {leaves} leaves, but there are {len(words)} words.")


def _places(words: Sequence[str], parents: NDArray[np.int64]) -> tuple[Floats, Floats]:
    """How far to the right, in pixels, and how high, in levels, each node is: (n,) both."""
    n = len(parents)
    widths = np.array([LETTER * letters(visible(word)) + WORD_GAP for word in words])
    middles = iter((np.cumsum(widths) - widths / 2).tolist())
    sums, counts, height = np.zeros(n), np.zeros(n), np.zeros(n)
    for node, parent in enumerate(parents.tolist()):
        sums[node] = sums[node] / counts[node] if counts[node] else next(middles)
        if parent >= 0:
            sums[parent] += sums[node]
            counts[parent] += 1
            height[parent] = max(height[parent], height[node] + 1)
    return sums, height


def _rows(
    words: Sequence[str],
    parents: NDArray[np.int64],
    x: Floats,
    y: Floats,
    labels: Sequence[str | None] | None,
    numbers: dict[str, Floats],
) -> list[dict[str, Any]]:
    """All that is drawn of each node."""
    inner = np.isin(np.arange(len(parents)), parents)
    waiting, rows = iter(words), []
    for node, is_inner in enumerate(inner.tolist()):
        row: dict[str, Any] = {"x": float(x[node]), "y": float(y[node]), "inner": is_inner}
        row["word"] = "" if is_inner else visible(next(waiting))
        label = labels[node] if labels else None
        row["label"] = None if label is None else visible(label)
        row["shown"] = "" if label is None else visible(label)[:4]
        for name, values in numbers.items():
            if is_inner or name == "probability":
                row[name] = float(values[node])
        row["order"] = f"{numbers['step'][node]:.0f}" if is_inner and "step" in numbers else ""
        row["cost"] = f"{numbers['error'][node]:.3f}" if is_inner and "error" in numbers else ""
        rows.append(row)
    return rows


def _edges(parents: NDArray[np.int64], x: Floats, y: Floats) -> "alt.Chart":
    import altair as alt

    edges = [
        {"x": float(x[a]), "y": float(y[p]), "x2": float(x[node]), "y2": float(y[b])}
        for node, p in enumerate(parents.tolist())
        for a, b in ((p, p), (node, node))  # across at the parent's height, then down: none crosses
        if p >= 0
    ]
    layer: alt.Chart = (
        alt.Chart(alt.InlineData(values=edges))
        .mark_rule(color="#B0B0B0")
        .encode(x=alt.X("x:Q", axis=None), y=alt.Y("y:Q", axis=None), x2="x2:Q", y2="y2:Q")
    )
    return layer


def _nodes(rows: list[dict[str, Any]], labels: Sequence[str | None] | None) -> list["alt.Chart"]:
    """A circle a node in the colour of its label, and the label in it."""
    import altair as alt

    base = alt.Chart(alt.InlineData(values=rows)).encode(
        x=alt.X("x:Q", axis=None), y=alt.Y("y:Q", axis=None), tooltip=_tooltip(rows)
    )
    if labels is None:
        points = base.transform_filter("datum.inner").mark_circle(color=BLUE, size=90, opacity=1.0)
        return [points]
    circles = base.mark_circle(size=CIRCLE, opacity=1.0, stroke="#888888", strokeWidth=0.7)
    names = sorted({row["label"] for row in rows if row["label"] is not None})
    coloured = circles.encode(color=alt.Color("label:N", scale=_scale(names), legend=None))
    return [coloured, base.mark_text(fontSize=11).encode(text="shown:N")]


def _scale(names: list[str]) -> "alt.Scale":
    """Numbers from orange over white to blue, whichever of them occur; names in pale colours."""
    import altair as alt

    if len(names) <= MOST_NUMBERS and all(name.isdecimal() for name in names):
        highest = max(4, *map(int, names))
        shares = [int(name) / highest for name in names]
        return alt.Scale(domain=names, range=[_shade(share) for share in shares])
    return alt.Scale(domain=names, scheme="pastel1")


def _shade(share: float) -> str:
    """A colour from orange (0) over white (0.5) to blue (1), light enough for black letters."""
    end = ORANGE if share < 0.5 else BLUE
    strength = 1.5 * abs(share - 0.5)
    parts = [int(end[k : k + 2], 16) for k in (1, 3, 5)]
    return "#" + "".join(f"{round(255 - strength * (255 - part)):02X}" for part in parts)


def _texts(rows: list[dict[str, Any]]) -> list["alt.Chart"]:
    """Words below leaves; the order of merging above a node, and its error beside it."""
    import altair as alt

    base = alt.Chart(alt.InlineData(values=rows)).encode(
        x=alt.X("x:Q", axis=None), y=alt.Y("y:Q", axis=None)
    )
    words = base.mark_text(dy=24, fontSize=13).encode(text="word:N")
    order = base.mark_text(dx=-14, dy=-14, fontSize=10, color=GREY).encode(text="order:N")
    cost = base.mark_text(dx=12, dy=-14, fontSize=10, color=ORANGE, align="left").encode(
        text="cost:N"
    )
    return [words, order, cost]


def _tooltip(rows: list[dict[str, Any]]) -> list[Any]:
    import altair as alt

    keys = {key for row in rows for key in row}
    names = [name for name in ("word", "label", "step") if name in keys]
    shown: list[Any] = [f"{name}:N" for name in names]
    numbers = [name for name in ("probability", "error") if name in keys]
    return shown + [alt.Tooltip(f"{name}:Q", format=".4f") for name in numbers]
