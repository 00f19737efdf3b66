"""Boxes and arrows: a network drawn, with what its parts are worth."""

import math
from collections.abc import Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any, NamedTuple

from unrolled.charts.base import BLACK, GREY, MONO, PALE, finite, letters, themed
from unrolled.errors import ConfigError

if TYPE_CHECKING:
    import altair as alt

COLUMN, ROW = 170, 90  # pixels from box to box, unless asked otherwise
LINE, LETTER = 14, 6.62  # pixels of a line of text, and of a letter
MARGIN = 8  # pixels between a text and the border of its box
HEAD = 5  # pixels of an arrow's head beyond its line
Point = tuple[float, float]


class Box(NamedTuple):
    """A box by its name, which no other has; x and y of its middle, in columns and rows."""

    name: str
    x: float
    y: float
    title: str
    lines: Sequence[tuple[str, str]] = ()  # texts below the title, each with its colour
    fill: str = PALE


class Arrow(NamedTuple):
    """From one box to another, by way of points, in columns and rows."""

    source: str
    target: str
    via: Sequence[Point] = ()
    label: str = ""
    dashed: bool = False


class Frame(NamedTuple):
    """A frame with a title round some boxes, and round points in columns and rows."""

    title: str
    boxes: Sequence[str]
    points: Sequence[Point] = ()


class _Size(NamedTuple):
    """Where a box is, in pixels."""

    x: float
    y: float
    width: float
    height: float


def diagram(
    boxes: Sequence[Box],
    arrows: Sequence[Arrow],
    *,
    frames: Sequence[Frame] = (),
    column: float = COLUMN,
    row: float = ROW,
    title: str = "",
) -> "alt.LayerChart":
    """Draw boxes, arrows from border to border, and frames; every name must be that of a box."""
    import altair as alt

    sizes = {box.name: _size(box, column, row) for box in boxes}
    _check(boxes, arrows, frames)
    edge = [side for size in sizes.values() for side in _sides(size, 12 if frames else 0)]
    bends = [(x * column, y * row) for arrow in arrows for x, y in arrow.via]
    edge += [(x + s, y + s) for x, y in bends for s in (-HEAD, HEAD)]
    (left, *_, right), (top, *_, bottom) = (sorted(axis) for axis in zip(*edge, strict=True))
    top -= 22 if frames else 0  # of a frame's title
    x = alt.Scale(domain=[left - MARGIN, right + MARGIN], nice=False)
    y = alt.Scale(domain=[bottom + MARGIN, top - MARGIN], nice=False)
    at = {"x": alt.X("x:Q", axis=None, scale=x), "y": alt.Y("y:Q", axis=None, scale=y)}
    ways = [_way(arrow, sizes, column, row) for arrow in arrows]
    spans = [
        [side for name in frame.boxes for side in _sides(sizes[name], 12)]
        + [(x * column, y * row) for x, y in frame.points]
        for frame in frames
    ]
    layers = [
        *_frames(frames, spans, at),
        *_lines(arrows, ways, at),
        _rectangles([_corners(sizes[box.name]) | {"fill": box.fill} for box in boxes], at),
        _texts([_title(box, sizes[box.name]) for box in boxes], at),
        _texts([text for box in boxes for text in _below(box, sizes[box.name])], at, align="left"),
        _texts([_label(arrow, way) for arrow, way in zip(arrows, ways, strict=True)], at),
    ]
    width, height = right - left + 2 * MARGIN, bottom - top + 2 * MARGIN
    chart = alt.LayerChart(layer=layers, width=width, height=height)
    chart.title = title
    return themed(chart)


def _check(boxes: Sequence[Box], arrows: Sequence[Arrow], frames: Sequence[Frame]) -> None:
    names = [box.name for box in boxes]
    if not names:
        raise ConfigError("there are no boxes, but a picture needs one. Give at least one box.")
    finite("places of boxes", [place for box in boxes for place in (box.x, box.y)])
    for name in names:
        if names.count(name) > 1:
            raise ConfigError(f"{name!r} names two boxes, but every box must have its own name.")
    used = [end for arrow in arrows for end in arrow[:2]]
    for name in (*used, *(name for frame in frames for name in frame.boxes)):
        if name not in names:
            raise ConfigError(f"{name!r} has no place, but every box must have one.")


def _size(box: Box, column: float, row: float) -> _Size:
    """As large as its texts."""
    widest = max(map(letters, [box.title, *(text for text, _ in box.lines)]))
    width, height = widest * LETTER + 2 * MARGIN, LINE * (1 + len(box.lines)) + MARGIN
    return _Size(box.x * column, box.y * row, width, height)


def _sides(size: _Size, beyond: float = 0.0) -> tuple[Point, Point]:
    """Two corners, opposite to each other."""
    x, y = size.width / 2 + beyond, size.height / 2 + beyond
    return (size.x - x, size.y - y), (size.x + x, size.y + y)


def _corners(size: _Size) -> dict[str, float]:
    (x, y), (x2, y2) = _sides(size)
    return {"x": x, "y": y, "x2": x2, "y2": y2}


