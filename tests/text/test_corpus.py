import contextlib
import gzip
import lzma
import os
import random
import subprocess
import sys
import tracemalloc
from collections import deque
from encodings.aliases import aliases
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from unrolled.errors import ConfigError, DataError, StorageError
from unrolled.text import corpus
from unrolled.text.corpus import read_lines, read_utf8_blocks

LINES = ["hayatın anlamı", "", "زندگی", "日本語の文", "👩‍👩‍👧 ok", "last"]


def written(folder: Path, data: bytes, name: str = "text.txt") -> Path:
    path = folder / name
    path.write_bytes(data)
    return path


def failure(path: Path | str, encoding: str = "utf-8") -> DataError:
    with pytest.raises(DataError) as caught:
        list(read_lines(path, encoding=encoding))
    return caught.value


@pytest.mark.parametrize("bom", [b"", b"\xef\xbb\xbf"])
@pytest.mark.parametrize("line_end", ["\n", "\r\n"])
@pytest.mark.parametrize("last_end", [True, False])
@pytest.mark.parametrize("block", [1, 2, 3, 7, 1 << 20])
def test_bom_line_ends_and_block_size_change_no_line(
    tmp_path, monkeypatch, bom, line_end, last_end, block
):
    monkeypatch.setattr(corpus, "BLOCK", block)
    text = line_end.join(LINES) + (line_end if last_end else "")
    assert list(read_lines(written(tmp_path, bom + text.encode()))) == LINES


@pytest.mark.parametrize(
    ("data", "lines"),
    [
        (b"", []),
        (b"\n", [""]),
        (b"\r\n", [""]),
        (b"\xef\xbb\xbf", []),
        (b"a", ["a"]),
        (b"a\r", ["a"]),
        (b"a\r\r\nb", ["a\r", "b"]),
        (b"a\rb\n", ["a\rb"]),
        (b"a\n\n", ["a", ""]),
        ("a\ufeffb\n\ufeffc".encode(), ["a\ufeffb", "\ufeffc"]),
    ],
)
def test_where_lines_begin_and_end(tmp_path, data, lines):
    assert list(read_lines(written(tmp_path, data))) == lines


def test_only_the_newline_ends_a_line(tmp_path):
    line = "a\x0bb\x0cc\x1cd\x85e\u2028f\u2029g"
    assert list(read_lines(written(tmp_path, f"{line}\nx".encode()))) == [line, "x"]


def test_byte_85_of_latin_1_ends_no_line(tmp_path):
    path = written(tmp_path, b"caf\xe9 \x85 x\r\ny\n")
    assert list(read_lines(path, encoding="latin-1")) == ["café \x85 x", "y"]


@pytest.mark.parametrize(
    "encoding",
    ["utf-16", "utf-16-le", "utf-16-be", "utf-32", "utf-8-sig", "utf-7", "gb18030", "cp037"],
)
@pytest.mark.parametrize("block", [1, 3, 5, 1 << 20])
def test_other_encodings(tmp_path, monkeypatch, encoding, block):
    monkeypatch.setattr(corpus, "BLOCK", block)
    lines = ["Ċ ਊ ok", "日本", "x"] if encoding != "cp037" else ["abc", "é", "x"]  # Ċ is 0x010a
    data = "\r\n".join(lines).encode(encoding)
    assert list(read_lines(written(tmp_path, data), encoding=encoding)) == lines


@settings(deadline=None, max_examples=200)
@given(
    data=st.lists(st.text(st.characters(exclude_characters="\n\0", exclude_categories=["Cs"]))),
    block=st.integers(1, 50),
)
def test_lines_written_are_lines_read(tmp_path_factory, data, block):
    path = written(tmp_path_factory.getbasetemp(), "".join(f"{x}\r\n" for x in data).encode())
    first = [data[0].removeprefix("\ufeff"), *data[1:]] if data else []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(corpus, "BLOCK", block)
        assert list(read_lines(path)) == first


