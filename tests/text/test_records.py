"""Records as they stood, with answers beside them."""

import csv
import json
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from unrolled.errors import DataError
from unrolled.text.columns import text_wanted
from unrolled.text.formats import Layout
from unrolled.text.records import RowRecord, json_objects, table_rows
from unrolled.text.texts import read_texts

CSV, TSV, JSON = Layout("csv", ",", quoted=True), Layout("tsv"), Layout("json")
ADDED = {"predicted_label": "a, b", "probability": 0.25}


def texts(lines, layout, column=None, place=1):
    return list(read_texts(lines, layout, text_wanted(column, place=place), source="d"))


def test_a_row_gets_further_cells_and_its_header_their_names():
    rows = ["id,text", '1,"x, ""y""', 'z"', "2,w"]
    (first, record), (second, _) = texts(rows, CSV)
    assert (first, second, record.line) == ('x, "y"\nz', "w", 2)
    assert record.heading(list(ADDED)) == "id,text,predicted_label,probability"
    assert record.beside(ADDED) == '1,"x, ""y""\nz","a, b",0.2500'
    assert record.as_json() == {"id": "1", "text": 'x, "y"\nz'}


def test_a_line_gets_columns_behind_a_tab_and_an_object_gets_keys():
    ((text, line),) = texts(["a b"], Layout("text"))
    assert (text, line.heading(["x"]), line.beside(ADDED)) == ("a b", "", "a b\ta, b\t0.2500")
    ((text, found),) = texts(['{"text": "é", "n": [1]}'], Layout("jsonl"))
    assert text == "é"
    assert json.loads(found.beside(ADDED)) == {"text": "é", "n": [1], **ADDED}
    assert json.loads(found.beside({"perplexity": math.inf}))["perplexity"] is None
    ((text, line),) = texts(["__label__x a b"], Layout("fasttext"))
    assert (text, line.beside({"l": "y"})) == ("a b", "__label__x a b\ty")


def test_the_text_is_the_only_column_the_second_of_two_or_the_one_that_is_named():
    assert [text for text, _ in texts(["a", "b"], TSV)] == ["a", "b"]
    assert [text for text, _ in texts(["x\ta", "y\tb"], TSV)] == ["a", "b"]
    assert [text for text, _ in texts(["x\ta", "y\tb"], TSV, place=0)] == ["x", "y"]
    assert [text for text, _ in texts(["x\ta\t1", "y\tb\t2"], TSV, "1")] == ["x", "y"]
    assert [text for text, _ in texts(["id\tReview", "1\tb"], TSV, "review")] == ["b"]
    with pytest.raises(DataError, match=r"d, line 1: no column is named as one of texts is, but"):
        texts(["x\ta\t1"], TSV)
    with pytest.raises(DataError, match=r"d, line 1: there is no column 'body' for the texts, but"):
        texts(["x\ta"], TSV, "body")
    with pytest.raises(DataError, match=r"d, line 2: has 1 column, but the first row has 2\. Mend"):
        texts(["x\ta", "b"], TSV)


cells = st.text(st.characters(exclude_characters="\0\r", exclude_categories=["Cs"]), max_size=8)
tables = st.lists(st.lists(cells, min_size=2, max_size=2), min_size=1, max_size=5)


@given(tables, st.sampled_from([",", ";", "\t", "|"]))
def test_what_is_written_beside_a_row_is_read_back(rows, separator):
    layout = Layout("csv", separator, quoted=True)
    records = [RowRecord(row, 1, layout) for row in rows]
    written = "\n".join(record.beside({"p": "é"}) for record in records)
    lines = written.split("\n")
    read = [row for _, row in table_rows(lines, layout, source="d")]
    assert read == [[*row, "é"] for row in rows]
    assert read == [r for r in csv.reader([f"{x}\n" for x in lines], delimiter=separator) if r]


def test_cells_may_be_long():
    row = f'a,"{"x" * 200_000}"'
    assert [len(cells[1]) for _, cells in table_rows([row], CSV, source="d")] == [200_000]


@pytest.mark.parametrize(
    ("lines", "line", "message"),
    [
        (["["], 1, "Expecting value"),
        (["[", "{}", "{}]"], 3, ", or ] is missing here"),
        (["[", "{},", "", '{"a": }]'], 4, "Expecting value"),
        (["[{}", "]", "x"], 3, "there is more behind the end of the array"),
        (["[", "{},", "3]"], 3, "holds 3, but must be an object"),
        (['[{"a": "\\ud800"}]'], 1, r"half of a character \(a lone surrogate"),
        (["[" * 100_000], 1, "."),
    ],
)
def test_what_is_wrong_with_an_array_is_named_by_line(lines, line, message):
    with pytest.raises(DataError, match=message) as error:
        list(json_objects(lines, JSON, source="d.json"))
    assert (error.value.path, error.value.line) == ("d.json", line)


def test_the_objects_of_an_array_have_their_lines():
    lines = ["[", '{"a": 1},', '{"a":', '"\\ud83d\\ude00"}', " ]", ""]
    assert list(json_objects(lines, JSON, source="d")) == [(2, {"a": 1}), (3, {"a": "😀"})]
    assert list(json_objects([" [ ]"], JSON, source="d")) == []
