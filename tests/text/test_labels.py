import json

import numpy as np
import pytest

from unrolled.errors import DataError
from unrolled.text.labelled import Example
from unrolled.text.labels import MAX_LABELS, Labels


def examples(*labels):
    return [Example(tuple(own), "x", line) for line, own in enumerate(labels, 1)]


def build(*labels, **options):
    return Labels.build(examples(*labels), source="train.tsv", **options)


def test_labels_are_sorted_and_counted():
    labels = build(["b"], ["a"], ["b"])
    assert labels == Labels(("a", "b"), (1, 2), 3, multi_label=False)
    assert labels.shares.tolist() == [1 / 3, 2 / 3]
    assert labels.targets(examples(["b"], ["a"]), source="d").tolist() == [1, 0]


@pytest.mark.parametrize("other", [[], ["a", "b"]])
def test_an_example_with_no_label_or_two_makes_each_label_a_question(other):
    labels = build(["a"], ["b"], other)
    assert labels.multi_label
    targets = labels.targets(examples(["b", "a"], [], ["b"]), source="d")
    assert targets.tolist() == [[1, 1], [0, 0], [0, 1]]


def test_several_may_be_asked_for():
    assert build(["a"], ["a"], multi_label=True).targets(examples(["a"]), source="d").tolist() == [
        [1]
    ]


def test_labels_come_back_from_their_file():
    for labels in (build(["é"], ["b"]), build(["a", "b"], [])):
        assert Labels.from_json(labels.to_json()) == labels


def test_one_label_alone_is_refused():
    with pytest.raises(DataError, match=r"train.tsv: all 2 examples have the label 'a', but a"):
        build(["a"], ["a"])
    with pytest.raises(DataError, match="all 1 examples have no label"):
        build([])


def test_too_many_labels_are_refused():
    with pytest.raises(DataError, match=f"has {MAX_LABELS + 1} different labels, but at most"):
        build(*([str(number)] for number in range(MAX_LABELS + 1)))


def test_labels_that_training_did_not_have_stand_behind_the_others():
    rows = examples(["a"], ["d"], ["c"], ["d"])
    labels = build(["a"], ["b"])
    assert labels.unseen(rows) == ("c", "d")
    assert labels.targets(rows, source="dev.tsv").tolist() == [0, 3, 2, 3]
    several = build(["a", "b"], ["b"])
    assert several.targets(examples(["a", "c"], []), source="d").tolist() == [[1, 0, 1], [0, 0, 0]]


def test_a_file_with_other_labels_alone_is_refused():
    with pytest.raises(
        DataError, match=r"dev.tsv, line 1: has the labels \['c'\], but the training"
    ):
        build(["a"], ["b"]).targets(examples(["c"], ["c"]), source="dev.tsv")


def test_no_label_or_two_where_training_had_one_are_a_label_that_it_did_not_have():
    labels, rows = build(["a"], ["b"]), examples(["a", "b"], ["b"], [])
    assert labels.unseen(rows) == ("(none)", "a|b")
    assert labels.targets(rows, source="dev.tsv").tolist() == [3, 1, 2]
    with pytest.raises(DataError, match=r"dev.tsv, line 1: has the labels \['a\|b'\], but the"):
        labels.targets(rows[:1], source="dev.tsv")


SOUND = {"labels": ["a", "b"], "counts": [1, 2], "examples": 3, "several": False}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"labels": ["b", "a"]}, "in code point order, each once"),
        ({"labels": ["a", "a"]}, "in code point order, each once"),
        ({"labels": ["", "a"]}, "the labels must be strings"),
        ({"labels": []}, "a list of 1 to 10000 strings"),
        ({"counts": [1]}, "one count for each of 2 labels"),
        ({"counts": [1, 4]}, r"a count is 4, but must be in 1\.\.3"),
        ({"counts": [1, True]}, "a count is True"),
        ({"examples": 0}, "the number of examples is 0"),
        ({"several": 1}, "several is 1, but must be true or false"),
        ({"more": 1}, "the keys must be"),
    ],
)
def test_a_wrong_file_is_refused(change, message):
    with pytest.raises(ValueError, match=message):
        Labels.from_json(json.dumps(SOUND | change))


def test_targets_are_whole_numbers():
    assert build(["a"], ["b"]).targets(examples(["a"]), source="d").dtype == np.int64
