"""Scores of taggers, against counting by hand, conlleval's rules and seqeval."""

import numpy as np
import pytest

from unrolled.evaluate.score import Score, better
from unrolled.evaluate.spans import (
    by_label,
    by_tag,
    confusions,
    right_words,
    span_counts,
    span_measures,
)
from unrolled.tasks.tag.data import TaggedData
from unrolled.tasks.tag.report import tagging_scores
from unrolled.text.conll import TaggedSentence
from unrolled.text.schemes import spans
from unrolled.text.word_encoder import WordEncoder

pytestmark = pytest.mark.arithmetic

GOLD = [["B-PER", "I-PER", "O", "B-LOC"], ["O", "B-ORG"], ["O"]]
FOUND = [["B-PER", "I-PER", "O", "B-ORG"], ["B-ORG", "I-ORG"], ["O"]]


def data_of(gold, *, scheme="iob2", unknown=()) -> TaggedData:
    sentences = [TaggedSentence([f"w{i}" for i in range(len(tags))], tags) for tags in gold]
    words = [sentence.words for sentence in sentences]
    encoded = WordEncoder.build(words).encode(words)
    marks = np.zeros(len(encoded.words), dtype=bool)
    marks[list(unknown)] = True
    return TaggedData(sentences, encoded, marks, scheme)


def values(scores: list[Score]) -> dict[str, float]:
    return {score.name: score.value for score in scores}


def test_spans_are_right_if_words_and_label_are():
    counts = span_counts(GOLD, FOUND)
    assert [part.tolist() for part in counts] == [[1, 0, 0], [2, 1, 0], [2, 1, 0]]
    scores = values([measure.score for measure in span_measures(counts, "tokens:7")])
    assert scores == pytest.approx(
        {"span_f1": 2 / 6, "span_precision": 1 / 3, "span_recall": 1 / 3}, abs=1e-15
    )


def test_scores_put_spans_first_and_count_unknown_words():
    scores = tagging_scores(FOUND, data_of(GOLD, unknown=[3, 4, 6]))
    assert [score.name for score in scores] == [
        "span_f1",
        "span_precision",
        "span_recall",
        "accuracy",
        "unknown_accuracy",
    ]
    found = values(scores)
    assert found["accuracy"] == pytest.approx(4 / 7, abs=1e-15)
    assert found["unknown_accuracy"] == pytest.approx(1 / 3, abs=1e-15)
    for score in scores:
        assert 0.0 <= score.low <= score.value <= score.high <= 1.0


def test_scores_of_tags_that_mark_no_spans():
    scores = tagging_scores([["N", "V"]], data_of([["N", "N"]], scheme=None))
    assert values(scores) == {"accuracy": 0.5}


def test_the_signature_says_what_was_counted():
    first, second = (
        tagging_scores(FOUND, data_of(GOLD, unknown=[1]))[0],
        tagging_scores(GOLD, data_of(GOLD, unknown=[1]))[0],
    )
    assert first.signature.startswith("examples:3|tokens:7|unknown:1|scheme:iob2|ci:bootstrap-1000")
    assert "match:exact|average:micro" in first.signature
    assert better(second, first)


def test_nothing_to_count_is_zero_as_conlleval_has_it():
    scores = values(tagging_scores([["O"]], data_of([["O"]])))
    assert scores == {"span_f1": 0.0, "span_precision": 0.0, "span_recall": 0.0, "accuracy": 1.0}
    assert values(tagging_scores([["B-X"]], data_of([["O"]])))["span_precision"] == 0.0


def test_by_label_and_by_tag():
    labels = by_label(GOLD, FOUND)
    assert labels["PER"] == {"precision": 1.0, "recall": 1.0, "f1": 1.0, "count": 1}
    assert labels["ORG"] == {"precision": 0.0, "recall": 0.0, "f1": 0.0, "count": 1}
    assert labels["LOC"]["count"] == 1
    tags = by_tag([["N", "N", "V"]], [["N", "V", "V"]])
    assert tags["N"] == {"precision": 1.0, "recall": 0.5, "f1": pytest.approx(2 / 3), "count": 2}


def test_the_commonest_mistakes_come_first():
    assert confusions([["N", "N", "V", "N"]], [["V", "V", "N", "N"]]) == [
        {"gold": "N", "predicted": "V", "count": 2},
        {"gold": "V", "predicted": "N", "count": 1},
    ]


def random_tags(generator: np.random.Generator, lengths: np.ndarray) -> list[list[str]]:
    names = np.array(["O", "O", *(f"{p}-{label}" for p in "BIES" for label in ("PER", "LOC"))])
    flat = names[generator.integers(len(names), size=lengths.sum())].tolist()
    ends = np.cumsum(lengths).tolist()
    return [flat[end - n : end] for end, n in zip(ends, lengths.tolist(), strict=True)]


@pytest.mark.row("N7")
def test_spans_and_scores_equal_seqeval_on_thirty_thousand_pairs():
    """Tags are drawn at random, so most sequences break every scheme."""
    seqeval = pytest.importorskip("seqeval.metrics.sequence_labeling")
    generator = np.random.default_rng(0)
    lengths = generator.integers(1, 8, size=30_000)
    gold, found = random_tags(generator, lengths), random_tags(generator, lengths)
    for tags in gold:
        expected = [(start, end + 1, label) for label, start, end in seqeval.get_entities(tags)]
        assert [tuple(span) for span in spans(tags)] == expected
    right, ours, theirs = span_counts(gold, found)
    for rows in (slice(start, start + 10_000) for start in range(0, 30_000, 10_000)):
        hits, predicted, real = (int(part[rows].sum()) for part in (right, ours, theirs))
        measures = seqeval.precision_recall_fscore_support(
            gold[rows], found[rows], average="micro", zero_division=0
        )
        assert measures[0] == pytest.approx(hits / predicted, abs=1e-12)
        assert measures[1] == pytest.approx(hits / real, abs=1e-12)
        assert measures[2] == pytest.approx(2 * hits / (predicted + real), abs=1e-12)
    labels = by_label(gold[:5_000], found[:5_000])
    report = seqeval.classification_report(gold[:5_000], found[:5_000], output_dict=True)
    for label in ("PER", "LOC"):
        assert labels[label]["f1"] == pytest.approx(report[label]["f1-score"], abs=1e-12)
        assert labels[label]["count"] == report[label]["support"]
    assert right_words(gold, found).mean() == pytest.approx(
        seqeval.accuracy_score(gold, found), abs=1e-12
    )
