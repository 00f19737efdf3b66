"""Pictures in numbers: they add up to the scores that they explain."""

import json

import numpy as np
import pytest

from unrolled.errors import ConfigError
from unrolled.evaluate.labels import label_measures
from unrolled.evaluate.views import (
    MOST_LABELS,
    MOST_TOKENS,
    OTHERS,
    ByLength,
    Confusion,
    Reliability,
    loss_of_run,
    surprise_of,
)

pytestmark = pytest.mark.arithmetic
GENERATOR = np.random.default_rng(1)
PROBABILITIES = GENERATOR.dirichlet([1, 1, 1], size=200)
TARGETS = GENERATOR.integers(3, size=200)
MEASURES = {
    measure.score.name: measure
    for measure in label_measures(
        PROBABILITIES, TARGETS, counted={"examples": 200}, first="accuracy"
    )
}


def test_bins_of_confidence_add_up_to_the_calibration_error():
    rows = Reliability.of({"model": PROBABILITIES}, TARGETS).bins["model"]
    off = sum(count * abs(confidence - right) for confidence, right, count in rows) / 200
    assert off == pytest.approx(MEASURES["ece"].score.value, rel=1e-12)
    assert sum(count for *_, count in rows) == 200


def test_several_labels_are_bins_of_every_yes():
    targets = (GENERATOR.random((50, 2)) < 0.5).astype(np.int64)
    found = Reliability.of({"model": GENERATOR.random((50, 2))}, targets)
    assert sum(row["count"] for row in found.as_json()["model"]) == 100
    assert found.chart().to_dict()


def test_scores_by_length_are_those_of_the_examples_of_that_length():
    lengths = GENERATOR.integers(1, 40, size=200)
    found = ByLength.of(MEASURES["accuracy"], lengths, unit="tokens")
    assert sum(found.counts) == 200
    assert found.lengths == sorted(found.lengths)
    whole = sum(n * s.value for n, s in zip(found.counts, found.scores, strict=True)) / 200
    assert whole == pytest.approx(MEASURES["accuracy"].score.value, rel=1e-12)
    alone = ByLength.of(MEASURES["accuracy"], np.full(200, 7), unit="tokens")
    assert alone.counts == [200]
    assert alone.scores[0] == pytest.approx(tuple(MEASURES["accuracy"].score[1:4]), rel=1e-12)
    assert "tokens, mean" in found.text()


def test_a_table_of_mistakes_counts_pairs_and_puts_rare_labels_together():
    pairs = [("a", "a"), ("a", "b"), ("b", "b"), ("a", "b")]
    found = Confusion.of(pairs)
    assert found.as_json() == {"labels": ["a", "b"], "counts": [[1, 2], [0, 1]]}
    many = [(f"t{k:02d}", f"t{k % 7:02d}") for k in range(MOST_LABELS + 9) for _ in range(99 - k)]
    found = Confusion.of(many)
    assert found.labels[-1] == OTHERS
    assert len(found.labels) == MOST_LABELS + 1
    assert found.counts.sum() == len(many)
    assert found.chart().to_dict()


def rows(folder, *lines):
    (folder / "metrics.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    return folder


def test_the_losses_of_a_run_are_read_from_its_rows(tmp_path):
    steps = [{"step": k, "loss": 10.0 - k} for k in range(1, 5)]
    judged = [{"step": 2, "epoch": 1, "dev_loss": 0.5}, {"step": 4, "epoch": 2, "dev_loss": 0.4}]
    run = rows(tmp_path, {"lines": 3}, *steps[:2], judged[0], *steps[2:], judged[1])
    found = loss_of_run(run, same_unit=False)
    assert [line.split() for line in found.text().splitlines()[1:]] == [
        ["2", "8.500", "0.5000"],
        ["4", "6.500", "0.4000"],
    ]
    assert len(found.chart().to_dict()["vconcat"]) == 2
    alone = loss_of_run(rows(tmp_path, {"lines": 3}, *steps), same_unit=False)
    assert alone.text().splitlines()[1].split() == ["4", "6.000"]
    assert "vconcat" not in alone.chart().to_dict()
    run = rows(tmp_path, {"lines": 3}, *steps[:2], judged[0], *steps[2:], judged[1])
    assert "vconcat" not in loss_of_run(run, same_unit=True).chart().to_dict()


def test_a_folder_without_steps_is_refused_with_the_reason(tmp_path):
    with pytest.raises(ConfigError, match=r"has no metrics\.jsonl that can be read"):
        loss_of_run(tmp_path, same_unit=True)
    with pytest.raises(ConfigError, match="holds no step yet"):
        loss_of_run(rows(tmp_path, {"lines": 3}), same_unit=True)


def test_as_much_of_a_text_as_a_picture_holds():
    found = surprise_of(["a"] * 2000, [0.5] * 2000)
    assert len(found.tokens) == len(found.nats) == MOST_TOKENS
