"""A text as coloured cells: the surprise of each token, or its part in a decision."""

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from unrolled.charts.base import (
    BLUE,
    MONO,
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

ROW_WIDTH, ROW_HEIGHT = 720, 26  # pixels: 60 characters, or a dozen and more words
LETTER, MARGIN = 8, 4  # pixels of one character, and of a cell beyond its characters
MOST_CELLS = 10_000  # a picture of more is too tall to be drawn


def surprise(tokens: Sequence[str], nats: ArrayLike, *, title: str = "") -> "alt.LayerChart":
    """Draw the text as cells, each coloured by the surprise of its token, -log2 p, in bits.

    nats holds -ln p of each token, as the model gives it.
    """
    import altair as alt

    bits = _bits(tokens, nats)
    top = max(1.0, float(bits.max()))
    legend = alt.Legend(title="surprise (bits)", orient="top", gradientLength=240)
    colours = alt.Scale(scheme="yellowgreenblue", domain=[0, top])
    colour = alt.Color("bits:Q", scale=colours, legend=legend)
    dark = alt.datum.bits > 0.6 * top
    return _cells(tokens, bits, colour=colour, dark=dark, title=title)


def token_shares(
    tokens: Sequence[str], shares: ArrayLike, *, name: str = "share", title: str = ""
) -> "alt.LayerChart":
    """Draw the text as cells, each coloured by the part that its token has in a decision.

    What speaks for it is blue, what speaks against it (a share below 0) is orange.
    """
    import altair as alt

    values = _one_a_token(tokens, "shares", shares)
    top = float(np.abs(values).max()) or 1.0
    signed = bool((values < 0.0).any())
    scale = (
        shades([-top, 0.0, top], [ORANGE, "white", BLUE])
        if signed
        else shades([0.0, top], ["white", BLUE])
    )
    legend = alt.Legend(title=name, orient="top", gradientLength=240, format=".2f")
    colour = alt.Color("share:Q", scale=scale, legend=legend)
    dark = alt.expr.abs(alt.datum.share) > 0.6 * top
    return _cells(tokens, values, colour=colour, dark=dark, title=title)


def _cells(
    tokens: Sequence[str], values: Floats, *, colour: "alt.Color", dark: Any, title: str
) -> "alt.LayerChart":
    """A rectangle and a word for each token; `dark` says where the word must be white."""
    import altair as alt

    field = str(colour.shorthand).partition(":")[0]
    rows = _laid_out(tokens, values, field)
    base = alt.Chart(alt.InlineData(values=rows)).encode(
        y=alt.Y("row:O", axis=None, scale=alt.Scale(paddingInner=0.12, paddingOuter=0)),
        tooltip=[alt.Tooltip("token:N"), alt.Tooltip(f"{field}:Q", format=".2f")],
    )
    flat = alt.Scale(domain=[0, ROW_WIDTH], nice=False)
    cells = base.mark_rect(stroke="white", strokeWidth=1).encode(
        x=alt.X("left:Q", axis=None, scale=flat), x2="right:Q", color=colour
    )
    words = base.mark_text(font=MONO, fontSize=13, baseline="middle").encode(
        x=alt.X("middle:Q", axis=None, scale=flat),
        text="shown:N",
        color=alt.when(dark).then(alt.value("white")).otherwise(alt.value("black")),
    )
    height = ROW_HEIGHT * (rows[-1]["row"] + 1)
    chart = alt.LayerChart(layer=[cells, words], width=ROW_WIDTH, height=height)
    chart.title = title
    return themed(chart)


def _bits(tokens: Sequence[str], nats: ArrayLike) -> Floats:
    values = _one_a_token(tokens, "nats", nats)
    if values.min() < -1e-4:  # a hair below 0 is rounding
        place = int(values.argmin())
        raise ConfigError(
            f"nats[{place}] is {values[place]:g}, but surprise is never negative. "
            "Pass minus the log-probability."
        )
    return np.maximum(values, 0.0) / math.log(2)


def _one_a_token(tokens: Sequence[str], name: str, given: ArrayLike) -> Floats:
    values = finite(name, given)
    if len(tokens) != len(values):
        raise ConfigError(
            f"there are {len(tokens)} tokens but {len(values)} values in {name}. Give one per "
            "token."
        )
    if not 1 <= len(tokens) <= MOST_CELLS:
        raise ConfigError(
            f"there are {len(tokens)} tokens, but a picture holds 1 to {MOST_CELLS}. "
            "Draw a part of the text."
        )
    return values


def _laid_out(tokens: Sequence[str], values: Floats, field: str) -> list[dict[str, Any]]:
    """One cell a token from left to right, in rows as a page would have them."""
    cells: list[dict[str, Any]] = []
    row = left = 0
    for token, value in zip(tokens, values, strict=True):
        shown = visible(token)
        right = left + LETTER * letters(shown) + MARGIN
        if right > ROW_WIDTH:
            row, left, right = row + 1, 0, right - left
        place = {"row": row, "left": left, "right": right, "middle": (left + right) / 2}
        cells.append({"token": token, "shown": shown, field: float(value)} | place)
        left = right
        if token.endswith("\n"):
            row, left = row + 1, 0
    return cells
