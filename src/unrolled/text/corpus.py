"""Read lines of text from a file, plain or compressed, or from standard input.

A byte order mark, CRLF line ends or a missing last line end change nothing about the lines.
What cannot be read is named by file, line and column; memory holds a block and the longest line.
"""

import codecs
import gzip
import io
import lzma
import re
import sys
import zlib
from collections.abc import Callable, Generator, Iterator
from contextlib import AbstractContextManager, closing, nullcontext, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO, cast

from unrolled.errors import ConfigError, DataError, StorageError, shown

BLOCK = 1 << 20  # bytes read at once
MAX_LINE = 1 << 28  # characters; more than a block holds
MAX_UNPACKED = 1 << 25  # bytes that any compressed file may give
MAX_RATIO = 50  # and how many for each of its own

PACKINGS: dict[
    str, tuple[bytes, str, Callable[..., Any]]
] = {  # extension: first bytes, name, opener
    ".gz": (b"\x1f\x8b", "gzip", gzip.open),
    ".xz": (b"\xfd7zXZ\x00", "xz", lzma.open),
}
SURROGATE = re.compile("[\ud800-\udfff]")  # half of a character
STDIN = "<stdin>"
Lines = Generator[list[str], None, None]
DAMAGE = (EOFError, gzip.BadGzipFile, zlib.error, lzma.LZMAError)


def read_lines(path: Path | str, *, encoding: str = "utf-8") -> Iterator[str]:
    """The lines of a file, of a `.gz` or `.xz` file, or of standard input if the path is "-".

    A line ends at "\\n" alone; one "\\r" before it is dropped, as is a byte order mark.
    """
    with closing(read_line_blocks(path, encoding=encoding)) as blocks:
        for lines in blocks:
            yield from lines


def read_line_blocks(path: Path | str, *, encoding: str = "utf-8") -> Lines:
    """The same, as many lines at a time as have come: of a file a block's, of a pipe what is there.

    Before the first line is read nothing is opened.
    """
    for text in _whole_lines(path, encoding):
        yield text.split("\n")[:-1]


def read_utf8_blocks(path: Path | str, *, encoding: str = "utf-8") -> Iterator[bytes]:
    """The same lines as UTF-8, each ended by "\\n", a block's at a time and not taken apart."""
    for text in _whole_lines(path, encoding):
        yield text.encode()


def _whole_lines(path: Path | str, encoding: str) -> Iterator[str]:
    """What has come, up to the end of its last line; all lines end in "\\n"."""
    decoder = _decoder(encoding)
    place = _Place(shown_name(path), encoding)
    pending: list[str] = []  # the line that is not yet at its end, in pieces
    for text in _texts(_blocks(path, place), decoder, place):
        end = text.rfind("\n") + 1
        if end:
            whole = "".join([*pending, text[:end]])
            pending.clear()
            yield whole.replace("\r\n", "\n") if "\r" in whole else whole
        pending.append(text[end:])
    if last := "".join(pending):
        yield last.removesuffix("\r") + "\n"


def shown_name(path: Path | str) -> str:
    """What a file is called in messages."""
    return STDIN if str(path) == "-" else str(path)


@dataclass
class _Place:
    """Where in the text the reader stands."""

    path: Path | str
    encoding: str
    line: int = 1
    column: int = 0  # characters of this line that are read

    def advance(self, text: str) -> None:
        """Step over a text that must not hold NUL or a line beyond all measure."""
        nul = text.find("\0")
        if nul >= 0:
            self._move(text[:nul])
            raise self.error("holds the character NUL (0), so it is no text; check the file.")
        try:
            text.encode()
        except UnicodeEncodeError as lone:
            self._move(text[: lone.start])
            raise self.error(
                "holds half of a character (a lone surrogate), so it is no text."
            ) from lone
        line_end = text.find("\n")
        if self.column + (line_end if line_end >= 0 else len(text)) > MAX_LINE:
            self.column = MAX_LINE
            raise self.error(f"the line is longer than {MAX_LINE} characters; cut it into lines.")
        self._move(text)

    def _move(self, text: str) -> None:
        line_end = text.rfind("\n")
        self.column = len(text) - line_end - 1 if line_end >= 0 else self.column + len(text)
        self.line += text.count("\n")

    def error(self, problem: str) -> DataError:
        return DataError(self.path, problem, line=self.line, column=self.column + 1)


def _decoder(encoding: str) -> codecs.IncrementalDecoder:
    try:
        b"a".decode(encoding)  # unlike codecs.lookup, this refuses codecs that give no text
    except UnicodeDecodeError:
        pass  # a real encoding, in which one byte is no character
    except (LookupError, ValueError) as error:
        raise ConfigError(
            f"encoding is {shown(encoding)}, but must be one that Python knows, such as utf-8, "
            "utf-16, latin-1, cp1252 or shift_jis."
        ) from error
    return codecs.getincrementaldecoder(encoding)()


