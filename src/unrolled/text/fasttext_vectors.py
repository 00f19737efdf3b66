"""Read fastText's binary files (.bin): vectors of words and of their character n-grams.

    int32 793712314, int32 version           11 or 12
    12 × int32, float64                      dim ws epoch minCount neg wordNgrams loss model bucket
                                             minn maxn lrUpdateRate t
    3 × int32, 2 × int64                     entries words labels, tokens, n-grams kept (−1: all)
    word \\0 int64 int8                       an entry: its count, and 0 for a word, 1 for a label
    bool, 2 × int64, float32 …               quantised?, rows, columns: of words, then of n-grams
    bool, 2 × int64, float32 …               the same of what is predicted; its size alone is read

Little-endian. A word's vector is the mean of its row and those of its n-grams, that of an unseen
word the mean of those of its n-grams (Bojanowski et al. 2017, arXiv:1607.04606). The rows stay in
the file, which is mapped: only what is asked for takes memory.
"""

import mmap
import struct
from collections.abc import Container, Iterator
from pathlib import Path
from typing import NamedTuple, NoReturn

import numpy as np
from numpy.typing import NDArray

from unrolled.errors import DataError, StorageError
from unrolled.text.subwords import Subwords
from unrolled.text.word_parts import WordParts

Floats = NDArray[np.float32]

MAGIC = 793_712_314
VERSIONS = (11, 12)
OPENING = MAGIC.to_bytes(4, "little")
ARGUMENTS = struct.Struct("<12id")
DICTIONARY = struct.Struct("<3i2q")
ENTRY = struct.Struct("<qb")
MATRIX = struct.Struct("<?2q")
SUPERVISED = 3
LINE_END = b"</s>"  # the one word that has no n-grams
MAX_WORD = 1 << 16  # bytes
MAX_WIDTH = 16_384
MAX_NGRAM = 100  # characters
ROWS_AT_ONCE = 1 << 14


class Found(NamedTuple):
    """Words, their vectors (N, E), and those of n-grams where there are some."""

    words: list[str]
    vectors: Floats
    parts: WordParts | None


class _Shape(NamedTuple):
    """What the head says."""

    width: int
    words: int
    entries: int
    buckets: int
    subwords: Subwords | None


def read_fasttext(path: Path | str, *, wanted: Container[str], most: int | None) -> Found:
    """The file's first `most` words (None: all), those `wanted` that come later, all n-grams."""
    file = _File(path, _mapped(path))
    shape = _shape(file)
    kept: dict[str, tuple[int, bytes]] = {}
    for row, raw in enumerate(_entries(file, shape)):
        word = raw.decode("utf-8", "replace")
        if word not in kept and (most is None or row < most or word in wanted):
            kept[word] = (row, raw)
    rows = _matrix(file, shape.words + shape.buckets, shape.width)
    _check_output(file)
    raw_words = [raw for _, raw in kept.values()]
    own = rows[[row for row, _ in kept.values()]]
    _check_finite(file, own)
    if shape.subwords is None:
        return Found([*kept], own, None)
    grams = rows[shape.words :]
    _check_finite(file, grams)
    parts = WordParts(shape.subwords, np.arange(shape.buckets), grams)
    return Found([*kept], _with_parts(parts, raw_words, own), parts)


def _with_parts(parts: WordParts, words: list[bytes], own: Floats) -> Floats:
    made = parts.with_words(words, own)
    if LINE_END in words:
        row = words.index(LINE_END)
        made[row] = own[row]
    return made


class _File:
    """The bytes of a file, and how far they are read."""

    def __init__(self, path: Path | str, data: mmap.mmap) -> None:
        self.path, self.data, self.at = path, data, 0

    def take(self, form: struct.Struct, what: str) -> tuple[int, ...]:
        """The next numbers."""
        if self.at + form.size > len(self.data):
            self.is_damaged(what)
        self.at += form.size
        return form.unpack_from(self.data, self.at - form.size)

    def word(self, what: str) -> bytes:
        """The next word, which a zero ends."""
        end = self.data.find(b"\0", self.at, self.at + MAX_WORD)
        if end < 0:
            self.is_damaged(what)
        begin, self.at = self.at, end + 1
        return self.data[begin:end]

    def is_damaged(self, what: str) -> NoReturn:
        """Say where."""
        raise DataError(
            self.path, f"is a fastText file that ends or is damaged at {what}; get the file again."
        )


