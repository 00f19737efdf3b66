"""Tables for people."""

from unrolled.evaluate.shown import blocks_of_columns


def test_a_table_is_parted_where_it_would_be_too_wide():
    lines = [["", "a" * 30, "b" * 30, "c" * 30], ["model", "1", "2", "3"]]
    table = blocks_of_columns(lines).splitlines()
    assert max(map(len, table)) <= 79
    assert [line.split() for line in table] == [
        ["a" * 30, "b" * 30],
        ["model", "1", "2"],
        ["c" * 30],
        ["model", "3"],
    ]


def test_a_column_too_wide_for_any_line_is_never_cut():
    assert "x" * 200 in blocks_of_columns([["", "x" * 200, "y"], ["m", "1", "2"]])
