"""Files of word vectors as users bring them, through the command: a sentence, or a right answer."""

import json
import os
import re
import struct
import tracemalloc

import numpy as np
import pytest

from unrolled.app.cli import main
from unrolled.tasks.shared import vector_folder
from unrolled.tasks.shared.vector_folder import parse_words

ROW = b"a " + struct.pack("<3f", 1, 2, 3) + b"\nb " + struct.pack("<3f", 3, 2, 1.5) + b"\n"
DAMAGED = "ends or is damaged at word"
BAD = {
    "one number too few": (b"a 1 2\nb 2 1\nc 5\n", "line 3: is 'c 5', but must be a word and 2"),
    "one number too many": (b"a 1 2\nb 2 .5\nc 5 6 7\n", "line 3: is 'c 5 6 7', but must be"),
    "another encoding": ("2 2\nfaçade 1 2\nb 2 1\n".encode("latin-1"), "with --encoding"),
    "fewer words than it says": (
        b"5 2\na 1 2\nb 2 1\n",
        "has 2 vectors, but its first line says 5",
    ),
    "more words than it says": (b"1 2\na 1 2\nb 2 1\n", "has 2 vectors, but its first line says 1"),
    "more words than there are": (
        b"999999999999 2\na 1 2\n",
        "its first line says 999,999,999,999",
    ),
    "not a number": (b"b 2 1\na 1 nan\n", "line 2: is 'a 1 nan', but must be a word and 2 finite"),
    "infinite": (b"b 2 1\na 1 -inf\n", "line 2: is 'a 1 -inf'"),
    "beyond float32": (b"b 2 1\na 1 1e39\n", "line 2: is 'a 1 1e39'"),
    "empty": (b"", "holds no word vector"),
    "blank": (b"\n \n", "holds no word vector"),
    "nonsense": (bytes(range(256)), "is no text"),
    "binary, cut short": (b"2 3\n" + ROW[:-5], f"{DAMAGED} 2 of 2 (vectors of 3 numbers)"),
    "binary, more words": (b"999999999999 3\n" + ROW, f"{DAMAGED} 3 of 999999999999"),
    "binary, longer vectors": (b"2 16000\n" + ROW, f"{DAMAGED} 1 of 2"),
    "binary, vectors of a million": (b"2 1000000\n" + ROW, "vectors of 1000000 numbers, but there"),
    "binary, not a number": (b"1 1\na " + struct.pack("<f", np.nan), f"{DAMAGED} 1 of 1"),
    "binary, a word without end": (b"2 3\n" + b"\1" * 200_000, f"{DAMAGED} 1 of 2"),
}


A_COUNT = "words.json: there must be a count for each of 2 words"
BAD_WORDS = {
    "no list": ("ab", [1, 1], "words.json: the words must be a list of strings"),
    "none": ([], [], "words.json: the words must be a list of strings"),
    "a number": (["a", 1], [1, 1], "words.json: the words must be a list of strings"),
    "without a letter": (["a", ""], [1, 1], "words.json: the words must be a list of strings"),
    "twice": (["a", "a"], [1, 1], "words.json: there must be words, each of them once"),
    "counts that are no list": (["a", "b"], {"a": 1}, A_COUNT),
    "a count too few": (["a", "b"], [1], A_COUNT),
    "no counts": (["a", "b"], [], A_COUNT),
    "half a count": (["a", "b"], [1, 0.5], A_COUNT),
    "a truth": (["a", "b"], [1, True], A_COUNT),
    "a count below 0": (["a", "b"], [1, -1], A_COUNT),
    "a count of 64 bits": (["a", "b"], [1, 2**63], A_COUNT),
    "a count far below 0": (["a", "b"], [1, -(2**63) - 1], A_COUNT),
}


@pytest.mark.parametrize("name", BAD_WORDS)
def test_bad_words_of_a_folder_are_named(name):
    words, counts, problem = BAD_WORDS[name]
    with pytest.raises(ValueError, match=f"^{re.escape(problem)}$"):
        parse_words({"words.json": json.dumps({"words": words, "counts": counts}).encode()})


def test_words_of_the_same_hash_are_two_words(monkeypatch):
    monkeypatch.setattr(vector_folder, "hash", len, raising=False)
    words, counts = parse_words({"words.json": b'{"words": ["a", "b"], "counts": [0, 1]}'})
    assert (words, counts.tolist()) == (["a", "b"], [0, 1])
    with pytest.raises(ValueError, match="each of them once"):
        parse_words({"words.json": b'{"words": ["a", "b", "a"], "counts": [1, 1, 1]}'})


def asked(capsys, *arguments):
    code = main(["vectors", *map(str, arguments)])
    told = capsys.readouterr()
    return code, told.out, told.err


@pytest.mark.parametrize("name", BAD)
def test_a_bad_file_is_named_and_takes_no_memory(name, tmp_path, capsys):
    data, problem = BAD[name]
    (tmp_path / "v.bin").write_bytes(data)
    main(["vectors", "neighbours", str(tmp_path / "none"), "a"])  # imports take memory, too
    capsys.readouterr()
    tracemalloc.start()
    code, out, err = asked(capsys, "neighbours", tmp_path / "v.bin", "a")
    assert tracemalloc.get_traced_memory()[1] < 20_000_000
    tracemalloc.stop()
    assert (code, out, err.count("\n")) == (3, "", 1)
    assert err.startswith(f"unrolled: {tmp_path / 'v.bin'}")
    assert problem in err


def test_folders_and_pipes(tmp_path, capsys):
    code, _, err = asked(capsys, "neighbours", tmp_path, "a")
    assert (code, "is not a model folder: it has no MANIFEST.json" in err) == (4, True)
    os.mkfifo(tmp_path / "pipe")
    for place in (tmp_path / "pipe", "-"):
        code, _, err = asked(capsys, "neighbours", place, "a")
        assert (code, "word vectors must be a file, not a pipe" in err) == (5, True)
    code, _, err = asked(capsys, "neighbours", tmp_path / "none", "a")
    assert (code, "cannot be read: No such file" in err) == (5, True)


def test_words_that_are_none(tmp_path, capsys):
    (tmp_path / "v").write_text("cheese 1 2\nchess 2 1\nrat 0 1\n")
    code, _, err = asked(capsys, "neighbours", tmp_path / "v", "chese")
    assert (code, "Did you mean 'cheese' or 'chess'?" in err) == (2, True)
    for nothing in ("", " "):
        code, _, err = asked(capsys, "neighbours", tmp_path / "v", nothing)
        assert (code, "there is no word whose neighbours" in err) == (2, True)


def test_answers_that_are_right_all_the_same(tmp_path, capsys):
    (tmp_path / "twice").write_text("3 2\na 1 0\nb 3 4\na 0 1\n")
    assert asked(capsys, "neighbours", tmp_path / "twice", "a")[1] == "b  0.6000\n"
    (tmp_path / "zero").write_text("z 0 0\na 1 2\n")
    assert asked(capsys, "neighbours", tmp_path / "zero", "z")[1] == "a  0.0000\n"
    (tmp_path / "one").write_text("a 1 2\n")
    code, out, err = asked(capsys, "neighbours", tmp_path / "one", "a")
    assert (code, out, err) == (0, "", "There is no other word.\n")
    found = asked(capsys, "neighbours", tmp_path / "one", "a", "--json")[1]
    assert json.loads(found)["found"] == []
    (tmp_path / "phrases").write_text("rat 0 1\nNew York 1 2\n. . . 2 1\n")
    assert asked(capsys, "odd-one-out", tmp_path / "phrases", "New York", ". . .")[0] == 0
