"""Read pretrained word vectors: word2vec text and binary, GloVe text, fastText text.

    word2vec, fastText text   N E          then a line a word:  word x1 … xE
    GloVe text                no first line of sizes
    word2vec binary           N E \\n       then word, a space, E little-endian float32
    fastText binary           see fasttext_vectors.py; its n-grams make vectors of unseen words

Both binary formats are called .bin: fastText's begins with a number of its own, word2vec's with two
sizes in digits. A file may be packed (.gz, .xz), but fastText's not. Of a word that stands twice
the first vector counts.
"""

import re
import warnings
from collections.abc import Container, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from io import BufferedReader
from itertools import chain, islice
from pathlib import Path
from typing import BinaryIO, NoReturn

import numpy as np
from numpy.typing import NDArray

from unrolled.errors import DataError, StorageError
from unrolled.text.corpus import DAMAGE, PACKINGS, read_lines
from unrolled.text.fasttext_vectors import OPENING, read_fasttext
from unrolled.text.word_parts import WordParts

Floats = NDArray[np.float32]

LINES_AT_ONCE = 1000
AT_ONCE = 1 << 20  # bytes
HEAD = 1 << 18  # bytes by which text and binary are told apart
MAX_WIDTH = 16_384
SIZE = re.compile(r"[0-9]{1,15}")
NUMBER = re.compile(r"[-+]?[0-9]*\.?[0-9]+(?:[eE][-+]?[0-9]+)?")
SPACES = re.compile(r"[ \t]+")
CONTROL = re.compile(rb"[\x00-\x08\x0e-\x1f]")
MAX_WORD = 1 << 16  # bytes of a word in a binary file


