"""Labelled texts are read in every form, and what is wrong is named by file and line."""

import gzip
import re

import pytest

from unrolled.config.data import LabelledTexts
from unrolled.errors import DataError
from unrolled.text.corpus import read_lines
from unrolled.text.labelled import Example, check_labels, read_examples, read_labelled


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


# ------------------------------------------------------------------ columns that are found or named


def labelled(text, name="d.csv", **data):
    return read_labelled(text.split("\n"), source=name, data=LabelledTexts(**data))


@pytest.mark.parametrize(
    ("text", "columns"),
    [
        ("review,sentiment\nx y,a\n", ("review", "sentiment")),
        ("Category;Id;Sentence\na;1;x y\n", ("Sentence", "Category")),
        ("title|text|target\nt|x y|a\n", ("text", "target")),
        ("label,text\na,x y\n", ("text", "label")),
        ("a,x y\nb,z\n", ("2", "1")),
        ("x y,a\nz w,b\nv u,a\n", ("1", "2")),
    ],
)
def test_columns_are_found_by_usual_names_and_by_different_values(text, columns):
    found = labelled(text)
    assert found.columns == columns
    assert found.examples[0].text == "x y"
    assert found.examples[0].labels == ("a",)


def test_a_table_of_many_columns_without_usual_names():
    rows = [f"{n},{'ab'[n % 2]},a text of number {n}" for n in range(20)]
    assert labelled("\n".join(rows)).columns == ("3", "2")
    found = labelled("\n".join(["nr,kind of,what it says", *rows]))
    assert found.columns == ("3", "2")
    found = labelled("\n".join(["nr,kind,words", *rows]))
    assert found.columns == ("words", "kind")
    assert len(found.examples) == 20


def test_settings_name_columns_and_are_kept_where_they_are_not_the_usual_ones():
    text = "a,b,c\nx,1,u\ny,2,u\n"
    found = labelled(text, text_column="a", label_column="C")
    assert found.examples == [Example(("u",), "x", 2), Example(("u",), "y", 3)]
    kept = found.settled(LabelledTexts())
    assert (kept.text_column, kept.label_column) == ("a", "c")
    numbers = labelled("x,1,u\ny,2,v\n", text_column=1, label_column=3)
    assert numbers.settled(LabelledTexts()) == LabelledTexts(text_column="1", label_column="3")
    usual = LabelledTexts()
    assert labelled("label,text\na,x\n").settled(usual) == usual
    assert labelled("a\tx\nb\ty\n", "d.txt").settled(usual) == usual
    with pytest.raises(DataError, match=r"line 1: there is no column 'z' for the labels, but"):
        labelled(text, label_column="z")
    with pytest.raises(DataError, match=r"line 1: there is no column '7' for the texts, but"):
        labelled(text, text_column=7)
    with pytest.raises(DataError, match="column 2 is named for both texts and labels"):
        labelled("x,1\ny,2\n", text_column=2, label_column=2)


def test_fasttext_lines_and_json_arrays():
    found = labelled("__label__a __label__b x  y\n\n__label__c z", "d.txt")
    assert found.examples == [Example(("a", "b"), "x y", 1), Example(("c",), "z", 3)]
    assert found.columns is None
    with pytest.raises(DataError, match=r"d\.txt, line 2: must begin with a label"):
        labelled("__label__a x\ny", "d.txt")
    text = '[{"review": "x", "stars": 5},\n {"review": "y", "stars": 1}]'
    found = labelled(text, "d.json")
    assert found.examples == [Example(("5",), "x", 1), Example(("1",), "y", 2)]
    assert found.columns == ("review", "stars")


def test_a_file_in_which_every_row_has_its_own_label_is_refused_with_what_was_read():
    found = labelled("\n".join(f"{n}\ttext {n % 3}" for n in range(30)), "d.tsv")
    message = (
        "d.tsv: has 30 different labels in 30 rows, so these are hardly labels. Read were labels "
        "from column 1 (first '0') and texts from column 2 (first 'text 0')."
    )
    with pytest.raises(DataError, match=re.escape(message)):
        check_labels(found, "d.tsv")
    check_labels(labelled("\n".join(f"{n % 15}\tx" for n in range(30)), "d.tsv"), "d.tsv")
    check_labels(labelled("a\tx\nb\ty\n", "d.tsv"), "d.tsv")


@pytest.mark.parametrize("cell", ['"text": "\\ud800"', '"text": "x", "more": ["\\udfff"]'])
def test_half_a_character_is_named_by_file_and_line(cell):
    text = '{"label": "a", "text": "x"}\n{"label": "a", ' + cell + "}"
    with pytest.raises(DataError, match=r"d\.jsonl, line 2: holds half of a character"):
        read(text, "d.jsonl")
