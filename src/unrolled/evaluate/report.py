"""Reports: scores beside the baselines', as values and as a table, and those a folder keeps."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self

from pydantic import BaseModel, ConfigDict, Field

from unrolled.errors import ConfigError, ModelError, shown
from unrolled.evaluate.details import detail_tables
from unrolled.evaluate.score import Score, better, named
from unrolled.evaluate.shown import blocks_of_columns
from unrolled.store.manifest import RESTORE
from unrolled.store.names import METRICS
from unrolled.store.reading import read_folder

SPLITS = ("dev", "test")
NOTES = "notes"
MAX_METRICS = 1 << 24  # bytes
NOT_A_REPORT = (
    *(ArithmeticError, AttributeError, LookupError, RecursionError, StopIteration),
    *(TypeError, ValueError),
)
Row = tuple[str, list[Score]]


@dataclass(frozen=True)
class Report:
    """A model's scores, and those of each baseline on the same data."""

    scores: list[Score]
    baselines: dict[str, list[Score]]
    details: dict[str, Any] = field(default_factory=dict)  # what stands behind them, plain values
    variants: dict[str, list[Score]] = field(default_factory=dict)  # other ways to use the model

    @classmethod
    def of(
        cls, scores: Mapping[str, list[Score]], details: Mapping[str, Any] | None = None
    ) -> Self:
        """From the scores of "model" and of each baseline, by name."""
        baselines = {name: own for name, own in scores.items() if name != "model"}
        return cls(scores["model"], baselines, dict(details or {}))

    def as_json(self) -> dict[str, Any]:
        """Plain values, as `--json` prints them."""
        return {
            "scores": [score._asdict() for score in self.scores],
            "baselines": {
                name: [score._asdict() for score in scores]
                for name, scores in self.baselines.items()
            },
            **({"details": self.details} if self.details else {}),
            **(
                {
                    "variants": {
                        name: [score._asdict() for score in scores]
                        for name, scores in self.variants.items()
                    }
                }
                if self.variants
                else {}
            ),
        }

    @classmethod
    def from_json(cls, value: dict[str, Any]) -> Self:
        """The report that `as_json` gave."""
        return cls(
            list(map(Score.from_json, value["scores"])),
            {
                name: list(map(Score.from_json, scores))
                for name, scores in value["baselines"].items()
            },
            value.get("details", {}),
            {
                name: list(map(Score.from_json, scores))
                for name, scores in value.get("variants", {}).items()
            },
        )

    def text(self) -> str:
        """Scores beside the baselines', then the recipe, and where a baseline is not beaten.

        Below it, for labels and tags, what stands behind the scores.
        """
        measures, table = rows(self)
        lines = [["", *measures], *([who, *map(cell, scores)] for who, scores in table)]
        parts = [
            blocks_of_columns(lines),
            f"95 % intervals in brackets; recipe: {self.scores[0].signature}",
        ]
        if unbeaten := self.unbeaten():
            parts.append(f"The model does not beat the baseline: {', '.join(unbeaten)}.")
        return "\n".join([*parts, *(f"\n{table}" for table in detail_tables(self.details))])

    def chart(self) -> Any:
        """There is none."""
        raise ConfigError("there is no picture of these scores. Leave --out out.")

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
    measures = [score.name for score in next(iter(report.baselines.values()), report.scores)]
    own = [score for score in report.scores if score.name in measures]
    backward = [score for score in report.scores if score.name not in measures]
    models = [("model", own), *([("backward", backward)] if backward else [])]
    return measures, [*models, *report.variants.items(), *report.baselines.items()]


def cell(score: Score) -> str:
    """A score and its interval."""
    return f"{number(score.value)} [{number(score.low)}, {number(score.high)}]"


def number(value: float) -> str:
    """Four digits that count, or all before the point."""
    return f"{value:.0f}" if 1000.0 <= abs(value) < 1e9 else f"{value:#.4g}"


def saved_notes(folder: Path | str) -> list[str]:
    """What is to be known beside the reports, or why there are none."""
    return list(_saved(folder).get(NOTES, {}).values())


def saved_reports(folder: Path | str) -> dict[str, Report]:
    """The reports that were taken when training ended, by the name of the split."""
    values = _saved(folder)
    return {name: Report.from_json(values[name]) for name in SPLITS if name in values}


def _saved(folder: Path | str) -> dict[str, Any]:
    """What metrics.json holds; ModelError if it is damaged, or no report that can be shown."""
    path = Path(folder) / METRICS
    data = read_folder(Path(folder), required=(METRICS,))[METRICS]
    if len(data) > MAX_METRICS:
        raise ModelError(path, f"has {len(data)} bytes, but may have {MAX_METRICS}; {RESTORE}.")
    try:
        return _checked(json.loads(data.decode()))
    except NOT_A_REPORT as error:
        raise ModelError(path, f"does not hold reports: {shown(str(error))}; {RESTORE}.") from error


def _checked(values: Any) -> dict[str, Any]:
    """The values of metrics.json, once it is known that their reports can be shown."""
    notes = _Saved.model_validate(values).notes
    reports = {name: Report.from_json(values[name]) for name in SPLITS if name in values}
    for report in reports.values():
        report.text()
    return {**values, NOTES: notes}


class _SavedScore(BaseModel):
    """A score as metrics.json holds it."""

    model_config = ConfigDict(extra="forbid", strict=True)

    name: str
    value: float
    low: float
    high: float
    signature: str
    higher_is_better: bool = True


class _SavedReport(BaseModel):
    model_config = ConfigDict(strict=True)

    scores: list[_SavedScore] = Field(min_length=1)
    baselines: dict[str, list[_SavedScore]]
    variants: dict[str, list[_SavedScore]] = {}
    details: dict[str, Any] = {}


class _Saved(BaseModel):
    model_config = ConfigDict(strict=True)

    dev: _SavedReport | None = None
    test: _SavedReport | None = None
    notes: dict[str, str] = {}