@pytest.mark.parametrize("pack", [gzip.compress, lzma.compress])
@pytest.mark.parametrize("name", ["text.txt", "text", None])
def test_compressed_files_are_known_by_their_bytes(tmp_path, pack, name):
    name = name or {gzip.compress: "text.GZ", lzma.compress: "text.xz"}[pack]
    path = written(tmp_path, pack("\n".join(LINES).encode()), name)
    assert list(read_lines(path)) == LINES
    assert list(read_lines(str(path))) == LINES


def test_gzip_of_several_members(tmp_path):
    path = written(tmp_path, gzip.compress(b"a\nb") + gzip.compress(b"c\n"), "t.gz")
    assert list(read_lines(path)) == ["a", "bc"]


@pytest.mark.parametrize("data", [b"plain\n", b"", lzma.compress(b"x")])
def test_name_says_gzip_and_bytes_do_not(tmp_path, data):
    error = failure(written(tmp_path, data, "t.gz"))
    seen = data[:2].hex(" ") or "nothing"
    assert str(error) == (
        f"{tmp_path / 't.gz'}: the name ends in .gz, but the file does not begin as gzip does "
        f"(1f 8b) but with {seen}; rename it or compress it."
    )


def test_name_says_xz_and_bytes_do_not(tmp_path):
    error = failure(written(tmp_path, b"plain\n", "t.xz"))
    assert "the name ends in .xz, but the file does not begin as xz does (fd 37 7a" in str(error)


@pytest.mark.parametrize(("pack", "name"), [(gzip.compress, "t.gz"), (lzma.compress, "t.xz")])
def test_every_cut_and_many_flips_of_an_archive_are_data_errors(tmp_path, pack, name):
    text = b"".join(b"line %d\n" % i for i in range(40))
    whole = pack(text)
    for size in range(6, len(whole)):
        error = failure(written(tmp_path, whole[:size], name))
        assert "cut off or damaged here" in str(error)
        assert "get or make it anew" in str(error)
    for place in range(12, len(whole)):
        broken = bytearray(whole)
        broken[place] ^= 0x10
        try:
            lines = list(read_lines(written(tmp_path, bytes(broken), name)))
        except DataError:
            continue
        assert "\n".join(lines).encode() + b"\n" == text  # a flip that changes nothing of the text


