"""Whose fault wrong outputs are, and what a wider search costs and brings."""

import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from unrolled.decode.audit import Audit, Scored, audit
from unrolled.evaluate.score import Score, named
from unrolled.evaluate.shown import columns
from unrolled.tasks.translate.answers import Translation
from unrolled.tasks.translate.data import PairData
from unrolled.tasks.translate.model import TranslateModel
from unrolled.tasks.translate.search import Search
from unrolled.text.parallel import Pair

WIDTHS = (1, 2, 3, 5, 10, 20, 50)
HEAD = ["width", "seconds", "score", "BLEU", "right", "model error", "search error"]

Scoring = Callable[[TranslateModel, Sequence[str], Sequence[Pair], Search], list[Score]]


class WidthRow(NamedTuple):
    """What a search of one width found."""

    width: int
    seconds: float
    score: float  # mean over the outputs of what the search ranks them by
    bleu: float
    exact_match: float
    unfinished: int
    blame: Audit

    def as_json(self) -> dict[str, Any]:
        """Plain values."""
        return {**self._asdict(), "blame": self.blame._asdict()}

    def cells(self) -> list[str]:
        """A row of the table."""
        shares = (self.blame.right, self.blame.model, self.blame.search)
        return [
            *(f"{self.width}", f"{self.seconds:.2f}", f"{self.score:.4f}", f"{self.bleu:.2f}"),
            *(f"{share:.1%}" for share in shares),
        ]


class WidthAudit(NamedTuple):
    """For each width of the beam: what it costs, what it finds, and whose fault the rest is."""

    rows: list[WidthRow]
    alpha: float

    def text(self) -> str:
        """A table."""
        table = columns([HEAD, *(row.cells() for row in self.rows)])
        score = f"score: mean log-probability of the outputs, length exponent {self.alpha:g}."
        return f"{table}\n{score}"

    def as_json(self) -> list[dict[str, Any]]:
        """A row a width."""
        return [row.as_json() for row in self.rows]

    def chart(self) -> Any:
        """Score, BLEU and time over the width."""
        from unrolled.charts import width_curve

        return width_curve(
            [row.width for row in self.rows],
            [row.score for row in self.rows],
            [row.bleu for row in self.rows],
            [row.seconds for row in self.rows],
        )


def audit_widths(
    model: TranslateModel,
    pairs: Sequence[Pair],
    search: Search,
    scoring: Scoring,
    *,
    widths: Sequence[int] = WIDTHS,
) -> WidthAudit:
    """A row for each width; the same normalisation judges references and outputs."""
    data = PairData.of(model.source, model.target, pairs)
    reference = Scored(model.log_probabilities(data.source, data.target), data.target.lengths)
    rows = []
    for width in widths:
        chosen, started = replace(search, width=width), time.perf_counter()
        found = model.translate([pair.source for pair in pairs], chosen)
        seconds = time.perf_counter() - started
        best = [outputs[0] for outputs in found]
        scores = scoring(model, [output.text for output in best], pairs, chosen)
        rows.append(_row(chosen, best, pairs, scores, reference, seconds))
    return WidthAudit(rows, search.alpha)


def _row(
    search: Search,
    best: Sequence[Translation],
    pairs: Sequence[Pair],
    scores: Sequence[Score],
    reference: Scored,
    seconds: float,
) -> WidthRow:
    lengths = np.array([len(output.tokens) + output.finished for output in best])
    output = Scored(np.array([each.log_probability for each in best]), lengths)
    right = np.array(
        [each.text.split() == pair.target.split() for each, pair in zip(best, pairs, strict=True)]
    )
    return WidthRow(
        search.width,
        seconds,
        float(np.mean([each.score for each in best])),
        named(scores, "bleu").value,
        named(scores, "exact_match").value,
        sum(not each.finished for each in best),
        audit(reference, output, right, alpha=search.alpha),
    )
