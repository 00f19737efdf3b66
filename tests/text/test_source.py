"""Lines that are still on their way."""

from unrolled.app.commands.use import Asked, in_blocks
from unrolled.text.records import LineRecord
from unrolled.text.source import ArrivingLines, Source


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
