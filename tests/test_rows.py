"""docs/notes.md says what shows each thing the notes describe, and nothing else."""

import importlib.util
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]


@pytest.fixture(scope="module")
def tool():
    spec = importlib.util.spec_from_file_location("rows", ROOT / "tools" / "rows.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_there_are_224_rows(tool):
    ids = [row for row, *_ in tool.rows()]
    assert len({*ids}) == len(ids) == 224


def test_marks_and_entries_name_rows_that_there_are(tool):
    ids = {row for row, *_ in tool.rows()}
    assert {*tool.marked()} <= ids
    assert {*tool.registered()} <= ids


def test_the_page_is_the_one_that_is_made(tool):
    assert (ROOT / "docs" / "notes.md").read_text(encoding="utf-8") == tool.page(), "run: make rows"


def test_marks_are_read(tool):
    import ast

    source = "@pytest.mark.row('A1', 'B2')\n@pytest.mark.slow\ndef test_a(): ..."
    assert [*tool.marks_of(ast.parse(source).body[0])] == ["A1", "B2"]
