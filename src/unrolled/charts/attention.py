"""What a translation looked at: a map of the weights, or words joined by links.

Weights are soft; from a threshold on they count as links. A word may have many, or none.
Sizes: Ty target tokens, Tx source tokens. Tokens repeat, so places, not words, make the axes.
"""

import json
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from unrolled.charts.base import (
    BLUE,
    GREY,
    ORANGE,
    Floats,
    finite,
    letters,
    shades,
    themed,
    visible,
)
from unrolled.errors import ConfigError

if TYPE_CHECKING:
    import altair as alt

MOST_TOKENS = 120  # on a side: more cannot be read
MAP_SIDE, SMALLEST, LARGEST = 720, 15, 28  # pixels of a map, and of one of its cells
SMALL_LETTER = 6  # pixels of a letter beside a map
LETTER, BETWEEN, PITCH = 8, 14, 18  # pixels of a letter, between words, and of an upright word
WIDEST, GAP, MARGIN = 960, 160, 8  # pixels of level words, between the rows, around a word
ROUNDING = 1e-4

# ------------------------------------------------------------------ the map


def attention_map(
    weights: ArrayLike,
    source_tokens: Sequence[str],
    target_tokens: Sequence[str],
    *,
    title: str = "",
    threshold: float | None = None,
) -> "alt.LayerChart":
    """Draw weights (Ty, Tx) as shades: target down, source across.

    Cells of `threshold` and more are framed.
    """
    import altair as alt

    table = _checked(weights, source_tokens, target_tokens, threshold)
    side = min(max(MAP_SIDE // max(table.shape), SMALLEST), LARGEST)
    base = alt.Chart(alt.InlineData(values=_cells(table, source_tokens, target_tokens))).encode(
        x=alt.X("source:O", title="source", axis=_across(source_tokens, side)),
        y=alt.Y("target:O", title="target", axis=_axis(target_tokens)),
        tooltip=["target_token:N", "source_token:N", alt.Tooltip("weight:Q", format=".3f")],
    )
    scale = shades([0.0, float(table.max()) or 1.0], ["white", BLUE])
    shade = alt.Color("weight:Q", scale=scale, legend=alt.Legend(title="weight", format=".2f"))
    layers = [base.mark_rect(stroke="#E6E6E6").encode(color=shade)]
    if threshold is not None:
        framed = base.transform_filter(alt.datum.weight >= threshold)
        layers.append(framed.mark_rect(filled=False, stroke=ORANGE, strokeWidth=2))
    height, width = (side * size for size in table.shape)
    chart = alt.LayerChart(layer=layers, width=width, height=height)
    reading = "" if threshold is None else f"framed: weight ≥ {threshold:g}"
    chart.title = alt.TitleParams(title, subtitle=reading, subtitleColor=GREY)
    return themed(chart)


def _axis(tokens: Sequence[str], **options: Any) -> "alt.Axis":
    """An axis of places that shows the words."""
    import altair as alt

    by_place = f"{json.dumps([_short(token) for token in tokens])}[datum.value]"
    options |= {"ticks": False, "domain": False, "labelOverlap": False, "labelLimit": 200}
    return alt.Axis(labelExpr=by_place, labelFontSize=11, labelPadding=6, **options)


def _across(tokens: Sequence[str], side: int) -> "alt.Axis":
    """Words above their cells: level where all are narrow, as characters are, slanted otherwise."""
    widest = SMALL_LETTER * max(letters(_short(token)) for token in tokens)
    return _axis(tokens, orient="top", labelAngle=0 if widest <= side else -60)


def _cells(
    table: Floats, source_tokens: Sequence[str], target_tokens: Sequence[str]
) -> list[dict[str, Any]]:
    return [
        {
            "target": i,
            "source": j,
            "target_token": target_tokens[i],
            "source_token": source_tokens[j],
            "weight": float(weight),
        }
        for (i, j), weight in np.ndenumerate(table)
    ]


# ------------------------------------------------------------------ the links


def alignment_links(
    weights: ArrayLike,
    source_tokens: Sequence[str],
    target_tokens: Sequence[str],
    *,
    threshold: float,
    title: str = "",
) -> "alt.LayerChart":
    """Draw the source above, the target below, and a line for each weight from `threshold` on.

    weights (Ty, Tx). The heavier, the darker the line; a word without any is marked as spurious.
    """
    import altair as alt

    table = _checked(weights, source_tokens, target_tokens, threshold)
    linked = table >= threshold
    source, target = _Row(source_tokens), _Row(target_tokens)
    upright = max(source.level_width, target.level_width) > WIDEST
    width = max(source.width(upright), target.width(upright))
    upper = source.placed(
        table.max(axis=0) >= threshold, width=width, y=source.height(upright), upright=upright
    )
    lower = target.placed(
        table.max(axis=1) >= threshold, width=width, y=upper[0]["y"] + GAP, upright=upright
    )
    height = lower[0]["y"] + target.height(upright)
    flat: dict[str, Any] = {
        "x": alt.X("x:Q", axis=None, scale=alt.Scale(domain=[0, width], nice=False)),
        "y": alt.Y("y:Q", axis=None, scale=alt.Scale(domain=[height, 0], nice=False)),
    }
    lines = _lines(_links(table, linked, upper, lower), float(table.max())).encode(**flat)
    words = [
        layer.encode(**flat)
        for row, side in ((upper, "above"), (lower, "below"))
        for layer in _words(row, side, upright)
    ]
    chart = alt.LayerChart(layer=[lines, *words], width=width, height=height)
    reading = f"a line: weight ≥ {threshold:g}; orange with a ring: a word without any line"
    chart.title = alt.TitleParams(title, subtitle=reading, subtitleColor=GREY)
    return themed(chart)


class _Row:
    """A row of words, and the pixels it takes: level, or upright where there are many."""

    def __init__(self, tokens: Sequence[str]) -> None:
        self.tokens, self.shown = tokens, [_short(token) for token in tokens]
        self.widths = np.array([LETTER * letters(word) + BETWEEN for word in self.shown])
        self.level_width = int(self.widths.sum())

    def width(self, upright: bool) -> int:
        return PITCH * len(self.shown) if upright else self.level_width

    def height(self, upright: bool) -> int:
        return MARGIN + (int(self.widths.max()) if upright else 2 * LETTER)

    def placed(
        self, linked: NDArray[np.bool_], *, width: int, y: float, upright: bool
    ) -> list[dict[str, Any]]:
        """Each word with its middle, the row centred in `width`."""
        sizes = np.full(len(self.shown), PITCH) if upright else self.widths
        x = np.cumsum(sizes) - sizes / 2 + (width - self.width(upright)) / 2
        words = zip(self.tokens, self.shown, x, linked, strict=True)
        return [
            {"token": token, "shown": shown, "x": float(at), "y": y, "spurious": not joined}
            for token, shown, at, joined in words
        ]


def _links(
    table: Floats,
    linked: NDArray[np.bool_],
    upper: list[dict[str, Any]],
    lower: list[dict[str, Any]],
) -> list[dict[str, Any]]:
    """A line a link, the light ones first, so that the heavy ones lie over them."""
    links = [
        {
            **{"source": int(j), "target": int(i), "weight": float(table[i, j])},
            **{"x": upper[j]["x"], "y": upper[j]["y"], "x2": lower[i]["x"], "y2": lower[i]["y"]},
        }
        for i, j in np.argwhere(linked)
    ]
    return sorted(links, key=lambda link: link["weight"])


def _lines(links: list[dict[str, Any]], top: float) -> "alt.Chart":
    import altair as alt

    scale = alt.Scale(domain=[0.0, top or 1.0], range=[0.08, 1.0])
    legend = alt.Legend(title="weight", format=".2f", symbolType="stroke", symbolStrokeWidth=3)
    lines: alt.Chart = (
        alt.Chart(alt.InlineData(values=links))
        .mark_rule(color=BLUE, strokeWidth=2.5, strokeCap="round")
        .encode(x2="x2:Q", y2="y2:Q", opacity=alt.Opacity("weight:Q", scale=scale, legend=legend))
    )
    return lines


def _words(row: list[dict[str, Any]], side: str, upright: bool) -> list["alt.Chart"]:
    """The words on one side of the lines, and a ring at each without a line."""
    import altair as alt

    above = side == "above"
    base = alt.Chart(alt.InlineData(values=row))
    away = -MARGIN if above else MARGIN
    place: dict[str, Any] = (
        {"angle": 270, "align": "left" if above else "right", "baseline": "middle", "dx": -away}
        if upright
        else {"align": "center", "baseline": "bottom" if above else "top", "dy": away}
    )
    colour = alt.when(alt.datum.spurious).then(alt.value(ORANGE)).otherwise(alt.value("black"))
    text = base.mark_text(fontSize=13, **place).encode(text="shown:N", color=colour)
    rings = base.transform_filter(alt.datum.spurious).mark_point(
        shape="circle", filled=False, color=ORANGE, size=36, strokeWidth=2, opacity=1
    )
    return [text, rings]


# ------------------------------------------------------------------ both


def _short(token: str) -> str:
    shown = visible(token)
    return shown if len(shown) <= 20 else shown[:19] + "…"


def _checked(
    weights: ArrayLike,
    source_tokens: Sequence[str],
    target_tokens: Sequence[str],
    threshold: float | None,
) -> Floats:
    """The weights as a table (Ty, Tx) of shares."""
    table, size = np.asarray(weights, dtype=np.float64), (len(target_tokens), len(source_tokens))
    if table.shape != size:
        raise ConfigError(
            f"weights has shape {table.shape}, but there are {size[0]} target and {size[1]} source "
            f"tokens. Give a row for each target token and a column for each source token: {size}."
        )
    if not 1 <= min(size) <= max(size) <= MOST_TOKENS:
        raise ConfigError(
            f"there are {size[0]} target and {size[1]} source tokens, but a picture holds 1 to "
            f"{MOST_TOKENS} of each. Draw a part of the text."
        )
    values = finite("weights", table)
    wrong = np.flatnonzero((values < -ROUNDING) | (values > 1.0 + ROUNDING))
    if wrong.size:
        i, j = divmod(int(wrong[0]), size[1])
        raise ConfigError(
            f"weights[{i}, {j}] is {table[i, j]:g}, but a weight is a share, from 0 to 1. "
            "Take the softmax of the scores first."
        )
    if threshold is not None and not 0.0 < threshold <= 1.0:
        raise ConfigError(
            f"threshold is {threshold:g}, but must be above 0 and at most 1. "
            "Half of 1 / (number of source tokens) and more make sense."
        )
    return table
