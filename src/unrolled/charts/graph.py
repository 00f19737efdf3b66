"""A computation graph: boxes with values and adjoints, and arrows."""

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from unrolled.charts.base import BLUE, GREY, MONO, ORANGE, themed
from unrolled.errors import ConfigError

if TYPE_CHECKING:
    import altair as alt

COLUMN, ROW = 170, 190  # pixels from box to box
LINE = 14  # pixels of a line of text


def computation_graph(
    boxes: Mapping[str, tuple[str, str]],
    arrows: Sequence[tuple[str, str]],
    *,
    places: Mapping[str, tuple[float, float]],
    title: str = "",
) -> "alt.LayerChart":
    """Draw each name with its value (blue) and its adjoint (orange), a row in brackets a line."""
    import altair as alt

    for name in (*boxes, *(end for arrow in arrows for end in arrow)):
        if name not in places:
            raise ConfigError(f"{name!r} has no place, but every box must have one.")
    width = COLUMN * (max(x for x, _ in places.values()) + 1)
    height = ROW * (max(y for _, y in places.values()) + 1)
    at = {name: ((x + 0.5) * COLUMN, (y + 0.35) * ROW) for name, (x, y) in places.items()}
    x = alt.Scale(domain=[0, width], nice=False)
    y = alt.Scale(domain=[height, 0], nice=False)
    place = {"x": alt.X("x:Q", axis=None, scale=x), "y": alt.Y("y:Q", axis=None, scale=y)}
    ends = [_ends(at[a], at[b]) for a, b in arrows]
    lines = alt.Chart(alt.InlineData(values=ends)).mark_rule(color=GREY)
    points = alt.Chart(alt.InlineData(values=ends)).mark_point(
        shape="triangle", filled=True, color=GREY, size=60, opacity=1.0
    )
    texts = [_texts(name, *boxes[name], at[name]) for name in boxes]
    words = alt.Chart(alt.InlineData(values=[row for part in texts for row in part]))
    layers = [
        lines.encode(**place, x2="x2:Q", y2="y2:Q"),
        points.encode(
            x=alt.X("x2:Q", axis=None, scale=x),
            y=alt.Y("y2:Q", axis=None, scale=y),
            angle=alt.Angle("angle:Q", scale=None),
        ),
        words.mark_text(font=MONO, fontSize=11, align="center").encode(
            **place,
            text="text:N",
            color=alt.Color("colour:N", scale=None),
        ),
    ]
    chart = alt.LayerChart(layer=layers, width=width, height=height)
    chart.title = title
    return themed(chart)


def _ends(a: tuple[float, float], b: tuple[float, float]) -> dict[str, float]:
    """From beside one name to beside the other, clear of the numbers below them."""

    dx, dy = b[0] - a[0], b[1] - a[1]
    size = math.hypot(dx, dy)
    gap = 20 / size
    # numbers stand below a name: an arrow that goes down begins below them
    start = gap if not dy else (6.5 * LINE + 6) / size
    angle = math.degrees(math.atan2(dx, -dy))
    return {
        "x": a[0] + start * dx,
        "y": a[1] + start * dy,
        "x2": b[0] - gap * dx,
        "y2": b[1] - gap * dy,
        "angle": angle,
    }


def _texts(name: str, value: str, adjoint: str, at: tuple[float, float]) -> list[dict[str, Any]]:
    lines = [(name, "black")]
    lines += [(part, BLUE) for part in _rows(value)] + [(part, ORANGE) for part in _rows(adjoint)]
    return [
        {"text": text, "colour": colour, "x": at[0], "y": at[1] + LINE * n * 1.0}
        for n, (text, colour) in enumerate(lines)
    ]


def _rows(text: str) -> list[str]:
    return [part + "]" for part in text.split("]") if part.strip()] if "[" in text else [text]
