"""Tables of counts."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from unrolled.charts.base import BLUE, finite, shades, themed
from unrolled.errors import ConfigError

if TYPE_CHECKING:
    import altair as alt

SQUARE = 38  # pixels of a cell
MOST_LABELS = 60  # more cannot be read


def confusion(labels: Sequence[str], counts: ArrayLike, *, title: str = "") -> "alt.LayerChart":
    """Draw what was taken for what: a row a true label, a column a given one, counts (K, K).

    The colour of a cell is its share of its row.
    """
    import altair as alt

    order = alt.Axis(labelAngle=-45, orient="top", labelLimit=160)
    base = alt.Chart(alt.InlineData(values=_rows(labels, counts))).encode(
        x=alt.X("said:N", sort=list(labels), title="given label", axis=order),
        y=alt.Y("true:N", sort=list(labels), title="true label"),
        tooltip=["true:N", "said:N", "count:Q", alt.Tooltip("share:Q", format=".1%")],
    )
    scale = shades([0.0, 1.0], ["white", BLUE])
    legend = alt.Legend(title="share of the row", format=".0%")
    squares = base.mark_rect(stroke="#E6E6E6").encode(
        color=alt.Color("share:Q", scale=scale, legend=legend)
    )
    dark = alt.when(alt.datum.share > 0.6)
    numbers = base.mark_text(fontSize=12).encode(
        text="count:Q", color=dark.then(alt.value("white")).otherwise(alt.value("black"))
    )
    size = SQUARE * len(labels)
    chart = alt.LayerChart(layer=[squares, numbers], width=size, height=size)
    chart.title = title
    return themed(chart)


def _rows(labels: Sequence[str], counts: ArrayLike) -> list[dict[str, Any]]:
    table, K = np.asarray(counts, dtype=np.float64), len(labels)
    if not 1 <= K <= MOST_LABELS or table.shape != (K, K):
        raise ConfigError(
            f"there are {K} labels and counts of shape {table.shape}, but a picture holds 1 to "
            f"{MOST_LABELS} labels, and counts must have a row and a column for each."
        )
    shares = table / np.maximum(finite("counts", table).reshape(K, K).sum(axis=1)[:, None], 1.0)
    return [
        {"true": true, "said": said, "count": int(table[i, j]), "share": float(shares[i, j])}
        for i, true in enumerate(labels)
        for j, said in enumerate(labels)
    ]
