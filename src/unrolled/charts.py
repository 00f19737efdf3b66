"""Every picture, once: an Altair chart from plain arrays, and one way to save it.

Altair is imported inside the functions, so importing this module is cheap.
Nothing here uses the network: an HTML page carries its scripts inside.
"""

import io
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar
from unicodedata import east_asian_width

import numpy as np
from numpy.typing import ArrayLike, NDArray

from unrolled.errors import ConfigError, NumericError, StorageError, not_one_of

if TYPE_CHECKING:
    import altair as alt

    AnyChart: TypeAlias = alt.Chart | alt.LayerChart | alt.VConcatChart

Floats: TypeAlias = NDArray[np.float64]
Themed = TypeVar("Themed", bound="AnyChart")

SANS = "DejaVu Sans, Verdana, Helvetica, Arial, sans-serif"
MONO = "DejaVu Sans Mono, Menlo, Consolas, monospace"
PALE, BLUE, ORANGE, GREY = "#A9CCE3", "#0072B2", "#D55E00", "#595959"  # apart for colour-blind eyes

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

# ------------------------------------------------------------------ the loss while training

CURVE_WIDTH, CURVE_HEIGHT, LABEL_HEIGHT = 640, 320, 16  # pixels
STEP_AXIS = {"grid": False, "format": ",d", "tickMinStep": 1, "tickCount": 8, "labelFlush": False}
MOST_POINTS = 1000  # of one line: more cannot be seen and only makes the file heavy


def loss_curve(
    steps: ArrayLike,
    losses: ArrayLike,
    *,
    dev_steps: ArrayLike = (),
    dev_losses: ArrayLike = (),
    baselines: Mapping[str, float] | None = None,
    unit: str = "nats per token",
) -> "alt.LayerChart":
    """Draw the training loss of each step and smoothed, the dev loss, and baselines as rules."""
    import altair as alt

    x, y = _pair("steps", steps, "losses", losses)
    if not y.size:
        raise ConfigError("losses is empty, but a curve needs at least 1 loss. Train first.")
    dev_x, dev_y = _pair("dev_steps", dev_steps, "dev_losses", dev_losses)
    names, levels = list(baselines or {}), finite("baselines", [*(baselines or {}).values()])
    lines = _training_lines(x, y)
    if dev_y.size:
        lines["dev"] = (ORANGE, dev_x, dev_y)
    low, high = _padded_range(np.concatenate([y, dev_y, levels]))
    loss = alt.Y("loss:Q", title=f"loss ({unit})", scale=alt.Scale(domain=[low, high], nice=False))
    layers = _curves(lines, loss)
    if names:
        apart = LABEL_HEIGHT * (high - low) / CURVE_HEIGHT
        layers += _rules(names, levels, loss, apart=apart)
    chart = alt.LayerChart(layer=layers, width=CURVE_WIDTH, height=CURVE_HEIGHT)
    chart.title = "Loss while training"
    return themed(chart)