def _texts(
    blocks: Iterator[bytes], decoder: codecs.IncrementalDecoder, place: _Place
) -> Iterator[str]:
    started = False
    for block in blocks:
        text = _decoded(decoder, block, place, started=started)
        started = started or bool(text)
        yield text
    yield _decoded(decoder, b"", place, started=started, final=True)


def _decoded(
    decoder: codecs.IncrementalDecoder,
    block: bytes,
    place: _Place,
    *,
    started: bool,
    final: bool = False,
) -> str:
    before = decoder.getstate()
    failure: UnicodeError | None = None
    try:
        text = decoder.decode(block, final)
    except UnicodeError as error:
        failure, text = error, _readable(decoder, block, before, error)
    text = text if started else text.removeprefix("\ufeff")
    place.advance(text)
    if failure is not None:
        raise place.error(_bad_bytes(failure, place.encoding)) from failure
    return text


def _readable(
    decoder: codecs.IncrementalDecoder,
    block: bytes,
    before: tuple[bytes, int],
    error: UnicodeError,
) -> str:
    """What of a block can be decoded before the place of the error."""
    if not isinstance(error, UnicodeDecodeError):
        return ""
    decoder.setstate(before)
    with suppress(UnicodeError):  # some codecs need the whole: then no place is known
        return decoder.decode(block[: max(0, error.start - len(before[0]))])
    return ""


def _bad_bytes(error: UnicodeError, encoding: str) -> str:
    seen = "the text"
    if isinstance(error, UnicodeDecodeError):
        seen = f"byte 0x{error.object[error.start]:02x}"
    return f"{seen} is not valid {encoding}; name the file's encoding with --encoding."


def _blocks(path: Path | str, place: _Place) -> Iterator[bytes]:
    try:
        with _opened(path) as raw:
            stream = _unpacked(raw, place)
            while block := stream.read1(BLOCK):  # read1: a line typed or piped is not kept waiting
                yield block
    except DAMAGE as error:
        raise place.error(
            f"the compressed file is cut off or damaged here ({error}); get or make it anew."
        ) from error
    except (OSError, ValueError) as error:
        if isinstance(error, DataError):
            raise
        raise _storage_error(place.path, error) from error


def _opened(path: Path | str) -> AbstractContextManager[io.BufferedReader]:
    if str(path) != "-":
        return open(path, "rb")
    stream: BinaryIO = sys.stdin.buffer
    return nullcontext(
        stream
        if isinstance(stream, io.BufferedReader)
        else io.BufferedReader(cast(io.RawIOBase, stream))
    )


class Unpacked:
    """What is packed in a stream, as long as it is in proportion to its size."""

    def __init__(
        self, opener: Callable[..., Any], raw: io.BufferedReader, path: Path | str
    ) -> None:
        self._raw, self._path, self._packed, self._given = raw, path, 0, 0
        self._stream = opener(self)

    def read(self, size: int = -1) -> bytes:
        """Packed bytes, for the opener."""
        data = self._raw.read1(size)
        self._packed += len(data)
        return data

    def read1(self, size: int) -> bytes:
        """Bytes as they come out."""
        data: bytes = self._stream.read1(size)
        self._given += len(data)
        if self._given > max(MAX_UNPACKED, MAX_RATIO * self._packed):
            raise DataError(
                self._path,
                f"{self._packed:,} compressed bytes have become {self._given:,}, but they may "
                f"become at most {MAX_RATIO} times as many, or {MAX_UNPACKED:,}. If that is right, "
                "unpack the file first.",
            )
        return data


def _unpacked(raw: io.BufferedReader, place: _Place) -> Any:
    """The stream itself, or what is packed in it: its first bytes decide, its name must agree."""
    head, suffix = raw.peek(6), Path(place.path).suffix.lower()
    for extension, (magic, name, opener) in PACKINGS.items():
        if head.startswith(magic):
            return Unpacked(opener, raw, place.path)
        if suffix == extension:
            raise DataError(
                place.path,
                f"the name ends in {extension}, but the file does not begin as {name} does "
                f"({magic.hex(' ')}) but with {head[: len(magic)].hex(' ') or 'nothing'}; "
                "rename it or compress it.",
            )
    return raw


def _storage_error(path: Path | str, error: OSError | ValueError) -> StorageError:
    if isinstance(error, FileNotFoundError):
        return StorageError(path, "there is no such file; check the spelling and the folder.")
    if isinstance(error, IsADirectoryError):
        return StorageError(path, "this is a folder, but a file is needed; name a file in it.")
    if isinstance(error, PermissionError):
        return StorageError(path, "the file may not be read; check its permissions.")
    reason = getattr(error, "strerror", None) or error
    return StorageError(path, f"the file cannot be read ({reason}); check the path and the disk.")
