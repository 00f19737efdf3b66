"""Results for people and for programs. Results go to stdout, everything else to stderr."""

import json
import math
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from unrolled.evaluate.report import Report
    from unrolled.evaluate.shown import Shown

NUMBERS = ".json"  # the ending of a file that holds no picture
CONTROLS = {  # what a terminal would obey
    code: f"\\u{code:04x}" for code in (*range(0x20), *range(0x7F, 0xA0)) if chr(code) not in "\t\n"
}


def say(*lines: str) -> None:
    """A result on stdout; on a terminal the controls that are in it are shown, not obeyed."""
    text = "\n".join(lines)
    print(text.translate(CONTROLS) if sys.stdout.isatty() else text, flush=True)


def print_json(value: Any) -> None:
    """One JSON document on stdout."""
    say(json_text(value))


def print_object(value: Any) -> None:
    """One JSON object on a line of its own."""
    say(json.dumps(_finite(value), ensure_ascii=False, allow_nan=False))


def json_text(value: Any) -> str:
    """A JSON document for people to read."""
    return json.dumps(_finite(value), ensure_ascii=False, indent=1, allow_nan=False)


def note(message: str) -> None:
    """A sentence on stderr; no name or token in it can move the cursor."""
    print(message.translate(CONTROLS), file=sys.stderr)


def print_report(report: "Report", *, title: str) -> None:
    """Scores beside the baselines', under a title."""
    say(title, report.text())


def print_shown(shown: "Shown", *, title: str, out: Path | None, json: bool) -> None:
    """A result as text or as JSON and, where a file is named, in it."""
    if json:
        print_json(shown.as_json())
    else:
        say(*([title] if title else []), shown.text())
    if out is not None:
        draw(shown.as_json() if out.suffix == NUMBERS else shown.chart(), out)


def draw(value: Any, out: Path) -> None:
    """A chart, or plain values, as a file."""
    if out.suffix == NUMBERS:
        from unrolled.store.files import write_file

        write_file(out, (json_text(value) + "\n").encode())
        return
    from unrolled.charts import missing_scripts, save

    save(value, out)
    note(f"Drawn: {out}.")
    missing = missing_scripts(value.to_dict()) if out.suffix.lower() == ".png" else []
    if missing:
        note(
            f"No font here has the letters of {', '.join(missing)}: boxes stand for them. Install "
            "one, or draw .svg or .html, which take the reader's fonts."
        )


def _finite(value: Any) -> Any:
    """The value with null for what JSON has no number for."""
    if isinstance(value, dict):
        return {name: _finite(item) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(item) for item in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value
