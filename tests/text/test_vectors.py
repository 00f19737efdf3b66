import gzip
import os
import struct

import numpy as np
import pytest

from unrolled.errors import DataError, StorageError
from unrolled.text.vectors import WordVectors, read_vectors

WORDS = ["the", "rat", "New York", "Ärger", "cheese"]
VECTORS = np.random.default_rng(0).normal(size=(5, 3)).astype(np.float32)


def as_text(words=WORDS, vectors=VECTORS) -> str:
    rows = zip(words, vectors, strict=True)
    return "".join(f"{word} {' '.join(map(repr, row.tolist()))}\n" for word, row in rows)


def as_binary(words=WORDS, vectors=VECTORS, *, end=b"\n") -> bytes:
    rows = zip(words, vectors, strict=True)
    body = b"".join(
        word.replace(" ", "_").encode() + b" " + struct.pack(f"<{len(row)}f", *row) + end
        for word, row in rows
    )
    return f"{len(words)} {vectors.shape[1]}\n".encode() + body


FORMATS = {
    "glove": as_text().encode(),
    "word2vec": f"5 3\n{as_text()}".encode(),
    "fasttext": f"5 3\n{as_text()}".replace("\n", " \n").encode(),  # a space ends its lines
    "windows": as_text().replace("\n", "\r\n").encode(),
    "packed": gzip.compress(f"5 3\n{as_text()}".encode()),
}


@pytest.mark.parametrize("name", FORMATS)
def test_text_formats_give_the_same_vectors(tmp_path, name):
    (tmp_path / "v").write_bytes(FORMATS[name])
    path = tmp_path / ("v.gz" if name == "packed" else "v")
    (tmp_path / "v").rename(path)
    found = read_vectors(path)
    assert found.words == WORDS
    np.testing.assert_array_equal(found.vectors, VECTORS)
    assert found.width == 3


@pytest.mark.parametrize("end", [b"\n", b""])
@pytest.mark.parametrize("pack", [bytes, gzip.compress])
def test_binary_gives_the_same_vectors(tmp_path, end, pack):
    path = tmp_path / "v.bin"
    path.write_bytes(pack(as_binary(end=end)))
    found = read_vectors(path)
    assert found.words == ["the", "rat", "New_York", "Ärger", "cheese"]
    np.testing.assert_array_equal(found.vectors, VECTORS)


def test_the_first_words_and_the_wanted_ones_are_kept(tmp_path):
    path = tmp_path / "v"
    path.write_text(as_text(), encoding="utf-8")
    found = read_vectors(path, most=1, wanted={"cheese", "not there"})
    assert found.words == ["the", "cheese"]
    np.testing.assert_array_equal(found.vectors, VECTORS[[0, 4]])
    assert read_vectors(path, most=0, wanted={"rat"}).words == ["rat"]


def test_of_a_word_that_stands_twice_the_first_counts(tmp_path):
    path = tmp_path / "v"
    path.write_text("a 1 2\nb 3 4\na 5 6\n", encoding="utf-8")
    assert read_vectors(path).vectors.tolist() == [[1, 2], [3, 4]]


def test_more_lines_than_are_read_at_once(tmp_path):
    path = tmp_path / "v"
    vectors = np.arange(5002, dtype=np.float32).reshape(2501, 2)
    path.write_text(as_text([f"w{i}" for i in range(2501)], vectors), encoding="utf-8")
    np.testing.assert_array_equal(read_vectors(path).vectors, vectors)


