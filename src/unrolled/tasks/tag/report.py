"""Evaluate a tagger: its tags beside the most frequent tag of each word.

The baseline is each word's commonest tag in the training data, and the commonest of all for words
that it did not have.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from unrolled.evaluate.measure import Measure
from unrolled.evaluate.report import Report
from unrolled.evaluate.score import Score, signature
from unrolled.evaluate.spans import (
    TagRows,
    by_label,
    by_sentence,
    by_tag,
    confusions,
    ratio_of,
    right_words,
    span_counts,
    span_measures,
)
from unrolled.tasks.tag.data import TaggedData
from unrolled.tasks.tag.model import TagModel
from unrolled.text.conll import TaggedSentence
from unrolled.text.schemes import find_scheme, spans, write_spans
from unrolled.text.tagset import count_unseen
from unrolled.training.clock import Dev


def prepared(model: TagModel, sentences: Sequence[TaggedSentence]) -> TaggedData:
    """Sentences made ready for a model."""
    encoded = model.encoder.encode([sentence.words for sentence in sentences])
    known = np.array(model.encoder.words.counts)[encoded.words] > 0
    scheme = None
    if model.tags.scheme is not None:
        scheme = find_scheme([sentence.tags for sentence in sentences]) or model.tags.scheme
    return TaggedData(sentences, encoded, ~known, scheme)


def evaluate_tagged(model: TagModel, data: TaggedData) -> Report:
    """Scores of a model on sentences, beside the most frequent tag."""
    predicted = predicted_tags(model, data)
    most_frequent = in_sentences(
        model, np.array(model.tags.most_frequent)[data.encoded.words], data
    )
    said = {"model": predicted, "most_frequent_tag": most_frequent}
    scores = {name: tagging_scores(tags, data) for name, tags in said.items()}
    return Report.of(scores, details(model, predicted, data))


def dev_measure(model: TagModel, data: TaggedData) -> Dev:
    """What the task is about: F1 of spans, else accuracy; the cost is one less it."""
    predicted = predicted_tags(model, data)
    if data.scheme is not None:
        name, value = "span_f1", span_counts(data.gold, predicted).f1
    else:
        name, value = "accuracy", float(right_words(data.gold, predicted).mean())
    return Dev(name, value, 1.0 - value)


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
    return [measure.score for measure in tagging_measures(predicted, data)]


def tagging_measures(predicted: TagRows, data: TaggedData) -> list[Measure]:
    """The same, with what the scores are made of sentence by sentence."""
    right, lengths = right_words(data.gold, predicted), data.encoded.lengths
    recipe = _recipe(data)
    words = [ratio_of("accuracy", by_sentence(right, lengths), lengths, recipe)]
    if data.unknown.any():
        amounts = by_sentence(right & data.unknown, lengths)
        counts = by_sentence(data.unknown, lengths)
        words.append(ratio_of("unknown_accuracy", amounts, counts, recipe))
    if data.scheme is None:
        return words
    return [*span_measures(span_counts(data.gold, predicted), recipe), *words]


def _recipe(data: TaggedData) -> str:
    counted = {
        "examples": len(data.sentences),
        "tokens": len(data.encoded.words),
        "unknown": int(data.unknown.sum()),
        "scheme": data.scheme or "none",
    }
    return signature(counted, resampled="sentences")


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