def _way(arrow: Arrow, sizes: dict[str, _Size], column: float, row: float) -> list[Point]:
    """The points of an arrow, from the border of one box to the border of the other."""
    via = [(x * column, y * row) for x, y in arrow.via]
    start, end = sizes[arrow.source], sizes[arrow.target]
    first = _border(start, via[0] if via else (end.x, end.y), 0)
    last = _border(end, via[-1] if via else (start.x, start.y), HEAD)
    return [first, *via, last]


def _border(size: _Size, towards: Point, beyond: float) -> Point:
    """Where the line from a box's middle to a point leaves the box."""
    dx, dy = towards[0] - size.x, towards[1] - size.y
    if dx == dy == 0:
        return size.x, size.y
    share = min(
        (size.width / 2 + beyond) / abs(dx) if dx else math.inf,
        (size.height / 2 + beyond) / abs(dy) if dy else math.inf,
    )
    return size.x + share * dx, size.y + share * dy


# ------------------------------------------------------------------ layers


def _lines(arrows: Sequence[Arrow], ways: list[list[Point]], at: dict[str, Any]) -> list[Any]:
    """Lines, and a head where each ends."""
    import altair as alt

    points = [
        {"x": x, "y": y, "arrow": number, "place": place, "dashed": arrow.dashed}
        for number, (arrow, way) in enumerate(zip(arrows, ways, strict=True))
        for place, (x, y) in enumerate(way)
    ]
    heads = [_head(*way[-2:]) for way in ways]
    kinds = alt.Scale(domain=[False, True], range=[[1, 0], [4, 3]])
    dash = alt.StrokeDash("dashed:N", scale=kinds, legend=None)
    lines = alt.Chart(alt.InlineData(values=points)).mark_line(color=GREY, strokeWidth=1.2)
    marks = alt.Chart(alt.InlineData(values=heads)).mark_point(
        shape="triangle", filled=True, color=GREY, size=60, opacity=1.0
    )
    angle = alt.Angle("angle:Q", scale=None)
    return [
        lines.encode(**at, detail="arrow:N", order="place:Q", strokeDash=dash),
        marks.encode(**at, angle=angle),
    ]


def _head(before: Point, end: Point) -> dict[str, float]:
    angle = math.degrees(math.atan2(end[0] - before[0], before[1] - end[1]))
    return {"x": end[0], "y": end[1], "angle": angle}


def _rectangles(values: list[dict[str, Any]], at: dict[str, Any], **mark: Any) -> Any:
    import altair as alt

    look: dict[str, Any] = {"stroke": GREY, "strokeWidth": 0.8, "cornerRadius": 4} | mark
    chart = alt.Chart(alt.InlineData(values=values)).mark_rect(**look)
    fill = alt.Fill("fill:N", scale=None)
    return chart.encode(**at, x2="x2:Q", y2="y2:Q", fill=fill)


def _frames(frames: Sequence[Frame], spans: list[list[Point]], at: dict[str, Any]) -> list[Any]:
    """A dashed frame round each group, its title above."""
    if not frames:
        return []
    rectangles, titles = [], []
    for frame, span in zip(frames, spans, strict=True):
        (x, *_, x2), (y, *_, y2) = (sorted(axis) for axis in zip(*span, strict=True))
        rectangles.append({"x": x, "y": y, "x2": x2, "y2": y2, "fill": "#FAFAFA"})
        titles.append(_text(frame.title, x=(x + x2) / 2, y=y - 10, colour=BLACK))
    return [_rectangles(rectangles, at, strokeDash=[5, 4]), _texts(titles, at)]


def _texts(values: list[dict[str, Any]], at: dict[str, Any], align: Any = "center") -> Any:
    import altair as alt

    chart = alt.Chart(alt.InlineData(values=values)).mark_text(
        font=MONO, fontSize=11, align=align, baseline="middle"
    )
    return chart.encode(**at, text="text:N", color=alt.Color("colour:N", scale=None))


def _text(text: str, *, x: float, y: float, colour: str) -> dict[str, Any]:
    return {"text": text.replace(" ", "\u00a0"), "x": x, "y": y, "colour": colour}


def _title(box: Box, size: _Size) -> dict[str, Any]:
    return _text(box.title, x=size.x, y=size.y - LINE * len(box.lines) / 2, colour=BLACK)


def _below(box: Box, size: _Size) -> list[dict[str, Any]]:
    """The lines of a box; they begin below each other, the longest one in the middle."""
    left = size.x - LETTER * max((letters(text) for text, _ in box.lines), default=0) / 2
    top = size.y - LINE * len(box.lines) / 2
    return [
        _text(text, x=left, y=top + LINE * place, colour=colour)
        for place, (text, colour) in enumerate(box.lines, 1)
    ]


def _label(arrow: Arrow, way: list[Point]) -> dict[str, Any]:
    """Beside the middle of the longest piece of an arrow."""
    pieces = pairwise(way)
    (ax, ay), (bx, by) = max(pieces, key=lambda piece: math.dist(*piece))
    level = abs(by - ay) < abs(bx - ax)
    aside = 0.0 if level else letters(arrow.label) * LETTER / 2 + 4
    x, y = (ax + bx) / 2 + aside, (ay + by) / 2 - (9 if level else 0)
    return _text(arrow.label, x=x, y=y, colour=GREY)