@dataclass(frozen=True, eq=False)
class WordVectors:
    """Words, their vectors (N, E), and perhaps those of n-grams."""

    words: Sequence[str]
    vectors: Floats
    parts: WordParts | None = None

    @property
    def width(self) -> int:
        return int(self.vectors.shape[1])

    def rows_for(self, vocabulary: Sequence[str]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Which places of a vocabulary have a vector here, and in which row: both (n,).

        A word takes the vector of its exact form, else that of its form in lower case; a word that
        has neither is not among the places, and keeps the small random vector it began with.
        """
        rows = {word: row for row, word in enumerate(self.words)}
        found = [rows.get(word, rows.get(word.lower(), -1)) for word in vocabulary]
        known = np.array(found, dtype=np.int64)
        places = np.flatnonzero(known >= 0)
        return places, known[places]


def read_vectors(
    path: Path | str,
    *,
    wanted: Container[str] = (),
    most: int | None = None,
    encoding: str = "utf-8",
) -> WordVectors:
    """The file's first `most` words (None: all), and those `wanted` that come later.

    Where none is wanted, nothing behind the first is read, so that no damage there is noticed.
    """
    _check_twice(path)
    head, packed = _head(path)
    if head.startswith(OPENING):
        _refuse_packed(path, packed)
        return WordVectors(*read_fasttext(path, wanted=wanted, most=most))
    rows = _binary_rows(path) if _is_binary(head) else _text_rows(path, encoding)
    words: dict[str, int] = {}
    kept: list[Floats] = []
    index = 0
    for block_words, values in rows:
        chosen = []
        for row, word in enumerate(block_words):
            if word not in words and (most is None or index < most or word in wanted):
                words[word] = len(words)
                chosen.append(row)
            index += 1
        kept.append(values[chosen])
        if most is not None and index >= most and wanted == ():
            break
    if not index:
        raise DataError(path, "holds no word vector; a line is a word and its numbers.")
    return WordVectors(list(words), np.concatenate(kept))


def _check_twice(path: Path | str) -> None:
    """Refuse what cannot be read twice, as it must be to tell text from binary."""
    place = Path(path)
    if str(path) == "-" or (place.exists() and not place.is_file() and not place.is_dir()):
        raise StorageError(
            path, "word vectors must be a file, not a pipe. Save them to a file and name that."
        )


def _head(path: Path | str) -> tuple[bytes, bool]:
    """How a file begins, unpacked, and whether it is packed."""
    with _opened(path) as file:
        return file.read(HEAD), not isinstance(file, BufferedReader)


def _refuse_packed(path: Path | str, packed: bool) -> None:
    if packed:
        raise DataError(
            path,
            "is a packed fastText file, but its vectors are read where they lie in the file. "
            "Unpack it (gunzip, unxz) and name what comes out.",
        )


def _is_binary(head: bytes) -> bool:
    """Whether sizes stand first and what follows is no text: it holds control characters."""
    first, _, rest = head.partition(b"\n")
    return _sizes(first.decode("latin-1").split()) is not None and bool(CONTROL.search(rest))


def _sizes(fields: Sequence[str]) -> tuple[int, int] | None:
    """How many words of how many numbers, if that is what the fields of the first line say."""
    if len(fields) != 2 or not all(SIZE.fullmatch(field) for field in fields):
        return None
    return int(fields[0]), int(fields[1])


def _text_rows(path: Path | str, encoding: str) -> Iterator[tuple[list[str], Floats]]:
    """Words and vectors (n, E), many lines at a time."""
    lines = read_lines(path, encoding=encoding)
    first = next(lines, "").split()
    if not first:
        return
    sizes = _sizes(first)
    width = sizes[1] if sizes else len(first) - 1
    _check_width(path, width)
    numbered: Iterable[tuple[int, str]] = enumerate(lines, start=2)
    if sizes is None:
        numbered = chain([(1, " ".join(first))], numbered)
    numbered = ((number, line) for number, line in numbered if line.strip())
    count = 0
    while block := list(islice(numbered, LINES_AT_ONCE)):
        count += len(block)
        yield _parsed(path, block, width)
    if sizes is not None and sizes[0] != count:
        raise DataError(
            path,
            f"has {count:,} vectors, but its first line says {sizes[0]:,}. It is cut off or "
            "damaged; get it again, or mend the first line.",
        )


def _parsed(path: Path | str, block: list[tuple[int, str]], width: int) -> tuple[list[str], Floats]:
    """A word may hold spaces, so the numbers are counted from the end of the line."""
    fields = [line.rstrip().rsplit(" ", width) for _, line in block]
    words = [row[0].strip(" \t") for row in fields]
    try:
        _check_words(words)
        return words, _numbers([row[1:] for row in fields], width)
    except ValueError:
        if len(block) > 1:
            halves = (block[: len(block) // 2], block[len(block) // 2 :])
            parts = [_parsed(path, half, width) for half in halves]  # the wrong one raises
            return parts[0][0] + parts[1][0], np.concatenate([part[1] for part in parts])
        number, line = block[0]
        if (plain := SPACES.sub(" ", line.strip(" \t"))) != line:
            return _parsed(path, [(number, plain)], width)
        raise DataError(
            path,
            f"is {line[:40]!r}, but must be a word and {width} finite numbers, with spaces "
            "between them, as in the first line.",
            line=number,
        ) from None


def _check_words(words: Sequence[str]) -> None:
    """ValueError where a number is left over: the row is too long, and that is no word's end."""
    for word in words:
        if " " in word and NUMBER.fullmatch(word.rpartition(" ")[2]):
            raise ValueError("there are more numbers than in the first line")


def _numbers(rows: Sequence[Sequence[str]], width: int) -> Floats:
    """Rows of `width` finite numbers each (n, E); ValueError if they are not."""
    if any(len(row) != width for row in rows):
        raise ValueError("a row has another width")
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # what is no number is a mere warning else
        try:
            values = np.fromstring(" ".join(chain.from_iterable(rows)), np.float32, sep=" ")
        except DeprecationWarning as error:
            raise ValueError("a field is no number") from error
    if values.size != len(rows) * width or not np.isfinite(values).all():
        raise ValueError("a field is no finite number")
    return values.reshape(len(rows), width)


def _binary_rows(path: Path | str) -> Iterator[tuple[list[str], Floats]]:
    with _opened(path) as file:
        sizes = _sizes(file.readline(HEAD).decode("latin-1").split())
        assert sizes is not None  # or it would have been read as text
        count, width = sizes
        _check_width(path, width)
        rows = _BinaryRows(path, file, count, width)
        for start in range(0, count, LINES_AT_ONCE):
            yield rows.next(min(LINES_AT_ONCE, count - start))
        if (rows.left() + file.read(1 << 10)).strip(b"\n"):
            raise DataError(
                path,
                f"goes on behind the {count:,} vectors that its first line speaks of; it is "
                "damaged, or no file of word vectors.",
            )


class _BinaryRows:
    """The rows of word2vec's binary form, cut out of what is read a piece at a time."""

    def __init__(self, path: Path | str, file: BinaryIO, count: int, width: int) -> None:
        self.path, self.file, self.count, self.width = path, file, count, width
        self.data, self.at, self.row = b"", 0, 0

    def next(self, some: int) -> tuple[list[str], Floats]:
        """So many more words and vectors (n, E)."""
        pairs = [self._row() for _ in range(some)]
        values = np.frombuffer(b"".join([numbers for _, numbers in pairs]), "<f4")
        values = values.reshape(some, self.width)
        finite = np.isfinite(values).all(1)
        if not finite.all():
            self._is_damaged(self.row - some + int(finite.argmin()))
        return [word.lstrip(b"\n").decode("utf-8", "replace") for word, _ in pairs], values

    def left(self) -> bytes:
        """What is read, but belongs to no row."""
        return self.data[self.at :]

    def _row(self) -> tuple[bytes, bytes]:
        while (end := self.data.find(b" ", self.at, self.at + MAX_WORD)) < 0 or (
            end + 4 * self.width >= len(self.data)
        ):
            too_long = end < 0 and len(self.data) - self.at >= MAX_WORD
            if too_long or not (more := self.file.read(AT_ONCE)):
                self._is_damaged(self.row)
            self.data, self.at = self.left() + more, 0
        begin, self.at, self.row = self.at, end + 1 + 4 * self.width, self.row + 1
        return self.data[begin:end], self.data[end + 1 : self.at]

    def _is_damaged(self, row: int) -> NoReturn:
        raise DataError(
            self.path,
            f"ends or is damaged at word {row + 1} of {self.count} (vectors of {self.width} "
            "numbers); get the file again.",
        )


def _check_width(path: Path | str, width: int) -> None:
    if not 1 <= width <= MAX_WIDTH:
        raise DataError(
            path,
            f"has vectors of {width} numbers, but there must be 1 to {MAX_WIDTH}: a word, then its "
            "numbers, with spaces between them.",
            line=1,
        )


@contextmanager
def _opened(path: Path | str) -> Iterator[BinaryIO]:
    """The bytes of a file, unpacked; what goes wrong with them is the user's to know."""
    try:
        with open(path, "rb") as file:
            head = file.read(8)
            file.seek(0)
            openers = [make for magic, _, make in PACKINGS.values() if head.startswith(magic)]
            yield openers[0](file) if openers else file
    except DAMAGE as error:
        raise DataError(path, f"the compressed file is cut off or damaged ({error}).") from error
    except OSError as error:
        raise StorageError(path, f"cannot be read: {error.strerror or error}.") from error
