"""Charts together, and into a file."""

import io
from pathlib import Path
from typing import TYPE_CHECKING, Any

from unrolled.charts.base import themed
from unrolled.errors import StorageError, not_one_of

if TYPE_CHECKING:
    import altair as alt

    from unrolled.charts.base import AnyChart

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
