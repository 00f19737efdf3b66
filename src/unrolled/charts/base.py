"""What every picture stands on: colours, fonts, the theme, and which values can be drawn."""

from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar
from unicodedata import east_asian_width

import numpy as np
from numpy.typing import ArrayLike, NDArray

from unrolled.errors import ConfigError, NumericError

if TYPE_CHECKING:
    import altair as alt

    AnyChart: TypeAlias = alt.Chart | alt.LayerChart | alt.HConcatChart | alt.VConcatChart

Floats: TypeAlias = NDArray[np.float64]
Themed = TypeVar("Themed", bound="AnyChart")

SANS = "DejaVu Sans, Verdana, Helvetica, Arial, sans-serif"
MONO = "DejaVu Sans Mono, Menlo, Consolas, monospace"
PALE, BLUE, ORANGE, GREY = "#A9CCE3", "#0072B2", "#D55E00", "#595959"  # apart for colour-blind eyes
GREEN, PINK, SKY, GOLD = "#009E73", "#CC79A7", "#56B4E9", "#E69F00"  # so are these
BLACK = "#1A1A1A"

CURVE_WIDTH, CURVE_HEIGHT = 640, 320  # pixels
STEP_AXIS = {"grid": False, "format": ",d", "tickMinStep": 1, "tickCount": 8, "labelFlush": False}

LABELS = {"labelFontSize": 12, "titleFontSize": 12, "titleFontWeight": "normal", "titlePadding": 8}
THEME: dict[str, Any] = {
    "background": "white",
    "padding": 12,
    "font": SANS,
    "title": {"fontSize": 15, "fontWeight": 600, "anchor": "start", "frame": "group", "offset": 10},
    "axis": LABELS | {"gridColor": "#E6E6E6", "domainColor": "#888888", "tickColor": "#888888"},
    "legend": LABELS,
    "view": {"stroke": None},
}
VISIBLE = str.maketrans({" ": "·", "\t": "→", "\n": "⏎", "\r": "␍", "\xa0": "⍽", "\u202f": "⍽"})


def themed(chart: Themed) -> Themed:
    """The chart in the dress of all charts here."""
    import altair as alt

    chart.config = alt.Config.from_dict(THEME)
    return chart


def shades(domain: list[float], colours: list[str]) -> "alt.Scale":
    """Colours that blend straight: by hue, as is usual, there would be cyan next to white."""
    import altair as alt

    return alt.Scale(domain=domain, range=colours, interpolate="rgb")


def pair(x_name: str, x: ArrayLike, y_name: str, y: ArrayLike) -> tuple[Floats, Floats]:
    """Two rows of finite values, as many in one as in the other."""
    xs, ys = finite(x_name, x), finite(y_name, y)
    if len(xs) != len(ys):
        raise ConfigError(
            f"{x_name} has {len(xs)} values but {y_name} has {len(ys)}. Give one {y_name} a step."
        )
    return xs, ys


def finite(name: str, values: ArrayLike) -> Floats:
    """The values as one row of floats; NaN and infinity cannot be drawn and are refused."""
    array = np.asarray(values, dtype=np.float64).reshape(-1)
    wrong = np.flatnonzero(~np.isfinite(array))
    if wrong.size:
        raise NumericError(
            f"{name}[{wrong[0]}] is {array[wrong[0]]}, but only finite numbers can be drawn. "
            "Find out where it comes from, or leave it out."
        )
    return array


def visible(token: str) -> str:
    """The token as drawn: whitespace made visible, a very long one cut."""
    shown = token.translate(VISIBLE) or "∅"
    return shown if len(shown) <= 40 else shown[:39] + "…"


def letters(text: str) -> int:
    """Width in letters; those of East Asia take two."""
    return sum(2 if east_asian_width(letter) in "FW" else 1 for letter in text)
