"""The table of labels and the commonest mistakes below a report."""

import pytest

from unrolled.evaluate.details import MOST_LABELS, detail_tables, mistakes, rate_lines
from unrolled.evaluate.report import Report
from unrolled.evaluate.score import Score

pytestmark = [pytest.mark.arithmetic, pytest.mark.slow]


def rates(count: int, precision: float = 0.5, recall: float = 0.25) -> dict[str, float]:
    return {"precision": precision, "recall": recall, "f1": 1 / 3, "count": count}


def shown(details) -> list[str]:
    return "\n\n".join(detail_tables(details)).splitlines()


def test_labels_by_count_and_the_five_commonest_mistakes():
    details = {
        "by_label": {"a": rates(2), "has spaces": rates(1000, 1.0, 0.0), "b": rates(2)},
        "confusion": {
            "a": {"a": 99, "b": 3, "has spaces": 7},
            "b": {"a": 3, "has spaces": 1},
            "has spaces": {"has spaces": 5, "a": 1234, "b": 2},
        },
    }
    assert shown(details) == [
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


def test_a_taggers_list_of_mistakes_reads_the_same():
    listed = [{"gold": "NOUN", "predicted": "VERB", "count": n} for n in (4, 9)]
    assert mistakes({"confusions": listed}) == [("NOUN", "VERB", 9), ("NOUN", "VERB", 4)]
    lines = shown({"by_tag": {"NOUN": rates(3)}, "confusions": listed[:1]})
    assert [line.split()[0] for line in lines if line] == ["tag", "NOUN", "most", "NOUN"]


@pytest.mark.parametrize(("kind", "name"), [("label", "by_label"), ("tag", "by_tag")])
def test_of_many_labels_the_most_frequent_are_shown_and_the_rest_is_said(kind, name):
    many = {f"l{n}": rates(n) for n in range(MOST_LABELS + 17)}
    lines = shown({name: many})
    assert [line.split()[0] for line in lines[1:-1]] == [f"l{n}" for n in range(56, 16, -1)]
    assert lines[-1] == f"The 40 most frequent of 57 {kind}s; --json has all."
    few = {label: many[label] for label in list(many)[:MOST_LABELS]}
    assert len(shown({name: few})) == 1 + MOST_LABELS


def test_a_label_that_could_not_be_seen_is_quoted():
    assert [line[0] for line in rate_lines({"": rates(2), "a\x1b[2J": rates(1)}, kind="label")] == [
        "label",
        "''",
        r"'a\x1b[2J'",
    ]


def test_a_report_without_details_ends_with_its_recipe():
    scores = [Score("perplexity", 9.0, 9.0, 9.0, "lines:1", False)]
    report = Report(scores, {"uniform": scores})
    assert "recipe: lines:1" in report.text().splitlines()[-2]
    assert shown({"some_other_detail": {"X": 1}}) == []


def test_what_training_did_not_have_is_told_with_how_often():
    told = "Not in the training data, so always counted as wrong: {}."
    assert shown({"tags_not_in_training_data": {"X": 1}}) == [told.format("1 tag, X (1)")]
    many = {f"l{n:02d}": n for n in range(1, 13)}
    (line,) = shown({"labels_not_in_training_data": many})
    assert line.startswith(told.format("12 labels, l01 (1), l02 (2)")[:-1])
    assert line.endswith("l10 (10) ….")


def test_no_mistakes_no_table_of_them():
    lines = shown({"by_label": {"a": rates(2)}, "confusion": {"a": {"a": 2}}})
    assert len(lines) == 2