def _mapped(path: Path | str) -> mmap.mmap:
    try:
        with open(path, "rb") as file:
            return mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    except OSError as error:
        raise StorageError(path, f"cannot be read: {error.strerror or error}.") from error


def _shape(file: _File) -> _Shape:
    _, version = file.take(struct.Struct("<2i"), "its version")
    if version not in VERSIONS:
        raise DataError(
            file.path,
            f"is a fastText file of version {version}, but 11 and 12 are known. Save the model "
            "again with fastText 0.9.",
        )
    width, *_, model, buckets, least, longest, _, _ = file.take(ARGUMENTS, "its settings")
    entries, words, labels, _, pruned = file.take(DICTIONARY, "the size of its vocabulary")
    if pruned >= 0:
        _refuse_quantised(file)
    longest = 0 if (version, model) == (11, SUPERVISED) else longest  # as fastText does
    _check(file, "the length of vectors", width, 1, MAX_WIDTH)
    _check(file, "the number of words", words, 1, len(file.data))
    _check(file, "the number of labels", labels, entries - words, entries - words)
    _check(file, "the number of n-grams", buckets, 0, len(file.data))
    _check(file, "the length of n-grams", longest, 0, MAX_NGRAM)
    has_any = buckets and 0 <= least <= longest and longest
    subwords = Subwords(least, longest, buckets) if has_any else None
    return _Shape(width, words, entries, buckets, subwords)


def _check(file: _File, what: str, number: int, least: int, most: int) -> None:
    if not least <= number <= most:
        file.is_damaged(f"{what}, which is {number:,}, but must be {least:,} to {most:,}")


def _refuse_quantised(file: _File) -> NoReturn:
    raise DataError(
        file.path,
        "is a quantised fastText model (.ftz), which holds codes in place of vectors. Name the "
        ".bin that it was made of.",
    )


def _entries(file: _File, shape: _Shape) -> Iterator[bytes]:
    """The words; the labels behind them are read over."""
    for number in range(1, shape.entries + 1):
        what = f"word {number:,} of {shape.entries:,}"
        word = file.word(what)
        _, kind = file.take(ENTRY, what)
        if kind != (number > shape.words):
            file.is_damaged(what)
        if number <= shape.words:
            yield word


def _matrix(file: _File, rows: int, width: int) -> Floats:
    """A view of the file (rows, width)."""
    found = _matrix_size(file, "the vectors")
    if found != (rows, width):
        file.is_damaged(
            f"the vectors: {found[0]:,} of {found[1]:,} numbers, but must be {rows:,} of {width:,}"
        )
    begin = file.at - 4 * rows * width
    return np.frombuffer(file.data, "<f4", rows * width, begin).reshape(rows, width)


def _matrix_size(file: _File, what: str) -> tuple[int, int]:
    """Rows and columns of a matrix that is read over; nothing is believed that is not there."""
    quantised, rows, columns = file.take(MATRIX, what)
    if quantised:
        _refuse_quantised(file)
    if rows < 0 or columns < 0 or 4 * rows * columns > len(file.data) - file.at:
        file.is_damaged(f"{what}: {rows:,} of {columns:,} numbers are more than it holds")
    file.at += 4 * rows * columns
    return rows, columns


def _check_output(file: _File) -> None:
    _matrix_size(file, "the output vectors")
    if file.at != len(file.data):
        file.is_damaged("its end: it goes on behind the last vector")


def _check_finite(file: _File, rows: Floats) -> None:
    for begin in range(0, len(rows), ROWS_AT_ONCE):
        if not np.isfinite(rows[begin : begin + ROWS_AT_ONCE]).all():
            raise DataError(
                file.path, "holds numbers that are NaN or infinite; get the file again."
            )
