"""Reports as people and programs read them: as rows of a table, and from a model folder."""

import json
from pathlib import Path

from unrolled.evaluate.language import Report
from unrolled.evaluate.metrics import Score
from unrolled.models.folder import METRICS

TEXTS = ("dev", "test")
Row = tuple[str, list[Score]]


def rows(report: Report) -> tuple[list[str], list[Row]]:
    """The measures, and a row of their scores for the model and for each baseline.

    The backward model of a pair has a row of its own.
    """
    measures = [score.name for score in next(iter(report.baselines.values()))]
    own = [score for score in report.scores if score.name in measures]
    backward = [score for score in report.scores if score.name not in measures]
    models = [("model", own), *([("backward", backward)] if backward else [])]
    return measures, [*models, *report.baselines.items()]


def cell(score: Score) -> str:
    """A score and its interval."""
    return f"{number(score.value)} [{number(score.low)}, {number(score.high)}]"


def number(value: float) -> str:
    """Four digits that count, or all before the point."""
    return f"{value:.0f}" if 1000.0 <= abs(value) < 1e9 else f"{value:#.4g}"


def saved_reports(folder: Path | str) -> dict[str, Report]:
    """The reports that were taken when training ended, by the name of the text."""
    values = json.loads((Path(folder) / METRICS).read_text(encoding="utf-8"))
    return {name: Report.from_json(values[name]) for name in TEXTS if name in values}
