"""Named lines over one axis: over a length, a beam width, a place in a sequence."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from unrolled.charts.base import (
    BLACK,
    BLUE,
    CURVE_HEIGHT,
    CURVE_WIDTH,
    GOLD,
    GREEN,
    GREY,
    ORANGE,
    PINK,
    SKY,
    STEP_AXIS,
    Floats,
    finite,
    pair,
    themed,
)
from unrolled.errors import ConfigError

if TYPE_CHECKING:
    import altair as alt

COLOURS = (BLUE, ORANGE, GREEN, PINK, SKY, GOLD, GREY, BLACK)
SHAPES = (
    "circle",
    "square",
    "triangle-up",
    "diamond",
    "cross",
    "triangle-down",
    "triangle-right",
    "triangle-left",
)
PANEL = 210  # pixels
Rows = list[dict[str, Any]]


def curves(
    lines: Mapping[str, tuple[ArrayLike, ArrayLike]], *, x: str, y: str, title: str
) -> "alt.Chart":
    """Draw named lines, each a pair of x and y values, with a point at every value."""
    import altair as alt

    rows = [
        {"line": name, "x": float(a), "y": float(b)}
        for name, (xs, ys) in lines.items()
        for a, b in zip(*pair(f"x of {name}", xs, f"y of {name}", ys), strict=True)
    ]
    base = alt.Chart(alt.InlineData(values=rows), width=CURVE_WIDTH, height=CURVE_HEIGHT)
    chart: alt.Chart = base.mark_line(point={"size": 40, "filled": True}, strokeWidth=2).encode(
        x=alt.X("x:Q", title=x, axis=STEP_AXIS),
        y=alt.Y("y:Q", title=y, scale=alt.Scale(zero=False)),
        color=alt.Color(
            "line:N",
            sort=list(lines),
            scale=alt.Scale(scheme="tableau10"),
            legend=alt.Legend(title=None, orient="top", symbolType="stroke", symbolStrokeWidth=3),
        ),
    )
    chart.title = title
    return themed(chart)


# ------------------------------------------------------------------ over the length of the source


def length_curve(
    lengths: ArrayLike,
    values_by_name: Mapping[str, Sequence[float]],
    *,
    y_title: str,
    intervals: Mapping[str, Sequence[tuple[float, float]]] | None = None,
    x_title: str = "length of the source (tokens)",
    title: str = "",
) -> "alt.LayerChart":
    """Draw a score of each model over the length, with points, and with a band where it is given.

    intervals holds, for some of the names, the lowest and the highest value at each length.
    """
    import altair as alt

    x, rows = _named_rows("lengths", lengths, values_by_name)
    bands = _bands(x, values_by_name, intervals or {})
    place = alt.X("x:Q", title=x_title, axis=STEP_AXIS, scale=alt.Scale(nice=False, padding=12))
    colour, shape = told_apart(list(values_by_name))
    layers = _marks(rows, place, alt.Y("y:Q", title=y_title), colour=colour, shape=shape)
    if bands:
        area = alt.Chart(alt.InlineData(values=bands)).mark_area(opacity=0.18)
        band = area.encode(x=place, y=alt.Y("low:Q", title=y_title), y2="high:Q", color=colour)
        layers.insert(0, band)
    return _figure(layers, title)


def _bands(
    x: Floats,
    values_by_name: Mapping[str, Sequence[float]],
    intervals: Mapping[str, Sequence[tuple[float, float]]],
) -> Rows:
    rows: Rows = []
    for name, pairs in intervals.items():
        if name not in values_by_name:
            raise ConfigError(
                f"intervals are given for {name!r}, but values only for "
                f"{', '.join(values_by_name)}. Use the same names."
            )
        table = np.asarray(pairs, dtype=np.float64)
        pair("lengths", x, f"intervals of {name}", np.zeros(len(table)))
        if table.shape != (len(x), 2):
            raise ConfigError(
                f"intervals of {name} has shape {table.shape}, but must be {(len(x), 2)}: the "
                "lowest and the highest value at each length."
            )
        low, high = finite(f"intervals of {name}", table).reshape(-1, 2).T
        rows += [
            {"line": name, "x": float(a), "low": float(b), "high": float(c)}
            for a, b, c in zip(x, low, high, strict=True)
        ]
    return rows


# ------------------------------------------------------------------ over places


def gradient_curve(
    positions: ArrayLike,
    norms_by_name: Mapping[str, Sequence[float]],
    *,
    x_title: str = "place in the source",
    y_title: str = "‖∂L/∂hᵢ‖",
    title: str = "",
) -> "alt.LayerChart":
    """Draw how much of the gradient reaches each place, a line a model, on a scale of powers.

    A norm of 0 has no place on it: it is drawn as an arrow on the bottom line.
    """
    import altair as alt

    _, rows = _named_rows("positions", positions, norms_by_name)
    for row in rows:
        if row["y"] < 0.0:
            raise ConfigError(
                f"a norm of {row['line']!r} is {row['y']:g}, but a norm is never negative."
            )
    floor = min((row["y"] for row in rows if row["y"] > 0.0), default=1.0) / 10.0
    place = alt.X("x:Q", title=x_title, axis=STEP_AXIS, scale=alt.Scale(nice=False, padding=12))
    powers = alt.Y(
        "y:Q", title=y_title, scale=alt.Scale(type="log"), axis=alt.Axis(format=".0e", tickCount=8)
    )
    colour, shape = told_apart(list(norms_by_name))
    drawn = [row for row in rows if row["y"] > 0.0]
    layers = _marks(drawn, place, powers, colour=colour, shape=shape)
    nothing = [{**row, "y": floor} for row in rows if row["y"] == 0.0]
    if nothing:
        arrows = alt.Chart(alt.InlineData(values=nothing)).mark_text(text="↓", fontSize=14)
        layers.append(arrows.encode(x=place, y=powers, color=colour))
    return _figure(layers, title, subtitle="↓ exactly 0" if nothing else "")


# ------------------------------------------------------------------ over the width of the beam


def width_curve(
    widths: ArrayLike,
    model_score: ArrayLike,
    metric: ArrayLike,
    seconds: ArrayLike,
    *,
    metric_title: str = "BLEU",
    score_title: str = "log-probability per sentence",
    title: str = "",
) -> "alt.HConcatChart":
    """Draw what a wider beam finds, what that is worth, and what it costs: three panels."""
    import altair as alt

    panels = [
        _panel(widths, name, values, title=text, colour=colour)
        for name, values, text, colour in (
            ("model_score", model_score, score_title, BLUE),
            ("metric", metric, metric_title, ORANGE),
            ("seconds", seconds, "seconds", GREEN),
        )
    ]
    chart = alt.hconcat(*panels, spacing=30)
    chart.title = alt.TitleParams(title, anchor="start")
    return themed(chart)


def _panel(
    widths: ArrayLike, name: str, values: ArrayLike, *, title: str, colour: str
) -> "alt.Chart":
    import altair as alt

    x, y = pair("widths", widths, name, values)
    if not x.size or x.min() < 1.0:
        raise ConfigError(
            f"widths is {[float(width) for width in x]}, but must hold at least one, and none "
            "below 1."
        )
    rows = [{"width": float(a), name: float(b)} for a, b in zip(x, y, strict=True)]
    base = alt.Chart(alt.InlineData(values=rows), width=PANEL, height=PANEL)
    doubling = alt.Scale(type="log", base=2, nice=False, padding=8)
    ticks = alt.Axis(values=sorted(set(x.tolist())), format="d", grid=False, labelOverlap=True)
    start = alt.Scale(zero=name == "seconds")
    point = {"size": 50, "filled": True, "color": colour}
    panel: alt.Chart = base.mark_line(point=point, color=colour, strokeWidth=2).encode(
        x=alt.X("width:Q", title="beam width", scale=doubling, axis=ticks),
        y=alt.Y(f"{name}:Q", title=title, scale=start),
    )
    return panel


# ------------------------------------------------------------------ what they share


def _named_rows(
    x_name: str, x: ArrayLike, values_by_name: Mapping[str, Sequence[float]]
) -> tuple[Floats, Rows]:
    if not 1 <= len(values_by_name) <= len(COLOURS):
        raise ConfigError(
            f"there are {len(values_by_name)} lines, but a picture holds 1 to {len(COLOURS)}. "
            "Draw them in several."
        )
    rows: Rows = []
    for name, values in values_by_name.items():
        xs, ys = pair(x_name, x, f"values of {name}", values)
        if not ys.size:
            raise ConfigError(f"{x_name} is empty, but a line needs at least 1 value.")
        rows += [{"line": name, "x": float(a), "y": float(b)} for a, b in zip(xs, ys, strict=True)]
    return xs, rows


def told_apart(names: Sequence[str]) -> tuple["alt.Color", "alt.Shape"]:
    """A colour and a shape for each name, so that colour is never all there is."""
    import altair as alt

    legend = alt.Legend(title=None, orient="top", symbolSize=80, symbolOpacity=1)
    colours, shapes = list(COLOURS[: len(names)]), list(SHAPES[: len(names)])
    return (
        alt.Color("line:N", scale=alt.Scale(domain=names, range=colours), legend=legend),
        alt.Shape("line:N", scale=alt.Scale(domain=names, range=shapes), legend=legend),
    )


def _marks(
    rows: Rows, x: "alt.X", y: "alt.Y", *, colour: "alt.Color", shape: "alt.Shape"
) -> list["alt.Chart | alt.LayerChart"]:
    """Lines, and points over them."""
    import altair as alt

    base = alt.Chart(alt.InlineData(values=rows)).encode(x=x, y=y, color=colour)
    tooltip = ["line:N", "x:Q", alt.Tooltip("y:Q", format=".4g")]
    points = base.mark_point(filled=True, size=60, opacity=1.0)
    return [base.mark_line(strokeWidth=2), points.encode(shape=shape, tooltip=tooltip)]


def _figure(
    layers: list["alt.Chart | alt.LayerChart"], title: str, *, subtitle: str = ""
) -> "alt.LayerChart":
    import altair as alt

    chart = alt.LayerChart(layer=layers, width=CURVE_WIDTH, height=CURVE_HEIGHT)
    chart.title = alt.TitleParams(title, subtitle=subtitle, subtitleColor=GREY)
    return themed(chart)