def _training_lines(x: Floats, y: Floats) -> dict[str, tuple[str, Floats, Floats]]:
    """Name -> colour, x, y; a short run needs no smoothing and is one line."""
    window = 2 * (len(y) // 60) + 1
    if window == 1:
        return {"training": (BLUE, x, y)}
    return {
        "training, each step": (PALE, *_extremes(x, y)),
        "training, smoothed": (BLUE, *_smoothed(x, y, window)),
    }


def _extremes(x: Floats, y: Floats) -> tuple[Floats, Floats]:
    """At most MOST_POINTS points, the lowest and the highest of each stretch: no spike is lost."""
    if len(y) <= MOST_POINTS:
        return x, y
    stretches = np.array_split(np.arange(len(y)), MOST_POINTS // 2)
    kept = {int(i[pick(y[i])]) for i in stretches for pick in (np.argmin, np.argmax)}
    order = np.array(sorted(kept))
    return x[order], y[order]


def _smoothed(x: Floats, y: Floats, window: int) -> tuple[Floats, Floats]:
    """Centred running mean at no more than MOST_POINTS places; at the ends the window is cut."""
    at = np.linspace(0, len(y) - 1, min(len(y), MOST_POINTS)).round().astype(int)
    first = np.maximum(at - window // 2, 0)
    past = np.minimum(at + window // 2 + 1, len(y))
    total = np.concatenate([[0.0], np.cumsum(y)])
    return x[at], (total[past] - total[first]) / (past - first)


def _curves(
    lines: Mapping[str, tuple[str, Floats, Floats]], loss: "alt.Y"
) -> list["alt.Chart | alt.LayerChart"]:
    import altair as alt

    scale = alt.Scale(domain=list(lines), range=[colour for colour, _, _ in lines.values()])
    legend = alt.Legend(title=None, orient="top", symbolType="stroke", symbolStrokeWidth=3)
    step = alt.X("step:Q", title="step", axis=STEP_AXIS)
    charts: list[alt.Chart | alt.LayerChart] = []
    for name, (_, x, y) in lines.items():
        pairs = zip(x, y, strict=True)
        rows = [{"line": name, "step": float(a), "loss": float(b)} for a, b in pairs]
        points = {"size": 40, "filled": True} if name == "dev" or len(rows) == 1 else False
        width = 1 if name == "training, each step" else 2
        base = alt.Chart(alt.InlineData(values=rows)).mark_line(point=points, strokeWidth=width)
        colour = alt.Color("line:N", scale=scale, legend=legend)
        charts.append(base.encode(x=step, y=loss, color=colour))
    return charts


def _rules(
    names: Sequence[str], levels: Floats, loss: "alt.Y", *, apart: float
) -> list["alt.Chart | alt.LayerChart"]:
    import altair as alt

    rows = [
        {"loss": float(level), "place": place, "label": f"{name} {level:.2f}"}
        for name, level, place in zip(names, levels, _spread(levels, apart), strict=True)
    ]
    base = alt.Chart(alt.InlineData(values=rows))
    dashes = base.mark_rule(strokeDash=[5, 4], color=GREY).encode(y=loss)
    text = base.mark_text(align="left", baseline="middle", fontSize=12, color=GREY)
    beside = alt.value(CURVE_WIDTH + 6)
    return [dashes, text.encode(x=beside, y=alt.Y("place:Q"), text="label:N")]


def _spread(levels: Floats, apart: float) -> list[float]:
    """Places for labels, as near to their levels as a distance of `apart` allows."""
    order = np.argsort(levels, kind="stable")
    groups: list[list[float]] = []  # [number of labels, middle], from low to high
    for level in levels[order]:
        group = [1.0, float(level)]
        while groups and group[1] - groups[-1][1] < apart * (group[0] + groups[-1][0]) / 2:
            count, middle = groups.pop()
            both = count + group[0]
            group = [both, (count * middle + group[0] * group[1]) / both]
        groups.append(group)
    places = np.empty(len(levels))
    places[order] = [mid + apart * (i - (n - 1) / 2) for n, mid in groups for i in range(int(n))]
    return [float(place) for place in places]


def _padded_range(values: Floats) -> tuple[float, float]:
    low, high = float(values.min()), float(values.max())
    pad = 0.05 * (high - low) or 0.5  # of a flat line, half a unit each way
    return low - pad, high + pad


# ------------------------------------------------------------------ any lines over one axis


def curves(
    lines: Mapping[str, tuple[ArrayLike, ArrayLike]], *, x: str, y: str, title: str
) -> "alt.Chart":
    """Draw named lines, each a pair of x and y values, with a point at every value."""
    import altair as alt

    rows = [
        {"line": name, "x": float(a), "y": float(b)}
        for name, (xs, ys) in lines.items()
        for a, b in zip(*_pair(f"x of {name}", xs, f"y of {name}", ys), strict=True)
    ]
    base = alt.Chart(alt.InlineData(values=rows), width=CURVE_WIDTH, height=CURVE_HEIGHT)
    chart: alt.Chart = base.mark_line(point={"size": 40, "filled": True}, strokeWidth=2).encode(
        x=alt.X("x:Q", title=x, axis=STEP_AXIS),
        y=alt.Y("y:Q", title=y, scale=alt.Scale(zero=False)),
        color=alt.Color(
            "line:N",
            sort=list(lines),
            scale=alt.Scale(scheme="tableau10"),
            legend=alt.Legend(title=None, orient="top", symbolType="stroke", symbolStrokeWidth=3),
        ),
    )
    chart.title = title
    return themed(chart)


# ------------------------------------------------------------------ the surprise of each token

ROW_WIDTH, ROW_HEIGHT = 720, 26  # pixels: 60 characters, or a dozen and more words
LETTER, MARGIN = 8, 4  # pixels of one character, and of a cell beyond its characters
MOST_CELLS = 10_000  # a picture of more is too tall to be drawn
VISIBLE = str.maketrans({" ": "·", "\t": "→", "\n": "⏎", "\r": "␍"})


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
        alt.Scale(domain=[-top, 0.0, top], range=[ORANGE, "white", BLUE])
        if signed
        else alt.Scale(domain=[0.0, top], range=["white", BLUE])
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
        shown = _visible(token)
        right = left + LETTER * _letters(shown) + MARGIN
        if right > ROW_WIDTH:
            row, left, right = row + 1, 0, right - left
        place = {"row": row, "left": left, "right": right, "middle": (left + right) / 2}
        cells.append({"token": token, "shown": shown, field: float(value)} | place)
        left = right
        if token.endswith("\n"):
            row, left = row + 1, 0
    return cells


def _visible(token: str) -> str:
    """The token as drawn: whitespace made visible, a very long one cut."""
    shown = token.translate(VISIBLE) or "∅"
    return shown if len(shown) <= 40 else shown[:39] + "…"


def _letters(text: str) -> int:
    """Width in letters; those of East Asia take two."""
    return sum(2 if east_asian_width(letter) in "FW" else 1 for letter in text)


# ------------------------------------------------------------------ together, and into a file

NO_EDITOR = {"actions": {"source": False, "compiled": False, "editor": False}}  # it is on-line
FORMATS: dict[str, dict[str, Any]] = {
    ".html": {"format": "html", "inline": True, "embed_options": NO_EDITOR},
    ".json": {"format": "json", "json_kwds": {"indent": 1}},
    ".png": {"format": "png", "scale_factor": 2},
    ".svg": {"format": "svg"},
}


def stack(*charts: "AnyChart") -> "alt.VConcatChart":
    """Put charts below each other; each keeps its own scales and legend."""
    import altair as alt

    bare = [chart.copy() for chart in charts]
    for chart in bare:
        chart.config = alt.Undefined  # only the outermost chart may carry the theme
    resolve = alt.Resolve(scale=alt.ScaleResolveMap(color="independent"))
    return themed(alt.vconcat(*bare, spacing=30, resolve=resolve))


def save(chart: "AnyChart", path: Path | str) -> None:
    """Write .png (twice the size), .svg, .html (needs no network) or .json (Vega-Lite)."""
    path = Path(path)
    kind = path.suffix.lower()
    if kind not in FORMATS:
        raise not_one_of(f"the extension of {path.name}", kind, FORMATS)
    page = io.BytesIO() if kind == ".png" else io.StringIO()
    chart.save(page, **FORMATS[kind])  # in memory first: a failure leaves no half a file
    content = page.getvalue()
    try:
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
    except OSError as error:
        problem = f"cannot write the picture: {error.strerror}."
        advice = "Choose a folder that exists and is writable."
        raise StorageError(path, f"{problem} {advice}") from error


def themed(chart: Themed) -> Themed:
    """The chart in the dress of all charts here."""
    import altair as alt

    chart.config = alt.Config.from_dict(THEME)
    return chart


def _pair(x_name: str, x: ArrayLike, y_name: str, y: ArrayLike) -> tuple[Floats, Floats]:
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
