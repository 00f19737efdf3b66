"""A table of sizes as a heat map, on a scale of powers."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from unrolled.charts.base import finite, themed
from unrolled.errors import ConfigError

if TYPE_CHECKING:
    import altair as alt

SIDE = 560  # pixels of the longer side
SQUARE = 26  # pixels of a cell, at most
MOST_NAMES = 40  # more of them cannot be read
SPAN = 1e-8  # below this share of the largest, all sizes look alike


def heat_map(
    table: ArrayLike,
    *,
    rows: Sequence[str],
    columns: Sequence[str],
    row_title: str,
    column_title: str,
    value_title: str,
    title: str = "",
) -> "alt.Chart":
    """Draw sizes (R, C), none below 0, a cell each; an exact 0 is left white."""
    import altair as alt

    sizes = np.asarray(table, dtype=np.float64)
    if sizes.shape != (len(rows), len(columns)) or sizes.size == 0:
        raise ConfigError(
            f"the table has shape {sizes.shape}, but must have {(len(rows), len(columns))}, a name "
            "a row and a name a column, and not be empty."
        )
    if len({*rows}) < len(rows) or len({*columns}) < len(columns):
        raise ConfigError("a name of a row or column is there twice, but each must be one alone.")
    if finite("table", sizes).min() < 0.0:
        raise ConfigError(f"the smallest size is {sizes.min():g}, but a size is never negative.")
    top = float(sizes.max()) or 1.0
    cells = [
        {"of": rows[i], "by": columns[j], "size": float(sizes[i, j])}
        for i, j in np.argwhere(sizes > 0.0).tolist()
    ]
    low = max(float(sizes[sizes > 0.0].min()) if cells else top, top * SPAN)
    scale = alt.Scale(type="log", domain=[low, top], scheme="viridis", clamp=True)
    square = min(SQUARE, SIDE / max(sizes.shape))
    chart: alt.Chart = (
        alt.Chart(
            alt.InlineData(values=cells),
            width=square * len(columns),
            height=square * len(rows),
        )
        .mark_rect()
        .encode(
            x=alt.X("by:N", title=column_title, axis=_axis(columns), scale=_all(columns)),
            y=alt.Y("of:N", title=row_title, axis=_axis(rows), scale=_all(rows)),
            color=alt.Color("size:Q", scale=scale, legend=alt.Legend(title=None, format=".0e")),
            tooltip=["of:N", "by:N", alt.Tooltip("size:Q", format=".3e")],
        )
    )
    chart.title = alt.TitleParams(title, subtitle=f"colour: {value_title}; white is exactly 0")
    return themed(chart)


def _all(names: Sequence[str]) -> "alt.Scale":
    import altair as alt

    return alt.Scale(domain=list(names))


def _axis(names: Sequence[str]) -> "alt.Axis":
    """All names, or some where they are too many to be read."""
    import altair as alt

    every = max(1, -(-len(names) // MOST_NAMES))
    return alt.Axis(values=list(names[::every]), labelAngle=0, labelOverlap=True)
