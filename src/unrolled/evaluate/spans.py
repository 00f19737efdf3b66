"""Scores of tags: words that are right, and spans as conlleval counts them.

accuracy           words with the right tag / words
unknown_accuracy   the same over words that the training data did not have
span_precision     spans that are right (same words, same label) / spans that were found
span_recall        spans that are right / spans that there are
span_f1            2 P R / (P + R) = 2 right / (found + there are)
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from unrolled.evaluate.bootstrap import Estimate, ratio
from unrolled.evaluate.measure import Measure, ratio_measure
from unrolled.evaluate.score import Score
from unrolled.text.schemes import spans

Counts = NDArray[np.int64]
TagRows = Sequence[Sequence[str]]  # the tags of each sentence

CONFUSIONS = 20  # pairs of tags that are listed


class SpanCounts(NamedTuple):
    """Spans of each sentence (sentences,)."""

    right: Counts
    found: Counts
    gold: Counts

    @property
    def f1(self) -> float:
        """2 right / (found + there are), over all sentences."""
        right, found, gold = (int(part.sum()) for part in self)
        return 2.0 * right / max(1, found + gold)


def span_measures(counts: SpanCounts, signature: str) -> list[Measure]:
    """F1, precision and recall."""
    signature = f"{signature}|match:exact|average:micro"
    right, found, gold = counts
    return [
        ratio_of("span_f1", 2 * right, found + gold, signature),
        ratio_of("span_precision", right, found, signature),
        ratio_of("span_recall", right, gold, signature),
    ]


def right_words(gold: TagRows, predicted: TagRows) -> NDArray[np.bool_]:
    """(N,) whether each word has the right tag."""
    pairs = zip(gold, predicted, strict=True)
    return np.fromiter((a == b for g, p in pairs for a, b in zip(g, p, strict=True)), np.bool_)


def span_counts(gold: TagRows, predicted: TagRows, *, label: str | None = None) -> SpanCounts:
    """How many spans of each sentence (of one label) there are, were found, and are right."""
    rows = []
    for pair in zip(gold, predicted, strict=True):
        theirs, ours = (
            {span for span in spans(tags) if label is None or span.label == label} for tags in pair
        )
        rows.append((len(theirs & ours), len(ours), len(theirs)))
    return SpanCounts(*np.array(rows, dtype=np.int64).reshape(-1, 3).T)


def by_label(gold: TagRows, predicted: TagRows) -> dict[str, dict[str, float]]:
    """Precision, recall and F1 of the spans of each label."""
    labels = sorted({span.label for row in (*gold, *predicted) for span in spans(row)})
    return {
        label: _rates(*(int(part.sum()) for part in span_counts(gold, predicted, label=label)))
        for label in labels
    }


def by_tag(gold: TagRows, predicted: TagRows) -> dict[str, dict[str, float]]:
    """Precision, recall and F1 of each tag."""
    theirs, ours = (Counter(tag for row in rows for tag in row) for rows in (gold, predicted))
    right = Counter(a for a, b in _pairs(gold, predicted) if a == b)
    return {tag: _rates(right[tag], ours[tag], theirs[tag]) for tag in sorted(theirs | ours)}


def confusions(gold: TagRows, predicted: TagRows) -> list[dict[str, Any]]:
    """The commonest pairs of a right tag and another that was given."""
    counts = Counter((a, b) for a, b in _pairs(gold, predicted) if a != b)
    common = sorted(counts.items(), key=lambda item: (-item[1], item[0]))[:CONFUSIONS]
    return [{"gold": a, "predicted": b, "count": n} for (a, b), n in common]


def _pairs(gold: TagRows, predicted: TagRows) -> Iterable[tuple[str, str]]:
    for g, p in zip(gold, predicted, strict=True):
        yield from zip(g, p, strict=True)


def _rates(right: int, found: int, gold: int) -> dict[str, float]:
    return {
        "precision": right / found if found else 0.0,
        "recall": right / gold if gold else 0.0,
        "f1": 2 * right / (found + gold) if found + gold else 0.0,
        "count": gold,
    }


def by_sentence(marks: NDArray[np.bool_], lengths: Counts) -> Counts:
    """How many of the words (N,) of each sentence are marked."""
    ends = np.concatenate([[0], np.cumsum(marks)])[np.cumsum(lengths)]
    return np.diff(ends, prepend=0)


def ratio_of(name: str, amounts: Counts, counts: Counts, signature: str) -> Measure:
    """Σ amounts / Σ counts, 0 where nothing is counted; resampled over sentences that count."""
    rows = counts > 0
    nothing = Estimate(0.0, 0.0, 0.0)
    found = ratio(amounts[rows], counts[rows]) if rows.any() else nothing
    return ratio_measure(Score.of(name, found, signature), amounts, counts)
