"""Lines that are still on their way."""

import pytest

from unrolled.app.commands.use import Asked, in_blocks
from unrolled.text.records import LineRecord
from unrolled.text.source import (
    ArrivingLines,
    Source,
    TrackedBlocks,
    fingerprint_of,
    one_ahead,
)


def inputs(lines):
    return ((line, LineRecord(line, n)) for n, line in enumerate(lines, 1))


def test_blocks_of_a_pipe_are_what_has_come():
    lines = ArrivingLines([["a"], ["b", "c", "d"], [], ["e"]], name="<stdin>", is_whole=False)
    asked = Asked.of(inputs(lines), lines, at_once=2)
    assert list(asked.blocks) == [["a"], ["b", "c"], ["d"], ["e"]]
    assert [record.line for record in asked.records.values()] == [1, 2, 3, 4, 5]


def test_blocks_of_a_file_are_the_same_however_it_is_read(tmp_path):
    lines = ArrivingLines([["a"], ["b", "c"], ["d"]], name="d.txt")
    assert list(Asked.of(inputs(lines), lines, at_once=3).blocks) == [["a", "b", "c"], ["d"]]
    assert list(in_blocks("abcde", 2)) == [["a", "b"], ["c", "d"], ["e"]]


def test_nothing_is_waited_for_before_the_first_line_of_a_pipe():
    def blocks():
        yield ["a"]
        raise AssertionError

    lines = ArrivingLines(blocks(), name="-", is_whole=False)
    assert lines.head(200) == ["a"]
    assert next(lines) == "a"
    assert lines.must_wait


def test_the_head_of_a_file_is_read_again(tmp_path):
    path = tmp_path / "d.txt"
    path.write_text("".join(f"{n}\n" for n in range(500)))
    lines = Source(path).arriving()
    assert lines.head(200) == [str(n) for n in range(200)]
    assert list(lines) == [str(n) for n in range(500)]
    assert lines.is_whole
    assert not Source("-").is_file


def test_blocks_are_known_by_what_their_lines_are_known_by():
    tracked = TrackedBlocks([b"a\n\n", "é\n".encode(), b"last\n"])
    assert b"".join(tracked).count(b"\n") == 4
    assert tracked.fingerprint() == fingerprint_of(["a", "", "é", "last"])


def test_the_next_is_fetched_while_one_is_worked_on():
    fetched = []

    def items():
        for number in range(5):
            fetched.append(number)
            yield number
        raise ValueError("the sixth")

    coming = one_ahead(items())
    assert [next(coming) for _ in range(3)] == [0, 1, 2]
    assert len(fetched) >= 3
    assert [next(coming) for _ in range(2)] == [3, 4]
    with pytest.raises(ValueError, match="the sixth"):
        next(coming)
    assert list(one_ahead(iter([0, None, False, ""]))) == [0, None, False, ""]
    assert list(one_ahead(())) == []
