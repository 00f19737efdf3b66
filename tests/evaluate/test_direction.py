"""What is better is better by every measure: the right answers against some wrong ones."""

import numpy as np
import pytest

from unrolled.evaluate.labels import label_measures, label_scores
from unrolled.evaluate.perplexity import Counted, perplexity_measures, perplexity_scores
from unrolled.evaluate.score import LOWER_IS_BETTER, Score, better
from unrolled.evaluate.spans import span_counts, span_measures
from unrolled.evaluate.translation import translation_measures

pytestmark = pytest.mark.arithmetic

LOWER = {
    *("perplexity", "cross_entropy", "bits_per_character", "ece", "wer", "cer", "per"),
    *("backward_perplexity", "backward_cross_entropy", "backward_bits_per_character"),
}
HIGHER = {
    *("accuracy", "macro_f1", "micro_f1", "balanced_accuracy", "bleu", "chrf", "exact_match"),
    *("token_accuracy", "span_f1", "span_precision", "span_recall"),
}
COUNTED = {"examples": 6}


def of_labels(sure, targets):
    """Measures of a classifier that says the targets, as sure as that of each."""
    K = 1 + targets.max() if targets.ndim == 1 else targets.shape[1]
    right = np.eye(K)[targets] if targets.ndim == 1 else targets.astype(float)
    probabilities = sure * right + (1.0 - sure) * (1.0 - right)
    if targets.ndim == 1:
        probabilities /= probabilities.sum(axis=1, keepdims=True)
    measures = label_measures(probabilities, targets, counted=COUNTED, first="accuracy")
    scores = label_scores(probabilities, targets, counted=COUNTED)
    assert [m.score.name for m in measures] == [score.name for score in scores]
    return [*scores, *(measure.score for measure in measures)]


def of_lines(nats):
    surprise, tokens = np.full(4, nats), np.full(4, 5)
    counted = Counted(4, 20, 0, 80, "word", "line")
    scores = [
        s for p in ("", "backward_") for s in perplexity_scores(surprise, tokens, counted, prefix=p)
    ]
    return [*scores, *(m.score for m in perplexity_measures(surprise, tokens, [20] * 4, counted))]


def of_outputs(outputs):
    references = ["the cat sat on the mat", "a dog ran", "it is so", "no", "yes it is", "the end"]
    return [m.score for m in translation_measures(outputs, references, counted=COUNTED)]


def of_spans(tags):
    gold = [["B-X", "I-X", "O", "B-Y"], ["O", "B-X"]]
    return [m.score for m in span_measures(span_counts(gold, tags), "examples:2")]


RIGHT = ["the cat sat on the mat", "a dog ran", "it is so", "no", "yes it is", "the end"]
ONE, SEVERAL = (
    np.array([0, 1, 2, 0, 1, 2]),
    np.array([[1, 0], [0, 1], [1, 1], [0, 0], [1, 0], [0, 1]]),
)
PAIRS = {
    "labels": (of_labels(0.99, ONE), of_labels(0.01, ONE)),
    "multi-label": (of_labels(0.99, SEVERAL), of_labels(0.01, SEVERAL)),
    "lines": (of_lines(2.0), of_lines(9.0)),
    "outputs": (of_outputs(RIGHT), of_outputs(["a cat", "dog", "so it", "yes", "no", "the"])),
    "spans": (
        of_spans([["B-X", "I-X", "O", "B-Y"], ["O", "B-X"]]),
        of_spans([["B-X", "O", "O", "B-X"], ["O", "B-X"]]),
    ),
}


@pytest.mark.parametrize("kind", PAIRS)
def test_the_right_answers_are_better_by_every_measure(kind):
    for good, bad in zip(*PAIRS[kind], strict=True):
        assert better(good, bad), good
        assert not better(bad, good), bad


def test_every_measure_is_tried_and_an_old_score_gets_the_same_direction():
    scores = [score for pair in PAIRS.values() for scores in pair for score in scores]
    assert {score.name for score in scores} == LOWER | HIGHER
    for score in scores:
        assert score.higher_is_better == (score.name in HIGHER)
        old = {name: value for name, value in score._asdict().items() if name != "higher_is_better"}
        if score.name not in ("wer", "cer", "per"):  # which said so from the first
            assert Score.from_json(old).higher_is_better == score.higher_is_better
    assert {*LOWER_IS_BETTER} <= LOWER
