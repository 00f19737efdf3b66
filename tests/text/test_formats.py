"""Formats are told in one place, by name and content."""

import pytest

from unrolled.errors import ConfigError
from unrolled.text.formats import FORMATS, HEAD, Layout, recognise

PLAIN = ["A good film, really.", "It is; is it not? | Yes."]
CONLLU = ["# sent_id = 1", "1\tDo\tdo\tAUX\t_\t_\t0\troot\t_\t_", ""]
COLUMNS = ["The DT", "rat NN", "ate VB", "", "It PRP", "was VB", ""]


def told(lines, name="data.txt", **options):
    return recognise(lines, name=name, **options)


@pytest.mark.parametrize(
    ("name", "format"),
    [
        ("d.csv", "csv"),
        ("d.CSV.gz", "csv"),
        ("d.tsv.xz", "tsv"),
        ("d.tab", "tsv"),
        ("d.jsonl", "jsonl"),
        ("d.ndjson", "jsonl"),
        ("d.conllu", "conllu"),
        ("d.conll", "columns"),
        ("d.txt", "text"),
        ("<stdin>", "text"),
    ],
)
def test_a_name_says_how_a_file_is_written(name, format):
    assert told(PLAIN, name).format == format


@pytest.mark.parametrize(
    ("lines", "format"),
    [
        ([], "text"),
        (PLAIN, "text"),
        (["{not json}", "x"], "text"),
        (["[sic] he said"], "text"),
        (["1. a list", "", "2. of things", "", "3. in lines"], "text"),
        (["a\tb", "no tab"], "text"),
        (['{"text": "a"}'], "jsonl"),
        (["[", '{"text": "a"}]'], "json"),
        (['[{"text": "a"}]'], "json"),
        (["__label__a good"], "fasttext"),
        (CONLLU, "conllu"),
        (["-DOCSTART- -X- O O", "", "EU NNP"], "columns"),
        (COLUMNS, "columns"),
        (["Review;Sentiment", "so so;good"], "csv"),
        (["a\tb", "c\td"], "tsv"),
        (["id\ttext", "1\tx"], "tsv"),
    ],
)
def test_first_lines_say_how_a_file_is_written(lines, format):
    assert told(lines).format == format


@pytest.mark.parametrize("separator", [",", ";", "\t", "|"])
def test_the_separator_is_the_one_that_makes_rows_regular(separator):
    rows = [["text", "label"], ["a, b; c | d", "x"], ["e, f", "y"], ['"g', "x"]]
    quoted = [[f'"{cell.replace(chr(34), chr(34) * 2)}"' for cell in row] for row in rows]
    lines = [separator.join(row) for row in quoted]
    assert told(lines, "d.csv") == Layout("csv", separator, quoted=True)


def test_a_cell_that_goes_on_behind_the_first_lines_changes_nothing():
    lines = ["a;b", "c;d, e"] * (HEAD // 2 - 1) + ["f;g", '"h, i']
    assert told(lines, "d.csv").separator == ";"


def test_cells_between_tabs_are_quoted_only_where_that_is_plain():
    assert not told(['a\t"x" he said', 'b\t"y"'], "d.tsv").quoted
    assert told(['a\t"he said ""x"""', 'b\t"y"'], "d.tsv").quoted
    assert told(['a\t"x', 'y"', "b\tz"], "d.tsv").quoted


def test_what_the_user_says_counts_if_it_can_be_read_here():
    assert told(CONLLU, "d.csv", wanted="text").format == "text"
    with pytest.raises(ConfigError, match=r"data\.format is 'conllu', but here it must be one of"):
        told(CONLLU, among=("text", "csv"), wanted="conllu")
    assert told(CONLLU, "d.conllu", among=("csv", "tsv"), otherwise="tsv").format == "tsv"


def test_a_json_file_of_an_object_a_line_is_read_as_one():
    assert told(['{"a": 1}', '{"a": 2}'], "d.json").format == "jsonl"
    assert told(["[", "{}"], "d.json").format == "json"
    assert set(FORMATS) >= {"json", "jsonl"}
