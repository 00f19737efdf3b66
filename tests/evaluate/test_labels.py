"""Scores of labels equal scikit-learn's, or what brute force gives."""

import math

import numpy as np
import pytest
from sklearn import metrics

from unrolled.evaluate.bootstrap import RESAMPLES, resamples
from unrolled.evaluate.labels import BINS, ONE, SEVERAL, Judged, label_scores
from unrolled.evaluate.score import better, named

pytestmark = pytest.mark.arithmetic


def one(seed, N=60, K=5, absent=True):
    """Random probabilities and labels; the last label neither occurs nor is likely."""
    generator = np.random.default_rng(seed)
    p = generator.random((N, K)) ** 3
    targets = generator.integers(K - absent, size=N)
    if absent:
        p[:, -1] = 0.0
    return p / p.sum(axis=1, keepdims=True), targets


def several(seed, N=60, K=4):
    generator = np.random.default_rng(seed)
    return generator.random((N, K)), generator.integers(2, size=(N, K))


def value(measures, name, p, targets):
    sums = Judged.of(p, targets).sums(np.ones((1, len(targets))))
    return float(measures[name](sums)[0])


@pytest.mark.parametrize("seed", range(20))
def test_scores_of_one_label_equal_scikit_learns(seed):
    p, true = one(seed, absent=seed % 2 == 0)
    said = p.argmax(axis=1)
    expected = {
        "accuracy": metrics.accuracy_score(true, said),
        "balanced_accuracy": metrics.recall_score(
            true, said, labels=np.unique(true), average="macro"
        ),
        "macro_f1": metrics.f1_score(true, said, average="macro"),
    }
    for name, number in expected.items():
        assert value(ONE, name, p, true) == pytest.approx(number, abs=1e-14)


@pytest.mark.parametrize("seed", range(20))
def test_scores_of_several_labels_equal_scikit_learns(seed):
    p, true = several(seed)
    said = (p >= 0.5).astype(int)
    expected = {
        "accuracy": metrics.accuracy_score(true, said),
        "macro_f1": metrics.f1_score(true, said, average="macro"),
        "micro_f1": metrics.f1_score(true, said, average="micro"),
    }
    for name, number in expected.items():
        assert value(SEVERAL, name, p, true) == pytest.approx(number, abs=1e-14)


def brute_ece(confidence, held):
    total = 0.0
    for number in range(BINS):
        low, high = number / BINS, (number + 1) / BINS
        rows = [
            i for i, c in enumerate(confidence) if low <= c < high or (c == 1.0 and high == 1.0)
        ]
        if rows:
            gap = np.mean([confidence[i] for i in rows]) - np.mean([held[i] for i in rows])
            total += len(rows) / len(confidence) * abs(gap)
    return total


@pytest.mark.parametrize("seed", range(10))
def test_calibration_error_equals_brute_force(seed):
    p, true = one(seed)
    held = (p.argmax(axis=1) == true).tolist()
    assert value(ONE, "ece", p, true) == pytest.approx(brute_ece(p.max(axis=1), held), abs=1e-14)
    p, true = several(seed)
    expected = brute_ece(p.ravel(), true.ravel())
    assert value(SEVERAL, "ece", p, true) == pytest.approx(expected, abs=1e-14)


def test_certainty_is_calibrated_if_right_and_the_worst_if_wrong():
    sure = np.eye(2)[[0, 1, 0]]
    assert value(ONE, "ece", sure, np.array([0, 1, 0])) == 0.0
    assert value(ONE, "ece", sure, np.array([1, 0, 1])) == 1.0


def test_intervals_are_those_of_resampled_texts():
    p, true = one(1, N=200)
    said = p.argmax(axis=1)
    generator = np.random.default_rng(0)
    values = []
    for _ in range(RESAMPLES):
        rows = generator.integers(200, size=200)
        t, s = true[rows], said[rows]
        labels = set(t) | set(s)
        values.append(
            np.mean(
                [
                    2 * ((t == k) & (s == k)).sum() / ((t == k).sum() + (s == k).sum())
                    for k in labels
                ]
            )
        )
    score = named(label_scores(p, true, counted={"examples": 200}), "macro_f1")
    low, high = np.quantile(values, [0.025, 0.975])
    assert (score.low, score.high) == (pytest.approx(low), pytest.approx(high))


def test_resamples_come_in_pieces_that_change_nothing(monkeypatch):
    whole = np.concatenate(list(resamples(30)))
    monkeypatch.setattr("unrolled.evaluate.bootstrap.NUMBERS_AT_ONCE", 100)
    pieces = list(resamples(30))
    assert len(pieces) > 300
    np.testing.assert_array_equal(np.concatenate(pieces), whole)
    assert whole.shape == (RESAMPLES, 30)
    assert (whole.sum(axis=1) == 30).all()


def test_the_measure_asked_for_comes_first_and_scores_say_what_they_counted():
    p, true = one(0)
    scores = label_scores(p, true, counted={"examples": 60, "labels": 5}, first="balanced_accuracy")
    assert [s.name for s in scores] == ["balanced_accuracy", "accuracy", "macro_f1", "ece"]
    assert {"examples:60", "labels:5", "bins:15"} <= set(scores[0].signature.split("|"))
    assert all(s.low <= s.value <= s.high and math.isfinite(s.value) for s in scores)


def test_a_lower_calibration_error_and_a_higher_accuracy_are_better():
    p, true = one(0)
    mine = label_scores(np.eye(5)[true], true, counted={"examples": 60})
    other = label_scores(p, true, counted={"examples": 60})
    for name in ("accuracy", "ece", "macro_f1", "balanced_accuracy"):
        assert better(named(mine, name), named(other, name))
