"""How far two forms of the same thing are from the truth."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from numpy.typing import ArrayLike

from unrolled.charts.base import BLUE, ORANGE, finite, themed

if TYPE_CHECKING:
    import altair as alt

ROW = 16  # pixels
FLOOR = 1e-17  # where an exact 0 is drawn, on a scale of powers


def deviations(
    names: Sequence[str], printed: ArrayLike, correct: ArrayLike, *, title: str = ""
) -> "alt.Chart":
    """Draw a row a name with two points: how far its printed and its corrected form are off."""
    import altair as alt

    both = {"as printed": finite("printed", printed), "corrected": finite("correct", correct)}
    rows = [
        {"name": name, "form": form, "off": max(float(value), FLOOR)}
        for form, values in both.items()
        for name, value in zip(names, values, strict=True)
    ]
    colours = alt.Scale(domain=list(both), range=[ORANGE, BLUE])
    shapes = alt.Scale(domain=list(both), range=["circle", "square"])
    legend = alt.Legend(title=None, orient="top", symbolOpacity=1)
    axis = alt.Axis(format=".0e", tickCount=10)
    chart: alt.Chart = (
        alt.Chart(alt.InlineData(values=rows), width=560, height=ROW * len(names))
        .mark_point(filled=True, size=60, opacity=1.0)
        .encode(
            x=alt.X("off:Q", title="off by", scale=alt.Scale(type="log"), axis=axis),
            y=alt.Y("name:N", sort=list(names), title=None, axis=alt.Axis(grid=True)),
            color=alt.Color("form:N", scale=colours, legend=legend),
            shape=alt.Shape("form:N", scale=shapes, legend=legend),
            tooltip=["name:N", "form:N", alt.Tooltip("off:Q", format=".2e")],
        )
    )
    chart.title = title
    return themed(chart)
