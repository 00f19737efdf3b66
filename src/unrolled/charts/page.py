"""Charts together, and into a file."""

import base64
import hashlib
import json
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from unrolled.charts.base import themed
from unrolled.errors import not_one_of
from unrolled.store.files import write_file

if TYPE_CHECKING:
    import altair as alt

    from unrolled.charts.base import AnyChart


START = """
const spec = JSON.parse(document.getElementById("spec").textContent);
const actions = {source: false, compiled: false, editor: false};  // the editor is on-line
vegaEmbed("#vis", spec, {mode: "vega-lite", ast: true, actions}).catch(console.error);
"""
HTML = """<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="{policy}">
<title>Unrolled</title>
</head>
<body>
<div id="vis"></div>
<script type="application/json" id="spec">{spec}</script>
<script>{script}</script>
</body>
</html>
"""
# The one script runs, by its digest; no other does, nor anything that is made of a text as it runs.
POLICY = (
    "default-src 'none'; script-src 'sha256-{digest}'; style-src 'unsafe-inline'; "
    "img-src data: blob:"
)
CONTROLS = {  # what no picture may hold: it is no text, or a terminal would obey it
    **{code: chr(0x2400 + code) for code in range(0x20) if code not in (0x09, 0x0A, 0x0D)},
    **dict.fromkeys([*range(0x7F, 0xA0), *range(0xD800, 0xE000), 0xFFFE, 0xFFFF], "\ufffd"),
}
MARKUP = {ord(letter): f"\\u{ord(letter):04x}" for letter in "<>&\u2028\u2029"}


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
    write_file(path, FORMATS[kind](drawable(chart.to_dict())))


def drawable(value: Any) -> Any:
    """A specification in which every text can be drawn: controls are seen, as in `␛`."""
    if isinstance(value, str):
        return value.translate(CONTROLS)
    if isinstance(value, dict):
        return {drawable(name): drawable(item) for name, item in value.items()}
    return [drawable(item) for item in value] if isinstance(value, list) else value


def page(spec: dict[str, Any]) -> bytes:
    """A page with the chart and the script that draws it: it asks for nothing, from nowhere.

    The labels and tokens of a chart may come from anyone. They stand in a block of data in which
    no letter can end it, and the page's policy lets nothing run but that script.
    """
    from vl_convert import javascript_bundle

    script = javascript_bundle(START).replace("</script", "<\\/script")
    policy = POLICY.format(digest=_digest(script))
    return HTML.format(policy=policy, spec=in_script(spec), script=script).encode()


def in_script(value: Any) -> str:
    """JSON that may stand between script tags."""
    return json.dumps(value).translate(MARKUP)


def _digest(script: str) -> str:
    """By which a policy names a script."""
    return base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()


def _png(spec: dict[str, Any]) -> bytes:
    from vl_convert import vegalite_to_png

    return vegalite_to_png(spec, scale=2)


def _svg(spec: dict[str, Any]) -> bytes:
    from vl_convert import vegalite_to_svg

    return vegalite_to_svg(spec).encode()


def _json(spec: dict[str, Any]) -> bytes:
    return json.dumps(spec, indent=1).encode()


FORMATS: dict[str, Callable[[dict[str, Any]], bytes]] = {
    ".html": page,
    ".json": _json,
    ".png": _png,
    ".svg": _svg,
}
