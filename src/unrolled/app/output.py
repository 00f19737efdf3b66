"""Results for people and for programs. Results go to stdout, everything else to stderr."""

import json
import math
import sys
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from unrolled.evaluate.report import Report


def print_json(value: Any) -> None:
    """One JSON document on stdout."""
    print(json.dumps(_finite(value), ensure_ascii=False, indent=1, allow_nan=False))


def note(message: str) -> None:
    """A sentence on stderr."""
    print(message, file=sys.stderr)


def print_report(report: "Report", *, title: str) -> None:
    """Scores beside the baselines', then the recipe; says so where a baseline is not beaten.

    Below it, for labels and tags, what stands behind the scores.
    """
    from unrolled.app.details import print_details
    from unrolled.evaluate.report import cell, rows

    measures, table = rows(report)
    lines = [["", *measures], *([who, *map(cell, scores)] for who, scores in table)]
    print(title)
    print_columns(lines)
    print(f"95 % intervals in brackets; recipe: {report.scores[0].signature}")
    if unbeaten := report.unbeaten():
        print(f"The model does not beat the baseline: {', '.join(unbeaten)}.")
    print_details(report.details)


def print_columns(lines: list[list[str]]) -> None:
    """The first column to the left, the others to the right; never cut, never wrapped."""
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    for first, *others in lines:
        cells = [text.rjust(width) for text, width in zip(others, widths[1:], strict=True)]
        print("  ".join([first.ljust(widths[0]), *cells]))


def _finite(value: Any) -> Any:
    """The value with null for what JSON has no number for."""
    if isinstance(value, dict):
        return {name: _finite(item) for name, item in value.items()}
    if isinstance(value, list):
        return [_finite(item) for item in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value
