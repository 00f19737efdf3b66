"""A surface over two numbers in colour, with ways over it."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from unrolled.charts.base import BLUE, GREEN, ORANGE, PINK, finite, themed
from unrolled.errors import ConfigError

if TYPE_CHECKING:
    import altair as alt

WIDTH, HEIGHT = 560, 420  # pixels
COLOURS, SHAPES = (ORANGE, BLUE, GREEN, PINK), ("square", "circle", "triangle-up", "diamond")


def surface(
    x: ArrayLike,
    y: ArrayLike,
    heights: ArrayLike,
    *,
    paths: Mapping[str, Sequence[tuple[float, float]]],
    x_title: str,
    y_title: str,
    z_title: str,
    title: str = "",
) -> "alt.LayerChart":
    """Draw heights (Y, X) over x and y, darker the higher, and named ways in their order."""
    import altair as alt

    xs, ys, zs = finite("x", x), finite("y", y), np.asarray(heights, dtype=np.float64)
    if zs.shape != (len(ys), len(xs)) or min(zs.shape) < 2:
        raise ConfigError(
            f"heights has shape {zs.shape}, but must have {(len(ys), len(xs))}, and two or more "
            "each way."
        )
    if not 1 <= len(paths) <= len(COLOURS):
        raise ConfigError(f"there are {len(paths)} ways, but a picture holds 1 to {len(COLOURS)}.")
    finite("heights", zs)
    half_x, half_y = (xs[1] - xs[0]) / 2, (ys[1] - ys[0]) / 2
    cells = [
        {"x": a - half_x, "x2": a + half_x, "y": b - half_y, "y2": b + half_y, "z": zs[j, i]}
        for j, b in enumerate(ys.tolist())
        for i, a in enumerate(xs.tolist())
    ]
    across = alt.Scale(domain=[xs[0], xs[-1]], nice=False)
    up = alt.Scale(domain=[ys[0], ys[-1]], nice=False)
    grey = alt.Scale(scheme="greys", domain=[float(zs.min()), 1.25 * float(zs.max())])
    ground = (
        alt.Chart(alt.InlineData(values=cells))
        .mark_rect(clip=True)
        .encode(
            x=alt.X("x:Q", title=x_title, scale=across),
            x2="x2:Q",
            y=alt.Y("y:Q", title=y_title, scale=up),
            y2="y2:Q",
            color=alt.Color("z:Q", scale=grey, legend=alt.Legend(title=z_title)),
        )
    )
    rows = [
        {"way": name, "n": n, "x": float(a), "y": float(b)}
        for name, points in paths.items()
        for n, (a, b) in enumerate(points)
    ]
    names = list(paths)
    legend = alt.Legend(title=None, orient="top", symbolOpacity=1, symbolSize=80)
    colours = alt.Scale(domain=names, range=list(COLOURS[: len(names)]))
    colour = alt.Color("way:N", scale=colours, legend=legend)
    shape = alt.Shape(
        "way:N", scale=alt.Scale(domain=names, range=list(SHAPES[: len(names)])), legend=None
    )
    base = alt.Chart(alt.InlineData(values=rows)).encode(
        x=alt.X("x:Q", title=x_title, scale=across), y=alt.Y("y:Q", title=y_title, scale=up)
    )
    plain = alt.Color("way:N", scale=colours, legend=None)
    ways = base.mark_line(strokeWidth=1.5).encode(color=plain, order="n:Q")
    points = base.mark_point(filled=True, size=28, opacity=1.0).encode(color=colour, shape=shape)
    resolve = alt.Resolve(scale=alt.ScaleResolveMap(color="independent"))
    chart = alt.LayerChart(layer=[ground, ways, points], resolve=resolve)
    chart.width, chart.height, chart.title = WIDTH, HEIGHT, title
    return themed(chart)