def test_exact_form_then_lower_case_then_nothing():
    vectors = WordVectors(["rat", "Rat", "cheese"], np.zeros((3, 2), np.float32))
    places, rows = vectors.rows_for(["<unk>", "Rat", "RAT", "rat", "Cheese", "ate"])
    assert (places.tolist(), rows.tolist()) == ([1, 2, 3, 4], [1, 0, 0, 2])


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a 1 2\nb 3\n", r"v, line 2: is 'b 3', but must be a word and 2 finite numbers"),
        ("a 1 2\n\nb 3 x\n", r"v, line 3: is 'b 3 x', but must be a word and 2 finite numbers"),
        ("2 2\na 1 2\nb 3 nan\n", r"v, line 3: is 'b 3 nan', but must be"),
        ("hello\n", r"v, line 1: has vectors of 0 numbers, but there must be 1 to 16384"),
        ("5 99999\nhello 1\n", r"v, line 1: has vectors of 99999 numbers"),
        ("", r"v: holds no word vector; a line is a word and its numbers"),
        ("0 5\n", r"v: holds no word vector"),
    ],
)
def test_a_wrong_file_is_named_with_its_line(tmp_path, text, message):
    path = tmp_path / "v"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(DataError, match=message):
        read_vectors(path)


@pytest.mark.parametrize("cut", [2, 5, 13, 20])
def test_a_binary_file_that_ends_too_soon(tmp_path, cut):
    path = tmp_path / "v.bin"
    path.write_bytes(as_binary()[:-cut])
    with pytest.raises(DataError, match=r"v.bin: ends or is damaged at word 5 of 5"):
        read_vectors(path)


def test_a_packed_file_that_is_cut_off(tmp_path):
    path = tmp_path / "v.bin.gz"
    path.write_bytes(gzip.compress(as_binary())[:-12])
    with pytest.raises(DataError, match="the compressed file is cut off or damaged"):
        read_vectors(path)


def test_no_such_file(tmp_path):
    with pytest.raises(StorageError, match="cannot be read: No such file"):
        read_vectors(tmp_path / "v")


@pytest.mark.parametrize(
    ("row", "message"),
    [
        (b"fa\xe7ade 0.1 0.2", r"v, line 2, column 3: byte 0xe7 is not valid utf-8"),
        (b"house nan 0.2", r"v, line 2: is 'house nan 0.2', but must be a word and 2 finite"),
        (b"house 0,1 0,2", r"v, line 2: is 'house 0,1 0,2', but must be a word and 2 finite"),
        (b"house 0.1", r"v, line 2: is 'house 0.1', but must be a word and 2 finite"),
    ],
)
def test_a_fault_in_the_first_row_of_text_is_named_and_not_read_as_binary(tmp_path, row, message):
    path = tmp_path / "v"
    path.write_bytes(b"2 2\n" + row + b"\nrat 0.3 0.4\n")
    with pytest.raises(DataError, match=message):
        read_vectors(path)


def test_another_encoding_and_runs_of_spaces(tmp_path):
    path = tmp_path / "v"
    path.write_bytes("2 2\nfaçade  0.5\t 1 \nrat 2 3\n".encode("latin-1"))
    found = read_vectors(path, encoding="latin-1")
    assert list(found.words) == ["façade", "rat"]
    assert found.vectors.tolist() == [[0.5, 1.0], [2.0, 3.0]]


def test_the_number_of_rows_must_be_what_the_first_line_says(tmp_path):
    path = tmp_path / "v"
    path.write_text("3 2\na 1 2\nb 3 4\n")
    with pytest.raises(DataError, match=r"v: has 2 vectors, but its first line says 3\. It is cut"):
        read_vectors(path)
    path.write_bytes(as_binary() + b"more")
    with pytest.raises(DataError, match=r"v: goes on behind the 5 vectors that its first line"):
        read_vectors(path)


def test_an_endless_number_is_a_word_and_a_pipe_is_refused(tmp_path):
    path = tmp_path / "v"
    path.write_text("1" * 5000 + " 2\na 1\n")  # too long for a size, so it is a word
    assert read_vectors(path).vectors.tolist() == [[2.0], [1.0]]
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(StorageError, match="pipe: word vectors must be a file, not a pipe"):
        read_vectors(tmp_path / "pipe")
