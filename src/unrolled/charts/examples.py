"""What word vectors are learned from: a word, its neighbours, and words drawn against them."""

import json
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from unrolled.charts.base import ORANGE, PALE, themed, visible
from unrolled.errors import ConfigError

if TYPE_CHECKING:
    import altair as alt

SQUARE = 26  # pixels of a cell
KINDS = ("neighbour", "drawn")


def training_examples(
    rows: Sequence[str],
    columns: Sequence[str],
    neighbours: ArrayLike,
    drawn: ArrayLike,
    *,
    title: str = "",
) -> "alt.LayerChart":
    """Draw how often each of the `columns` is near a word of the text, and how often it is drawn.

    Both counts are (R, C). A square is a neighbour, a disc with its count is drawn.
    """
    import altair as alt

    shape = (len(rows), len(columns))
    tables = [np.asarray(table, dtype=np.int64) for table in (neighbours, drawn)]
    if any(table.shape != shape for table in tables) or 0 in shape:
        raise ConfigError(
            f"the counts have shapes {tables[0].shape} and {tables[1].shape}, but must have "
            f"{shape}, a row a word of the text and a column a word it meets, and not be empty."
        )
    cells = [
        {"row": row, "word": visible(rows[row]), "column": column, "with": visible(columns[column])}
        | {"kind": kind, "count": int(table[row, column])}
        for kind, table in zip(KINDS, tables, strict=True)
        for row, column in np.argwhere(table > 0).tolist()
    ]
    base = alt.Chart(alt.InlineData(values=cells)).encode(
        x=alt.X("column:O", title="words it meets", axis=_names(columns)),
        y=alt.Y("row:O", title="words of the text, in order", axis=_names(rows, angle=0)),
        tooltip=["word:N", "with:N", "kind:N", "count:Q"],
    )
    colour = alt.Color(
        "kind:N", scale=alt.Scale(domain=list(KINDS), range=[PALE, ORANGE]), title=None
    )
    near, noise = (base.transform_filter(alt.datum.kind == kind) for kind in KINDS)
    squares = near.mark_rect(stroke="white").encode(color=colour)
    discs = noise.mark_circle(size=260, opacity=1).encode(color=colour)
    counts = noise.mark_text(fontSize=10, color="white").encode(text="count:Q")
    width, height = SQUARE * len(columns), SQUARE * len(rows)
    chart = alt.LayerChart(layer=[squares, discs, counts], width=width, height=height)
    chart.title = title
    return themed(chart)


def _names(words: Sequence[str], *, angle: float = -90) -> "alt.Axis":
    """Words in place of their numbers: a text may hold one twice."""
    import altair as alt

    label = f"{json.dumps([visible(word) for word in words])}[datum.value]"
    return alt.Axis(labelExpr=label, labelAngle=angle, labelLimit=160, labelOverlap=False)
