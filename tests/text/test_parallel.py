"""Sentence pairs are read from two files or one, and what is wrong is named by file and line."""

import gzip
import lzma
import re

import numpy as np
import pytest

from unrolled.config.data import PairedTexts
from unrolled.errors import DataError, StorageError
from unrolled.text.parallel import Dropped, Pair, keep_lengths, read_pairs, read_parallel
from unrolled.text.source import fingerprint_of

WRITE = {"": open, ".gz": gzip.open, ".xz": lzma.open}


def write(path, text, ending=""):
    with WRITE[ending](f"{path}{ending}", "wb") as file:
        file.write(text)


def read(text, name="data.tsv"):
    return read_pairs(text.split("\n"), source=name).pairs


# ------------------------------------------------------------------ two files


@pytest.mark.parametrize("ending", ["", ".gz", ".xz"])
def test_two_files_are_joined_line_by_line(tmp_path, ending):
    write(tmp_path / "train.v1.de", b"ein Haus\r\nzwei\n", ending)
    write(tmp_path / "train.v1.en", b"a house\ntwo")
    found, known_by = read_parallel(tmp_path / "train.v1", "de", "en")
    assert found.pairs == [Pair("ein Haus", "a house", 1), Pair("zwei", "two", 2)]
    assert known_by == fingerprint_of(["ein Haus\ta house", "zwei\ttwo"])
    assert read_parallel(str(tmp_path / "train.v1"), "en", "de")[0].pairs[1] == Pair(
        "two", "zwei", 2
    )


def test_a_tab_inside_a_side_becomes_a_space(tmp_path):
    write(tmp_path / "d.a", b"x\ty\n\tz\n")
    write(tmp_path / "d.b", b"u\nv\tw\t\n")
    found, known_by = read_parallel(tmp_path / "d", "a", "b")
    assert found.pairs == [Pair("x y", "u", 1), Pair("z", "v w", 2)]
    assert known_by == fingerprint_of(["x y\tu", " z\tv w "])


def test_a_blank_line_keeps_its_place(tmp_path):
    write(tmp_path / "d.a", b"x\n\ny\n")
    write(tmp_path / "d.b", b"u\n\nv\n")
    found, _ = read_parallel(tmp_path / "d", "a", "b")
    assert found.pairs == [Pair("x", "u", 1), Pair("y", "v", 3)]


def test_an_encoding_is_read_by_its_name(tmp_path):
    for side in "ab":
        write(tmp_path / f"d.{side}", "café\n".encode("latin-1"))
    found, _ = read_parallel(tmp_path / "d", "a", "b", encoding="latin-1")
    assert found.pairs == [Pair("café", "café", 1)]
    with pytest.raises(DataError, match=r"d\.a, line 1, column 4: byte 0xe9 is not valid utf-8"):
        read_parallel(tmp_path / "d", "a", "b")


def test_files_of_unequal_length_are_refused_with_both_counts(tmp_path):
    write(tmp_path / "d.a", b"x\ny\nz\n")
    write(tmp_path / "d.b", b"u\n", ".gz")
    message = f"{tmp_path}/d.a has 3 lines and {tmp_path}/d.b.gz has 1, but line n of one must"
    with pytest.raises(DataError, match=re.escape(message)) as error:
        read_parallel(tmp_path / "d", "a", "b")
    assert error.value.path == tmp_path / "d"


def test_a_missing_file_is_named_with_all_that_was_looked_for(tmp_path):
    write(tmp_path / "d.a", b"x\n")
    with pytest.raises(StorageError, match=r"d\.b: there is no such file, and none with \.gz or"):
        read_parallel(tmp_path / "d", "a", "b")


def test_a_file_that_is_there_twice_is_refused(tmp_path):
    write(tmp_path / "d.a", b"x\n")
    write(tmp_path / "d.a", b"x\n", ".xz")
    with pytest.raises(DataError, match=r"d\.a: there are d\.a and d\.a\.xz, but it must be clear"):
        read_parallel(tmp_path / "d", "a", "b")


# ------------------------------------------------------------------ one file


def test_a_pair_is_source_tab_target():
    assert read("ein  Haus\ta house\n\n \t \n x \t y\n") == [
        Pair("ein  Haus", "a house", 1),
        Pair("x", "y", 4),
    ]


