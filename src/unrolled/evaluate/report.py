"""Reports: scores beside the baselines', as values, as table rows, from a model folder."""

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self

from unrolled.evaluate.metrics import Score, better, named
from unrolled.models.folder import METRICS

TEXTS = ("dev", "test")
Row = tuple[str, list[Score]]


@dataclass(frozen=True)
class Report:
    """A model's scores, and those of each baseline on the same data."""

    scores: list[Score]
    baselines: dict[str, list[Score]]
    details: dict[str, Any] = field(
        default_factory=dict
    )  # what stands behind them, as plain values

    def as_json(self) -> dict[str, Any]:
        """Plain values, as `--json` prints them."""
        return {
            "scores": [score._asdict() for score in self.scores],
            "baselines": {
                name: [score._asdict() for score in scores]
                for name, scores in self.baselines.items()
            },
            **({"details": self.details} if self.details else {}),
        }

    @classmethod
    def from_json(cls, value: dict[str, Any]) -> Self:
        """The report that `as_json` gave."""
        return cls(
            [Score(**score) for score in value["scores"]],
            {
                name: [Score(**score) for score in scores]
                for name, scores in value["baselines"].items()
            },
            value.get("details", {}),
        )

    def unbeaten(self) -> list[str]:
        """The baselines that the model does not beat."""
        mine = self.scores[0]
        return [
            name
            for name, scores in self.baselines.items()
            if not better(mine, named(scores, mine.name))
        ]


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


def saved_notes(folder: Path | str) -> list[str]:
    """What is to be known beside them, or why there are none."""
    values = json.loads((Path(folder) / METRICS).read_text(encoding="utf-8"))
    return list(values.get("notes", {}).values())


def saved_reports(folder: Path | str) -> dict[str, Report]:
    """The reports that were taken when training ended, by the name of the text."""
    values = json.loads((Path(folder) / METRICS).read_text(encoding="utf-8"))
    return {name: Report.from_json(values[name]) for name in TEXTS if name in values}
