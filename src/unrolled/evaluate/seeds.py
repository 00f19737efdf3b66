"""Runs that differ in their seed alone: mean and deviation of each score, and the best by dev."""

from collections.abc import Mapping
from dataclasses import dataclass
from statistics import mean, stdev
from typing import Any, NamedTuple

from unrolled.errors import ConfigError
from unrolled.evaluate.report import Report, number
from unrolled.evaluate.score import named
from unrolled.evaluate.shown import blocks_of_columns

Reports = Mapping[str, Report]  # by the name of the split


class Spread(NamedTuple):
    """What a measure gave, run by run."""

    values: list[float]

    @property
    def mean(self) -> float:
        return mean(self.values)

    @property
    def deviation(self) -> float:
        """Of the sample, by N − 1; 0 where there is one run."""
        return stdev(self.values) if len(self.values) > 1 else 0.0

    def as_json(self) -> dict[str, Any]:
        return {"mean": self.mean, "deviation": self.deviation, "values": self.values}


@dataclass(frozen=True)
class SeedsReport:
    """The reports of runs, by seed."""

    reports: Mapping[int, Reports]

    @property
    def best(self) -> int:
        """The seed of the run that is best on the dev data; the first of those that tie."""

        def cost(seed: int) -> float:
            split = self.reports[seed].get("dev") or next(iter(self.reports[seed].values()))
            score = split.scores[0]
            return -score.value if score.higher_is_better else score.value

        return min(self.reports, key=cost)

    def spreads(self, split: str) -> dict[str, Spread]:
        """Of each measure on a split."""
        all_scores = [reports[split].scores for reports in self.reports.values()]
        return {
            score.name: Spread([named(scores, score.name).value for scores in all_scores])
            for score in all_scores[0]
        }

    @property
    def splits(self) -> list[str]:
        """Those that every run was scored on."""
        first = next(iter(self.reports.values()))
        return [s for s in first if all(s in reports for reports in self.reports.values())]

    def text(self) -> str:
        """A table a split: a row a seed, and mean ± deviation."""
        return "\n\n".join(self._table(split) for split in self.splits)

    def _table(self, split: str) -> str:
        spreads = self.spreads(split)
        rows = [
            [f"seed {seed}", *(number(spread.values[k]) for spread in spreads.values())]
            for k, seed in enumerate(self.reports)
        ]
        means = [f"{number(s.mean)} ± {_deviation(s)}" for s in spreads.values()]
        table = blocks_of_columns([[split, *spreads], *rows, ["mean", *means]])
        told = f"mean ± deviation of {len(rows)} runs; best on the dev data: seed {self.best}"
        return f"{table}\n{told}"

    def as_json(self) -> dict[str, Any]:
        """Reports by seed, spreads by split, the best seed."""
        return {
            "seeds": {
                str(seed): {name: report.as_json() for name, report in reports.items()}
                for seed, reports in self.reports.items()
            },
            **{
                split: {name: spread.as_json() for name, spread in self.spreads(split).items()}
                for split in self.splits
            },
            "best": self.best,
        }

    def chart(self) -> Any:
        """There is none."""
        raise ConfigError("there is no picture of these scores. Leave --out out.")


def _deviation(spread: Spread) -> str:
    """To the last digit that the mean is shown with."""
    shown = number(spread.mean)
    digits = len(shown.partition(".")[2]) if "e" not in shown else 4
    return f"{spread.deviation:.{digits}f}"
