"""How far probabilities can be believed."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from unrolled.charts.base import GREY, finite, themed
from unrolled.charts.lines import told_apart
from unrolled.errors import ConfigError

if TYPE_CHECKING:
    import altair as alt

SIDE = 420  # pixels


class Bins(NamedTuple):
    """Answers by how sure they were: mean confidence, share of right ones, how many."""

    confidence: ArrayLike
    right: ArrayLike
    answers: ArrayLike


def reliability(bins_by_name: Mapping[str, Bins], *, title: str = "") -> "alt.LayerChart":
    """Draw the share of right answers over confidence: on the diagonal, what is said is true.

    The area of a point is the share of answers that it stands for.
    """
    import altair as alt

    rows = [row for name, bins in bins_by_name.items() for row in _rows(name, bins)]
    if not rows:
        raise ConfigError("there are no bins, but a picture needs at least 1 answer.")
    axis = alt.Axis(format=".0%", tickCount=6)
    whole = alt.Scale(domain=[0.0, 1.0], nice=False)
    x = alt.X("confidence:Q", title="confidence: the probability of the answer", scale=whole)
    y = alt.Y("right:Q", title="answers that are right", scale=whole, axis=axis)
    colour, shape = told_apart(list(bins_by_name))
    base = alt.Chart(alt.InlineData(values=rows)).encode(x=x.axis(format=".0%"), y=y, color=colour)
    size = alt.Size("share:Q", scale=alt.Scale(domain=[0, 1], range=[25, 900]), legend=None)
    tooltip = ["line:N", "confidence:Q", "right:Q", "count:Q"]
    points = base.mark_point(filled=True, opacity=0.85).encode(
        shape=shape, size=size, tooltip=tooltip
    )
    ends = alt.InlineData(values=[{"confidence": v, "right": v} for v in (0.0, 1.0)])
    diagonal = alt.Chart(ends).mark_line(strokeDash=[5, 4], color=GREY).encode(x=x, y=y)
    lines = base.mark_line(strokeWidth=1.5)
    chart = alt.LayerChart(layer=[diagonal, lines, points], width=SIDE, height=SIDE)
    chart.title = title
    return themed(chart)


def _rows(name: str, bins: Bins) -> list[dict[str, float | str]]:
    confidence, right, count = (
        finite(f"{what} of {name}", values) for what, values in bins._asdict().items()
    )
    share = count / max(1.0, float(np.sum(count)))
    return [
        {"line": name, "confidence": float(c), "right": float(r), "count": float(n), "share": s}
        for c, r, n, s in zip(confidence, right, count, share.tolist(), strict=True)
        if n > 0
    ]
