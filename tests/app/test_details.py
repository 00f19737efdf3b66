"""The table of labels and the commonest mistakes below a report."""

import json

import pytest

from unrolled.app.details import MOST_LABELS, mistakes, print_details, rate_lines
from unrolled.app.output import print_report
from unrolled.evaluate.metrics import Score
from unrolled.evaluate.report import Report

pytestmark = [pytest.mark.arithmetic, pytest.mark.slow]

TEXTS = "yes\tgood fine good\nno\tbad poor bad\nnot sure\twell hm well\n" * 8
TAGGED = "the DET\ncat NOUN\nran VERB\n\na DET\ndog NOUN\nsat VERB\n\n" * 10


def rates(count: int, precision: float = 0.5, recall: float = 0.25) -> dict[str, float]:
    return {"precision": precision, "recall": recall, "f1": 1 / 3, "count": count}


def printed(capsys, details) -> list[str]:
    print_details(details)
    return capsys.readouterr().out.splitlines()


def test_labels_by_count_and_the_five_commonest_mistakes(capsys):
    details = {
        "by_label": {"a": rates(2), "has spaces": rates(1000, 1.0, 0.0), "b": rates(2)},
        "confusion": {
            "a": {"a": 99, "b": 3, "has spaces": 7},
            "b": {"a": 3, "has spaces": 1},
            "has spaces": {"has spaces": 5, "a": 1234, "b": 2},
        },
    }
    assert printed(capsys, details) == [
        "",
        "label       precision  recall     f1  count",
        "has spaces      1.000   0.000  0.333  1,000",
        "a               0.500   0.250  0.333      2",
        "b               0.500   0.250  0.333      2",
        "",
        "most frequent mistakes  count",
        "has spaces taken for a  1,234",
        "a taken for has spaces      7",
        "a taken for b               3",
        "b taken for a               3",
        "has spaces taken for b      2",
    ]


def test_a_taggers_list_of_mistakes_reads_the_same(capsys):
    listed = [{"gold": "NOUN", "predicted": "VERB", "count": n} for n in (4, 9)]
    assert mistakes({"confusions": listed}) == [("NOUN", "VERB", 9), ("NOUN", "VERB", 4)]
    lines = printed(capsys, {"by_tag": {"NOUN": rates(3)}, "confusions": listed[:1]})
    assert [line.split()[0] for line in lines if line] == ["tag", "NOUN", "most", "NOUN"]


@pytest.mark.parametrize(("kind", "name"), [("label", "by_label"), ("tag", "by_tag")])
def test_of_many_labels_the_most_frequent_are_shown_and_the_rest_is_said(capsys, kind, name):
    many = {f"l{n}": rates(n) for n in range(MOST_LABELS + 17)}
    lines = printed(capsys, {name: many})
    assert [line.split()[0] for line in lines[2:-1]] == [f"l{n}" for n in range(56, 16, -1)]
    assert lines[-1] == f"The 40 most frequent of 57 {kind}s; --json has all."
    few = {label: many[label] for label in list(many)[:MOST_LABELS]}
    assert len(printed(capsys, {name: few})) == 2 + MOST_LABELS


def test_a_label_that_could_not_be_seen_is_quoted():
    assert [line[0] for line in rate_lines({"": rates(2), "a\x1b[2J": rates(1)}, kind="label")] == [
        "label",
        "''",
        r"'a\x1b[2J'",
    ]


def test_a_report_without_details_ends_with_its_recipe(capsys):
    scores = [Score("perplexity", 9.0, 9.0, 9.0, "lines:1")]
    print_report(Report(scores, {"uniform": scores}), title="t")
    assert "recipe: lines:1" in capsys.readouterr().out.splitlines()[-2]
    assert printed(capsys, {"tags_not_in_training_data": {"X": 1}}) == []


def test_no_mistakes_no_table_of_them(capsys):
    lines = printed(capsys, {"by_label": {"a": rates(2)}, "confusion": {"a": {"a": 2}}})
    assert len(lines) == 3


@pytest.mark.parametrize(
    ("task", "text", "name", "head"),
    [("classify", TEXTS, "by_label", "label"), ("tag", TAGGED, "by_tag", "tag")],
)
def test_evaluate_prints_what_its_json_holds(call, tmp_path, task, text, name, head):
    data, out = tmp_path / f"data.{'tsv' if task == 'classify' else 'conll'}", tmp_path / "model"
    data.write_text(text)
    small = ["--threads=1", "--epochs=1", "--hidden-size=4", "--embedding-size=4"]
    assert call("train", task, f"--train={data}", f"--dev={data}", f"--out={out}", *small).code == 0
    stored = json.loads(call("evaluate", out, data, "--json").out)["details"][name]
    lines = call("evaluate", out, data).out.splitlines()
    start = next(n for n, line in enumerate(lines) if line.startswith(f"{head} "))
    shown = {line[:9].strip(): line[9:].split() for line in lines[start + 1 :][: len(stored)]}
    assert shown == {
        label: [f"{own[rate]:.3f}" for rate in ("precision", "recall", "f1")] + [str(own["count"])]
        for label, own in stored.items()
    }
