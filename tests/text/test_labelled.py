"""Labelled texts are read in every form, and what is wrong is named by file and line."""

import gzip
import re

import pytest

from unrolled.errors import DataError
from unrolled.text.corpus import read_lines
from unrolled.text.labelled import Example, read_examples


def read(text, name="data.tsv"):
    return read_examples(text.split("\n"), source=name)


def test_a_label_a_tab_and_a_text():
    assert read("spam\tbuy  now\nham\tsee you\n") == [
        Example(("spam",), "buy  now", 1),
        Example(("ham",), "see you", 2),
    ]


def test_labels_keep_their_inner_spaces_and_lose_the_outer_ones():
    assert read(" New York \t text \n")[0] == Example(("New York",), "text", 1)


def test_blank_lines_are_passed_over_and_empty_texts_are_not():
    assert read("\na\t\n  \nb\tx\n") == [Example(("a",), "", 2), Example(("b",), "x", 4)]


def test_several_labels_are_parted_by_a_bar_and_counted_once():
    assert read("a|b| a\tx")[0].labels == ("a", "b")


@pytest.mark.parametrize("header", ["text\tid\tlabel", "Text\tID\tLabels"])
def test_a_header_names_the_columns(header):
    assert read(f"{header}\nhello\t7\tham\n") == [Example(("ham",), "hello", 2)]


def test_csv_may_hold_commas_quotes_and_line_ends():
    text = 'label,text\nspam,"buy, ""now"""\nham,"two\nlines"\nham,last\n'
    assert read(text, "data.csv") == [
        Example(("spam",), 'buy, "now"', 2),
        Example(("ham",), "two\nlines", 3),
        Example(("ham",), "last", 5),
    ]


def test_csv_without_a_header_is_label_and_text():
    assert read("spam,buy\n", "data.csv") == [Example(("spam",), "buy", 1)]


def test_json_has_one_label_or_a_list_of_them():
    text = '{"label": "spam", "text": "buy", "id": 3}\n\n{"labels": ["a", 2], "text": "é"}\n'
    text += '{"labels": [], "text": ""}'
    assert read(text, "data.jsonl") == [
        Example(("spam",), "buy", 1),
        Example(("a", "2"), "é", 3),
        Example((), "", 4),
    ]


@pytest.mark.parametrize("name", ["d.jsonl", "d.JSONL", "d.jsonl.gz", "a.b/d.ndjson.xz"])
def test_the_name_says_how_a_file_is_written(name):
    assert read('{"label": 1, "text": "x"}', name) == [Example(("1",), "x", 1)]


def test_latin_1_is_read_by_its_name_and_refused_without(tmp_path):
    path = tmp_path / "data.tsv.gz"
    path.write_bytes(gzip.compress("a\tcafé\n".encode("latin-1")))
    lines = read_lines(path, encoding="latin-1")
    assert read_examples(lines, source=path) == [Example(("a",), "café", 1)]
    with pytest.raises(DataError, match=r"line 1, column 6: byte 0xe9 is not valid utf-8"):
        read_examples(read_lines(path), source=path)


@pytest.mark.parametrize(
    ("name", "text", "line", "message"),
    [
        ("d.tsv", "a\tx\nb x\n", 2, "has 1 column, but must have 2: the label, a tab, the text."),
        ("d.tsv", "a\tx\ty\n", 1, "has 3 columns, but must have 2: the label, a tab, the text."),
        ("d.tsv", "text\tid\tlabel\nx\ta\n", 2, "has 2 columns, but must have 3."),
        ("d.tsv", "a\tx\n\ty\n", 2, "the label is '', but there must be one before the text"),
        ("d.tsv", "a||b\ty\n", 1, "the label is 'a||b', but there must be one before the text"),
        ("d.csv", "label,text\na,b,c\n", 2, "has 3 columns, but must have 2: the label, a comma"),
        ("d.csv", 'a,x\nb,"y\nz', 2, "the row that begins here is not valid CSV"),
        ("d.jsonl", '{"label": "a", "text": "x"}\n{', 2, "is not valid JSON: Expecting property"),
        ("d.jsonl", '["a", "x"]', 1, "holds ['a', 'x'], but must be an object: {…}"),
        ("d.jsonl", '{"label": "a", "text": 3}', 1, 'must be an object whose "text" is a string'),
        ("d.jsonl", '{"text": "x"}', 1, 'must have either a "label" or a list of "labels"'),
        (
            "d.jsonl",
            '{"label": "a", "labels": ["a"], "text": "x"}',
            1,
            'must have either a "label"',
        ),
        ("d.jsonl", '{"labels": "a", "text": "x"}', 1, "but has {'labels': 'a'}"),
        ("d.jsonl", '{"label": true, "text": "x"}', 1, "the label is True, but must be a string"),
        ("d.jsonl", '{"labels": ["a", " "], "text": "x"}', 1, "the label is ' ', but must be"),
    ],
)
def test_what_is_wrong_is_named_by_file_and_line(name, text, line, message):
    with pytest.raises(DataError, match=re.escape(message)) as error:
        read(text, name)
    assert (error.value.path, error.value.line) == (name, line)


def test_json_nested_beyond_measure_is_an_error_and_no_crash():
    with pytest.raises(DataError, match=r"d\.jsonl, line 1: is not valid JSON"):
        read("[" * 200_000, "d.jsonl")


def test_a_file_without_examples_is_refused():
    with pytest.raises(DataError, match="holds no example, but there must be some"):
        read("\n \n")
