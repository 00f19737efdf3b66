import numpy as np
import pytest
import torch
from sklearn import metrics

from unrolled.config import settings_for
from unrolled.evaluate.score import named
from unrolled.tasks.classify.data import Examples, LabelledData
from unrolled.tasks.classify.model import ClassifyModel
from unrolled.tasks.classify.report import (
    by_label,
    confusion,
    dev_measure,
    evaluate_labelled,
    mean_nats,
)
from unrolled.tasks.classify.settings import ClassifyRun
from unrolled.text.labelled import read_examples
from unrolled.text.labels import Labels

pytestmark = pytest.mark.arithmetic

ONE = Labels(("a", "b", "c"), (3, 2, 1), 6, multi_label=False)
SEVERAL = Labels(("a", "b", "c"), (3, 2, 1), 6, multi_label=True)
LINES = ["a\tx y", "b\ty", "c\tz", "a\tx"]


def model(labels=ONE, **settings):
    small = {"model.hidden_size": 4, "model.embedding_size": 4}
    run = settings_for(ClassifyRun, overrides=small | settings)
    built = ClassifyModel.build(run, labels, ["x y z"])
    built.network.eval()
    return built


def data(built, lines=LINES):
    examples = Examples(read_examples(lines, source="d.tsv"), "d.tsv", {})
    return LabelledData.of(built.labels, built.reader, examples)


def evaluated(built, lines=LINES):
    return evaluate_labelled(built, data(built, lines))


def dev_cost(built, held):
    return dev_measure(built, held).cost


def chances(seed=0, N=50):
    generator = np.random.default_rng(seed)
    return generator.random((N, 3)), generator.integers(3, size=N)


def test_the_confusion_table_equals_scikit_learns():
    p, true = chances()
    expected = metrics.confusion_matrix(true, p.argmax(axis=1))
    table = confusion(p, true, ONE.names)
    for i, row in enumerate("abc"):
        assert [table[row].get(column, 0) for column in "abc"] == expected[i].tolist()


def test_rates_of_each_label_equal_scikit_learns():
    p, true = chances(1)
    precision, recall, f1, count = metrics.precision_recall_fscore_support(true, p.argmax(axis=1))
    for k, rates in enumerate(by_label(p, true, ONE.names).values()):
        expected = {"precision": precision[k], "recall": recall[k], "f1": f1[k], "count": count[k]}
        assert rates == pytest.approx(expected)


def test_a_report_has_scores_baselines_and_what_lies_behind_them():
    report = evaluated(model())
    assert report.scores[0].name == "accuracy"
    assert named(report.baselines["majority"], "accuracy").value == 0.5
    assert set(report.details) == {"by_label", "confusion"}
    assert sum(sum(row.values()) for row in report.details["confusion"].values()) == 4
    parts = report.scores[0].signature.split("|")
    assert {"examples:4", "tokens:5", "unknown:0", "labels:3", "level:word"} <= set(parts)


def test_a_balanced_model_is_judged_by_balanced_accuracy():
    report = evaluated(model(**{"model.class_weights": "balanced"}))
    assert report.scores[0].name == "balanced_accuracy"


def test_several_labels_have_no_confusion_table():
    report = evaluated(model(SEVERAL), [*LINES, "a|b\tx z"])
    assert [score.name for score in report.scores] == ["accuracy", "macro_f1", "micro_f1", "ece"]
    assert set(report.details) == {"by_label"}
    assert report.details["by_label"]["a"]["count"] == 3


def test_labels_that_training_did_not_have_count_as_wrong_and_are_told():
    built = model()
    rows = ["a\tx", "d\ty", "b\tz", "e\tx", "d\tx"]
    report = evaluated(built, rows)
    true = [row[0] for row in rows]
    said = [p.labels[0] for p in built.predict([row[2:] for row in rows])]
    scores = {score.name: score.value for score in report.scores}
    assert scores["accuracy"] == pytest.approx(metrics.accuracy_score(true, said), abs=1e-12)
    macro = metrics.f1_score(true, said, average="macro")
    assert scores["macro_f1"] == pytest.approx(macro, abs=1e-12)
    assert report.details["labels_not_in_training_data"] == {"d": 2, "e": 1}
    assert "counted as wrong: 2 labels, d (2), e (1)." in report.text()
    assert "not in" not in evaluated(built, rows[:1]).text().lower()


def test_the_loss_leaves_out_labels_that_training_did_not_have():
    built = model()
    some = mean_nats(built, data(built, ["a\tx", "b\tz"]))
    assert mean_nats(built, data(built, ["a\tx", "d\ty", "b\tz"])) == pytest.approx(some)


# ------------------------------------------------------------------ what chooses the best epoch


def said(built, *biases):
    """A model that says the same of every text: the softmax of these numbers."""
    with torch.no_grad():
        built.network.weight.zero_()
        built.network.bias.copy_(torch.tensor(biases))
    return built


@pytest.mark.parametrize(("weights", "wrong"), [("none", 2 / 4), ("balanced", 2 / 3)])
def test_an_epoch_is_judged_by_what_it_gets_wrong_and_then_by_nats(weights, wrong):
    built = said(model(**{"model.class_weights": weights}), 2.0, 0.0, 0.0)
    held = data(built)
    loss = dev_cost(built, held)
    assert wrong < loss < wrong + 0.001
    sure = dev_cost(said(built, 9.0, 0.0, 0.0), held)  # as often wrong, but surer of it
    assert loss < sure < wrong + 0.001


def test_fewer_mistakes_count_for_more_than_any_nats():
    built = said(model(), 99.0, 0.0, 0.0)
    held = data(built)
    sure, nats = dev_cost(built, held), mean_nats(built, held)
    said(built, 0.0, 0.1, 0.0)
    assert mean_nats(built, held) < nats
    assert dev_cost(built, held) > sure


def test_nats_of_one_and_of_several_labels():
    biases = np.array([2.0, 0.0, -1.0])
    built = said(model(), *biases)
    log_p = biases - np.log(np.exp(biases).sum())
    assert mean_nats(built, data(built)) == pytest.approx(-log_p[[0, 1, 2, 0]].mean(), rel=1e-6)
    built = said(model(SEVERAL), *biases)
    p, true = 1 / (1 + np.exp(-biases)), np.eye(3)[[0, 1, 2, 0]]
    expected = -np.log(np.where(true > 0, p, 1 - p)).mean()
    assert dev_cost(built, data(built)) == pytest.approx(expected, rel=1e-6)
