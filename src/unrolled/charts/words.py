"""A map of words: a point and a label each."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from numpy.typing import ArrayLike

from unrolled.charts.base import BLUE, GREY, pair, themed, visible

if TYPE_CHECKING:
    import altair as alt

SIDE = 720  # pixels


def word_map(words: Sequence[str], x: ArrayLike, y: ArrayLike, *, title: str) -> "alt.LayerChart":
    """Words at their places; in a page each shows its name under the pointer."""
    import altair as alt

    xs, ys = pair("x", x, "y", y)
    rows = [
        {"word": visible(word), "x": float(a), "y": float(b)}
        for word, a, b in zip(words, xs, ys, strict=True)
    ]
    base = alt.Chart(alt.InlineData(values=rows), width=SIDE, height=SIDE).encode(
        x=alt.X("x:Q", axis=None, scale=alt.Scale(zero=False)),
        y=alt.Y("y:Q", axis=None, scale=alt.Scale(zero=False)),
        tooltip=alt.Tooltip("word:N"),
    )
    points = base.mark_circle(size=24, color=BLUE, opacity=0.7)
    names = base.mark_text(align="left", dx=5, fontSize=10, color=GREY).encode(text="word:N")
    chart: alt.LayerChart = points + names
    chart.title = title
    return themed(chart)
