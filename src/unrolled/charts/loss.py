"""The loss while training."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from unrolled.charts.base import (
    BLUE,
    CURVE_HEIGHT,
    CURVE_WIDTH,
    GREY,
    ORANGE,
    PALE,
    STEP_AXIS,
    Floats,
    finite,
    pair,
    themed,
)
from unrolled.errors import ConfigError

if TYPE_CHECKING:
    import altair as alt

LABEL_HEIGHT = 16  # pixels
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

    x, y = pair("steps", steps, "losses", losses)
    if not y.size:
        raise ConfigError("losses is empty, but a curve needs at least 1 loss. Train first.")
    dev_x, dev_y = pair("dev_steps", dev_steps, "dev_losses", dev_losses)
    names, levels = list(baselines or {}), finite("baselines", [*(baselines or {}).values()])
    lines = _training_lines(x, y)
    if dev_y.size:
        lines["dev"] = (ORANGE, dev_x, dev_y)
    low, high = _padded_range(np.concatenate([y, dev_y, levels]))
    loss = alt.Y("loss:Q", title=f"loss ({unit})", scale=alt.Scale(domain=[low, high], nice=False))
    layers = _curves(lines, loss)
    if names:
        distance = LABEL_HEIGHT * (high - low) / CURVE_HEIGHT
        layers += _rules(names, levels, loss, distance=distance)
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
    names: Sequence[str], levels: Floats, loss: "alt.Y", *, distance: float
) -> list["alt.Chart | alt.LayerChart"]:
    import altair as alt

    rows = [
        {"loss": float(level), "place": place, "label": f"{name} {level:.2f}"}
        for name, level, place in zip(names, levels, _spread(levels, distance), strict=True)
    ]
    base = alt.Chart(alt.InlineData(values=rows))
    dashes = base.mark_rule(strokeDash=[5, 4], color=GREY).encode(y=loss)
    text = base.mark_text(align="left", baseline="middle", fontSize=12, color=GREY)
    beside = alt.value(CURVE_WIDTH + 6)
    return [dashes, text.encode(x=beside, y=alt.Y("place:Q"), text="label:N")]


def _spread(levels: Floats, distance: float) -> list[float]:
    """Places for labels, as near to their levels as a distance of `distance` allows."""
    order = np.argsort(levels, kind="stable")
    groups: list[list[float]] = []  # [number of labels, middle], from low to high
    for level in levels[order]:
        group = [1.0, float(level)]
        while groups and group[1] - groups[-1][1] < distance * (group[0] + groups[-1][0]) / 2:
            count, middle = groups.pop()
            both = count + group[0]
            group = [both, (count * middle + group[0] * group[1]) / both]
        groups.append(group)
    places = np.empty(len(levels))
    places[order] = [mid + distance * (i - (n - 1) / 2) for n, mid in groups for i in range(int(n))]
    return [float(place) for place in places]


def _padded_range(values: Floats) -> tuple[float, float]:
    low, high = float(values.min()), float(values.max())
    pad = 0.05 * (high - low) or 0.5  # of a flat line, half a unit each way
    return low - pad, high + pad