@pytest.mark.parametrize(
    ("text", "line", "message"),
    [
        ("a\tb\nc d\n", 2, "has 1 column, but must have 2: the source, a tab, the target. Put a"),
        ("a\tb\tCC-BY\n", 1, "has 3 columns, but must have 2: the source, a tab, the target. Keep"),
        ("a\tb\tc\td\n", 1, "has 4 columns, but must have 2"),
    ],
)
def test_what_is_wrong_is_named_by_file_and_line(text, line, message):
    with pytest.raises(DataError, match=re.escape(message)) as error:
        read(text)
    assert (error.value.path, error.value.line) == ("data.tsv", line)


def test_further_columns_are_refused_with_the_way_to_cut_them():
    with pytest.raises(DataError, match="Keep two columns with `cut -f1,2`"):
        read("a\tb\tCC-BY 2.0 (France)\n")


def test_a_file_without_pairs_is_refused():
    with pytest.raises(DataError, match=r"data\.tsv: holds no pair, but there must be some"):
        read("\n \n\t\n")


def test_lines_with_text_on_one_side_are_passed_over_counted_and_said():
    found = read_pairs(["a\tb", "\tx", "", "c\td", "y\t "], source="data.tsv")
    assert found.pairs == [Pair("a", "b", 1), Pair("c", "d", 4)]
    assert found.one_sided == [2, 5]
    assert found.remarks() == [
        "2 lines with text on one side alone left out, the first being line 2"
    ]
    assert read_pairs(["a\tb"], source="data.tsv").remarks() == []
    with pytest.raises(DataError, match="holds no pair"):
        read("a\t\n\tb")


def test_two_of_many_columns_are_named_by_a_header_or_by_the_settings():
    lines = ["id\ttarget\tsource", "1\tone\teins", "2\ttwo\tzwei"]
    found = read_pairs(lines, source="d.tsv")
    assert found.pairs == [Pair("eins", "one", 2), Pair("zwei", "two", 3)]
    assert found.settled(PairedTexts()) == PairedTexts(
        source_column="source", target_column="target"
    )
    numbers = PairedTexts(source_column=3, target_column=2)
    assert read_pairs(lines[1:], source="d.tsv", data=numbers).pairs[1] == Pair("zwei", "two", 2)
    with pytest.raises(DataError, match=r"d\.tsv, line 1: there is no column 'en' for the targets"):
        read_pairs(lines, source="d.tsv", data=PairedTexts(target_column="en"))


def test_pairs_of_csv_and_of_objects():
    csv = ["source,target", '"a, b","c', 'd"']
    assert read_pairs(csv, source="d.csv").pairs == [Pair("a, b", "c\nd", 2)]
    objects = ['{"en": "one", "de": "eins"}']
    data = PairedTexts(source_column="de", target_column="en")
    assert read_pairs(objects, source="d.jsonl", data=data).pairs == [Pair("eins", "one", 1)]


# ------------------------------------------------------------------ lengths


def reason(source, target, max_length, max_ratio):
    """Why a pair is left out, one at a time."""
    if min(source, target) == 0:
        return "empty"
    if max(source, target) > max_length:
        return "too_long"
    return "ratio" if max(source, target) / min(source, target) > max_ratio else ""


def test_each_pair_is_left_out_for_the_first_reason_that_holds():
    source, target = np.random.default_rng(0).integers(0, 14, size=(2, 2000))
    kept, dropped = keep_lengths(source, target, max_length=10, max_ratio=2.5)
    reasons = [reason(s, t, 10, 2.5) for s, t in zip(source, target, strict=True)]
    assert kept.tolist() == [not why for why in reasons]
    for kind in ("empty", "too_long", "ratio"):
        assert getattr(dropped, kind) == reasons.count(kind) > 0
    assert dropped.total == 2000 - int(kept.sum())
    assert dropped.pairs == 2000


def test_the_limits_themselves_are_allowed():
    kept, dropped = keep_lengths(np.array([10, 9]), np.array([5, 3]), max_length=10, max_ratio=3.0)
    assert kept.tolist() == [True, True]
    assert str(dropped) == "left out 0 of 2 pairs"


def test_the_sentence_tells_how_many_and_why():
    dropped = Dropped(29_000, empty=0, too_long=1010, ratio=2, max_length=100, max_ratio=9.0)
    assert str(dropped) == (
        "left out 1,012 of 29,000 pairs: 1,010 longer than 100 tokens, "
        "2 with one side over 9 times as long as the other"
    )
    assert str(Dropped(5, 1, 0, 0, 100, 1.5)) == (
        "left out 1 of 5 pairs: 1 with a side of no tokens"
    )
