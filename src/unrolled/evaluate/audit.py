"""Whose fault wrong outputs are, and what a wider search costs and brings."""

import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from unrolled.decode.audit import Audit, Scored, audit
from unrolled.evaluate.metrics import named
from unrolled.evaluate.translate import PairData, output_scores
from unrolled.models.translate import Search, TranslateModel, Translation
from unrolled.text.parallel import Pair

WIDTHS = (1, 2, 3, 5, 10, 20, 50)


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


def audit_widths(
    model: TranslateModel,
    pairs: Sequence[Pair],
    search: Search,
    *,
    widths: Sequence[int] = WIDTHS,
    watch: Callable[[WidthRow], None] = lambda row: None,
) -> list[WidthRow]:
    """A row for each width; the same normalisation judges references and outputs."""
    data = PairData.of(model, pairs)
    reference = Scored(model.log_probabilities(data.source, data.target), data.target.lengths)
    rows = []
    for width in widths:
        started = time.perf_counter()
        found = model.translate([pair.source for pair in pairs], replace(search, width=width))
        seconds = time.perf_counter() - started
        best = [outputs[0] for outputs in found]
        rows.append(_row(model, pairs, replace(search, width=width), best, reference, seconds))
        watch(rows[-1])
    return rows


def _row(
    model: TranslateModel,
    pairs: Sequence[Pair],
    search: Search,
    best: Sequence[Translation],
    reference: Scored,
    seconds: float,
) -> WidthRow:
    scores = output_scores(model, [output.text for output in best], pairs, search)
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
