"""Shares as bars, each with its interval."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from unrolled.charts.base import BLUE, GREEN, GREY, ORANGE, PALE, PINK, finite, themed
from unrolled.errors import ConfigError

if TYPE_CHECKING:
    import altair as alt

BAR = 22  # pixels
MOST_BARS = 100
COLOURS = (BLUE, ORANGE, GREEN, PINK)


def share_bars(
    names: Sequence[str],
    shares: ArrayLike,
    low: ArrayLike,
    high: ArrayLike,
    *,
    chance: float,
    x_title: str,
    title: str = "",
) -> "alt.LayerChart":
    """Draw a bar a name from 0 to its share, the interval on it, and a line where chance is."""
    import altair as alt

    if not 1 <= len(names) <= MOST_BARS:
        raise ConfigError(f"there are {len(names)} bars, but a picture holds 1 to {MOST_BARS}.")
    values = (finite("shares", shares), finite("low", low), finite("high", high))
    rows = [
        {"name": name, "share": float(a), "low": float(b), "high": float(c)}
        for name, a, b, c in zip(names, *values, strict=True)
    ]
    place = alt.Y("name:N", sort=list(names), title=None, axis=alt.Axis(labelLimit=260))
    percent = alt.Axis(format=".0%")
    base = alt.Chart(alt.InlineData(values=rows)).encode(y=place, tooltip=["name:N", "share:Q"])
    whole = alt.Scale(domain=[0.0, 1.0])
    bars = base.mark_bar(color=PALE, height=BAR - 8).encode(
        x=alt.X("share:Q", title=x_title, axis=percent, scale=whole)
    )
    ranges = base.mark_rule(color=BLUE, strokeWidth=2).encode(x="low:Q", x2="high:Q")
    points = base.mark_point(color=BLUE, filled=True, size=40, opacity=1.0).encode(x="share:Q")
    line = alt.Chart(alt.InlineData(values=[{"chance": chance}])).mark_rule(
        color=ORANGE, strokeDash=[5, 4]
    )
    layers = [bars, ranges, points, line.encode(x="chance:Q")]
    chart = alt.LayerChart(layer=layers, width=420, height=BAR * len(names))
    subtitle = f"dashed: chance, {chance:.0%}; lines: 95 % intervals"
    chart.title = alt.TitleParams(title, subtitle=subtitle, subtitleColor=GREY)
    return themed(chart)


def grouped_shares(
    shares: Mapping[str, Mapping[str, Sequence[float]]], *, x_title: str, title: str = ""
) -> "alt.LayerChart":
    """Draw a row a group and name: a point at the mean of its values, a line from least to most.

    shares maps a name to its groups, and a group to its values, one a seed.
    """
    import altair as alt

    rows = [
        {
            "name": name,
            "place": f"{group}: {name}",
            "mean": float(np.mean(values)),
            "low": float(values.min()),
            "high": float(values.max()),
        }
        for group in dict.fromkeys(group for groups in shares.values() for group in groups)
        for name, groups in shares.items()
        for values in [finite(f"{group} of {name}", groups[group])]
    ]
    if not 1 <= len(rows) <= MOST_BARS:
        raise ConfigError(f"there are {len(rows)} bars, but a picture holds 1 to {MOST_BARS}.")
    places = [str(row["place"]) for row in rows]
    base = alt.Chart(alt.InlineData(values=rows)).encode(
        y=alt.Y("place:N", sort=places, title=None, axis=alt.Axis(labelLimit=400)),
        color=alt.Color(
            "name:N", sort=list(shares), scale=alt.Scale(range=list(COLOURS)), legend=None
        ),
        tooltip=["place:N", "mean:Q", "low:Q", "high:Q"],
    )
    axis = alt.Axis(format=".0%")
    scale = alt.Scale(zero=False, nice=False, padding=8)
    wide = alt.X("mean:Q", title=x_title, axis=axis, scale=scale)
    points = base.mark_point(filled=True, size=70, opacity=1.0).encode(x=wide)
    ranges = base.mark_rule(strokeWidth=3).encode(x="low:Q", x2="high:Q")
    chart = alt.LayerChart(layer=[ranges, points], width=420, height=BAR * len(rows))
    subtitle = "points: means over the seeds; lines: from the worst to the best seed"
    chart.title = alt.TitleParams(title, subtitle=subtitle, subtitleColor=GREY)
    return themed(chart)