def test_what_is_packed_streams_and_a_bomb_is_stopped_at_its_stated_limit(tmp_path):
    def packed(size):
        lines = (b"a" * 999 + b"\n") * (size // 1000)
        return written(tmp_path, gzip.compress(lines, 1), f"{size}.gz")

    size = 30_000_000
    tracemalloc.start()
    try:
        assert sum(map(len, read_lines(packed(size)))) == 999 * (size // 1000)
        bomb = packed(100_000_000)
        tracemalloc.reset_peak()
        lines = read_lines(bomb)
        with pytest.raises(DataError, match=r"at most 50 times as many, or 33,554,432\. If that"):
            deque(lines, maxlen=1)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 20_000_000


def test_what_packs_well_but_not_beyond_measure_is_read_whole(tmp_path):
    lines = [f"{n * 7919:x} is the number {n}" for n in range(1_500_000)]
    path = written(tmp_path, gzip.compress("\n".join(lines).encode(), 1), "t.gz")
    assert sum(1 for _ in read_lines(path)) == len(lines)


@pytest.mark.parametrize("block", [1, 4, 1 << 20])
@pytest.mark.parametrize(
    ("data", "encoding", "line", "column", "byte"),
    [
        (b"one\ntwo caf\xe9 x\nend", "utf-8", 2, 8, 0xE9),
        (b"\xef\xbb\xbfab\xff", "utf-8", 1, 3, 0xFF),
        ("日本\n日".encode() + b"\xed\xa0\x80", "utf-8", 2, 2, 0xED),
        (b"a\r\nb\xe3\x81", "utf-8", 2, 2, 0xE3),
        ("日本".encode() + b"\xff\n", "utf-8", 1, 3, 0xFF),  # a character across blocks before it
        (b"abc\n\x81", "cp1252", 2, 1, 0x81),
        ("日本\n日x".encode("shift_jis") + b"\xff", "shift_jis", 2, 3, 0xFF),
        ("é\nab".encode("utf-16-le") + b"\x00\xdc\x41\x00", "utf-16-le", 2, 3, 0x00),
        ("é\nab".encode("utf-16") + b"\x41", "utf-16", 2, 3, 0x41),
        (b"ab\xe9", "ascii", 1, 3, 0xE9),
    ],
)
def test_bad_bytes_are_placed(tmp_path, monkeypatch, data, encoding, line, column, byte, block):
    monkeypatch.setattr(corpus, "BLOCK", block)
    path = written(tmp_path, data)
    error = failure(path, encoding)
    assert str(error) == (
        f"{path}, line {line}, column {column}: byte 0x{byte:02x} is not valid {encoding}; "
        "name the file's encoding with --encoding."
    )
    assert (error.line, error.column, error.exit_code) == (line, column, 3)


def test_utf_16_without_byte_order_mark(tmp_path):
    error = failure(written(tmp_path, b"plain text"), "utf-16")
    assert "line 1, column 1: the text is not valid utf-16; name the file's" in str(error)


@pytest.mark.parametrize("block", [1, 3, 1 << 20])
@pytest.mark.parametrize("encoding", ["utf-8", "utf-16"])
def test_nul_is_placed(tmp_path, monkeypatch, block, encoding):
    monkeypatch.setattr(corpus, "BLOCK", block)
    path = written(tmp_path, "ok\nİx\0y".encode(encoding))
    assert str(failure(path, encoding)) == (
        f"{path}, line 2, column 3: holds the character NUL (0), so it is no text; check the file."
    )


def test_the_first_fault_is_the_one_told(tmp_path):
    error = failure(written(tmp_path, b"a\0b\n\xff"))
    assert "line 1, column 2: holds the character NUL" in str(error)


@pytest.mark.parametrize("block", [1, 3, 10])  # never larger than the longest line
@pytest.mark.parametrize("data", [b"ok\n12345678901", b"ok\n12345678901\n"])
def test_a_line_without_measure(tmp_path, monkeypatch, block, data):
    monkeypatch.setattr(corpus, "BLOCK", block)
    monkeypatch.setattr(corpus, "MAX_LINE", 10)
    path = written(tmp_path, data)
    assert "line 2, column 11: the line is longer than 10 characters; cut it" in str(failure(path))
    assert list(read_lines(written(tmp_path, b"1234567890\n1234567890"))) == ["1234567890"] * 2


@pytest.mark.parametrize("encoding", ["utf-9", "hex", "rot13", "a\0b", "", "ü" * 9])
def test_unknown_encoding(tmp_path, encoding):
    with pytest.raises(ConfigError) as caught:
        list(read_lines(written(tmp_path, b"x"), encoding=encoding))
    assert f"encoding is {encoding!r}, but must be one that Python knows" in str(caught.value)


def refused(path: Path | str) -> str:
    with pytest.raises(StorageError) as caught:
        list(read_lines(path))
    assert caught.value.exit_code == 5
    assert str(caught.value).startswith(f"{path}: ")
    return str(caught.value).removeprefix(f"{path}: ")


def test_files_that_cannot_be_opened(tmp_path):
    file = written(tmp_path, b"x")
    missing = "there is no such file; check the spelling and the folder."
    assert refused(tmp_path / "none.gz") == missing
    assert refused("") == missing
    assert refused(tmp_path) == "this is a folder, but a file is needed; name a file in it."
    below = refused(file / "x")
    assert below == "the file cannot be read (Not a directory); check the path and the disk."
    assert "embedded null byte" in refused("a\0b")


def test_a_file_that_may_not_be_read(tmp_path):
    path = written(tmp_path, b"x")
    path.chmod(0)
    user = os.geteuid()
    if user == 0:
        os.seteuid(65534)
    try:
        assert refused(path) == "the file may not be read; check its permissions."
    finally:
        os.seteuid(user)


@pytest.mark.skipif(sys.platform != "linux", reason="needs a file whose reading fails")
def test_a_read_that_fails():
    problem = "the file cannot be read (Input/output error); check the path and the disk."
    assert refused("/proc/self/mem") == problem


def test_the_file_is_closed_when_the_reader_stops_early(tmp_path):
    lines = read_lines(written(tmp_path, b"a\nb\n"))
    assert next(lines) == "a"
    lines.close()  # an open file would raise ResourceWarning
    open_files = {os.path.realpath(f"/proc/self/fd/{n}") for n in os.listdir("/proc/self/fd")}
    assert str(tmp_path / "text.txt") not in open_files


def test_random_bytes_give_lines_or_a_placed_error(tmp_path):
    source = random.Random(0)
    heads = [b"", b"\x1f\x8b", b"\xfd7zXZ\x00", b"\xff\xfe", gzip.compress(b"ab\n" * 9)]
    refusals = []
    for _ in range(300):
        data = source.choice(heads) + source.randbytes(source.randrange(40))
        try:
            list(read_lines(written(tmp_path, data)))
        except DataError as error:
            refusals.append(error)
    assert len(refusals) > 100
    assert all(error.line and error.column for error in refusals)


def test_importing_the_readers_does_not_import_torch():
    code = "import sys, unrolled.text.corpus, unrolled.text.tokens; print('torch' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True)
    assert done.stdout.strip() == b"False"


SAMPLES = [
    b"hello\nworld\n",
    b"-abc-d\n" * 3,
    "é日本😀\n".encode("utf-16"),
    b"\xed\xa0\x80\\ud800 \\N{x}\n",
    *(random.Random(seed).randbytes(60) for seed in range(12)),
]


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_no_encoding_ends_in_anything_but_lines_or_a_sentence(tmp_path):
    names = sorted({*aliases.values(), "punycode", "idna", "unicode_escape", "raw_unicode_escape"})
    read = 0
    for number, sample in enumerate(SAMPLES):
        path = written(tmp_path, sample, f"{number}.txt")
        for name in names:
            with contextlib.suppress(ConfigError, DataError):
                read += all(isinstance(line, str) for line in read_lines(path, encoding=name))
    assert read > 100


def test_half_a_character_is_named_by_its_place(tmp_path):
    path = written(tmp_path, b"ab\nc\\ud800\n")
    with pytest.raises(DataError, match=r"line 2, column 2: holds half of a character"):
        list(read_lines(path, encoding="unicode_escape"))


@pytest.mark.parametrize("block", [1, 7, 1 << 20])
@pytest.mark.parametrize(
    ("data", "encoding"),
    [
        ("\ufeffa é\r\n\n日本\r語\nlast\r".encode(), "utf-8"),
        (b"a\n", "utf-8"),
        (b"", "utf-8"),
        ("a é\r\nü".encode("latin-1"), "latin-1"),
        ("a é\n👩\n".encode("utf-16"), "utf-16"),
    ],
)
def test_blocks_of_utf_8_are_the_lines(tmp_path, monkeypatch, data, encoding, block):
    monkeypatch.setattr(corpus, "BLOCK", block)
    path = written(tmp_path, data)
    blocks = list(read_utf8_blocks(path, encoding=encoding))
    lines = list(read_lines(path, encoding=encoding))
    assert all(block.endswith(b"\n") for block in blocks)
    assert b"".join(blocks).decode() == "".join(f"{line}\n" for line in lines)


def test_blocks_of_utf_8_name_the_place_of_a_fault(tmp_path):
    with pytest.raises(DataError, match=r"line 2, column 3: byte 0xff is not valid utf-8"):
        list(read_utf8_blocks(written(tmp_path, b"a\nbc\xff\n")))
