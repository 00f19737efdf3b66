"""Evaluate a tagger: token accuracy, spans as conlleval counts them, words never seen before.

    accuracy           words with the right tag / words
    unknown_accuracy   the same over words that the training data did not have
    span_precision     spans that are right (same words, same label) / spans that were found
    span_recall        spans that are right / spans that there are
    span_f1            2 P R / (P + R) = 2 right / (found + there are)

Beside them the most frequent tag: each word's commonest tag in the training data, and the commonest
of all for words that it did not have.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from unrolled.evaluate.metrics import RESAMPLES, Score, resampled_ratio
from unrolled.evaluate.report import Report
from unrolled.models.tag import TagModel
from unrolled.text.conll import TaggedSentence, read_tagged
from unrolled.text.schemes import find_scheme, spans, write_spans
from unrolled.text.tagset import check_overlap, count_unseen
from unrolled.text.word_encoder import EncodedWords

Counts = NDArray[np.int64]
TagRows = Sequence[Sequence[str]]  # the tags of each sentence

CONFUSIONS = 20  # pairs of tags that are listed


class SpanCounts(NamedTuple):
    """Spans of each sentence (sentences,)."""

    right: Counts
    found: Counts
    gold: Counts


@dataclass(frozen=True)
class TaggedData:
    """Sentences to evaluate on, encoded once."""

    sentences: Sequence[TaggedSentence]
    encoded: EncodedWords
    unknown: NDArray[np.bool_]  # (N,) words outside the vocabulary
    scheme: str | None  # of the spans of these sentences

    @classmethod
    def of(cls, model: TagModel, sentences: Sequence[TaggedSentence]) -> "TaggedData":
        """Made ready for a model."""
        words = [sentence.words for sentence in sentences]
        encoded = model.encoder.encode(words)
        known = np.array(model.encoder.words.counts)[encoded.words] > 0
        scheme = None
        if model.tags.scheme is not None:
            gold = [sentence.tags for sentence in sentences]
            scheme = find_scheme(gold) or model.tags.scheme
        return cls(sentences, encoded, ~known, scheme)

    @property
    def gold(self) -> list[list[str]]:
        """The right tags."""
        return [sentence.tags for sentence in self.sentences]


def evaluate_tagging(model: TagModel, lines: Iterable[str], *, source: Path | str) -> Report:
    """Scores of a model on a file's lines."""
    column = model.settings.tokens.column
    sentences = read_tagged(lines, source=source, column=column)
    check_overlap(model.tags, sentences, source=source)
    return evaluate_tagged(model, TaggedData.of(model, sentences))


def evaluate_tagged(model: TagModel, data: TaggedData) -> Report:
    """Scores of a model on sentences that are read already, beside the most frequent tag."""
    predicted = predicted_tags(model, data)
    usual = np.array(model.tags.usual)[data.encoded.words]
    baseline = in_sentences(model, usual, data)
    return Report(
        tagging_scores(predicted, data),
        {"most_frequent_tag": tagging_scores(baseline, data)},
        details(model, predicted, data),
    )


def dev_loss(model: TagModel, data: TaggedData) -> float:
    """One less the measure that the task is about: F1 of spans, else accuracy."""
    predicted = predicted_tags(model, data)
    if data.scheme is not None:
        right, found, gold = (int(part.sum()) for part in span_counts(data.gold, predicted))
        return 1.0 - 2.0 * right / max(1, found + gold)
    return 1.0 - float(right_words(data.gold, predicted).mean())


def predicted_tags(model: TagModel, data: TaggedData) -> list[list[str]]:
    """What the model says, in the scheme of the data."""
    return in_sentences(model, model.best_tags(data.encoded), data)


def in_sentences(model: TagModel, ids: NDArray[Any], data: TaggedData) -> list[list[str]]:
    """Tag ids of all words (N,) as the tags of each sentence, in the scheme of the data."""
    names = model.tags.tags
    tags = [names[i] for i in ids.tolist()]
    ends = data.encoded.ends.tolist()
    rows = [tags[end - n : end] for end, n in zip(ends, data.encoded.lengths.tolist(), strict=True)]
    if data.scheme is None:
        return rows
    return [write_spans(spans(row), len(row), data.scheme) for row in rows]


def tagging_scores(predicted: TagRows, data: TaggedData) -> list[Score]:
    """Spans first where there are any, then words."""
    right, lengths = right_words(data.gold, predicted), data.encoded.lengths
    signature = _signature(data)
    scores = [_ratio("accuracy", _by_sentence(right, lengths), lengths, signature)]
    if data.unknown.any():
        amounts = _by_sentence(right & data.unknown, lengths)
        counts = _by_sentence(data.unknown, lengths)
        scores.append(_ratio("unknown_accuracy", amounts, counts, signature))
    if data.scheme is None:
        return scores
    return [*span_scores(span_counts(data.gold, predicted), signature), *scores]


def span_scores(counts: SpanCounts, signature: str) -> list[Score]:
    """F1, precision and recall."""
    signature = f"{signature}|match:exact|average:micro"
    right, found, gold = counts
    return [
        _ratio("span_f1", 2 * right, found + gold, signature),
        _ratio("span_precision", right, found, signature),
        _ratio("span_recall", right, gold, signature),
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


def details(model: TagModel, predicted: TagRows, data: TaggedData) -> dict[str, Any]:
    """What stands behind the scores: by label or tag, the commonest mistakes, unseen tags."""
    found: dict[str, Any] = {
        "by_label" if data.scheme is not None else "by_tag": (
            by_label(data.gold, predicted)
            if data.scheme is not None
            else by_tag(data.gold, predicted)
        ),
        "confusions": confusions(data.gold, predicted),
    }
    unseen = count_unseen(model.tags, data.sentences)
    if unseen:
        found["tags_not_in_training_data"] = dict(sorted(unseen.items()))
    return found


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


def _by_sentence(marks: NDArray[np.bool_], lengths: Counts) -> Counts:
    """How many of the words (N,) of each sentence are marked."""
    ends = np.concatenate([[0], np.cumsum(marks)])[np.cumsum(lengths)]
    return np.diff(ends, prepend=0)


def _signature(data: TaggedData) -> str:
    pairs = {
        "examples": len(data.sentences),
        "tokens": len(data.encoded.words),
        "unknown": int(data.unknown.sum()),
        "scheme": data.scheme or "none",
        "ci": f"bootstrap-{RESAMPLES}-sentences",
        "version": version("unrolled"),
    }
    return "|".join(f"{key}:{value}" for key, value in pairs.items())


def _ratio(name: str, amounts: Counts, counts: Counts, signature: str) -> Score:
    """Σ amounts / Σ counts, 0 where nothing is counted; resampled over sentences that count."""
    rows = counts > 0
    if not rows.any():
        return Score(name, 0.0, 0.0, 0.0, signature)
    value, low, high = resampled_ratio(amounts[rows].astype(np.float64), counts[rows])
    return Score(name, value, low, high, signature)
