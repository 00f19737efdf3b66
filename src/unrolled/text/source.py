"""Where data come from, and by what to know them again."""

import hashlib
from collections import deque
from collections.abc import Iterable, Iterator
from itertools import islice
from pathlib import Path
from typing import NamedTuple, TypeVar

from unrolled.text.corpus import read_line_blocks, read_lines, shown_name

T = TypeVar("T")

LINES_AT_ONCE = 1000
Fingerprint = dict[str, int | str]


class Source(NamedTuple):
    """A file, or of parallel files what their names share; "-" is standard input."""

    path: Path | str
    encoding: str = "utf-8"

    def lines(self) -> "TrackedLines":
        """Its lines, in one pass."""
        return TrackedLines(read_lines(self.path, encoding=self.encoding))

    @property
    def is_file(self) -> bool:
        """Whether it is there as a whole and can be read twice: no pipe, no terminal."""
        return str(self.path) != "-" and Path(self.path).is_file()

    def arriving(self) -> "ArrivingLines":
        """Its lines as they come, in one pass."""
        blocks = read_line_blocks(self.path, encoding=self.encoding)
        return ArrivingLines(blocks, name=shown_name(self.path), is_whole=self.is_file)


class ArrivingLines(Iterator[str]):
    """Lines that may still be on their way: whoever takes them can see when the next is not there.

    Of a file, which is there as a whole, the blocks are the same each time; of a pipe they are what
    has come.
    """

    def __init__(
        self, blocks: Iterable[Iterable[str]], *, name: Path | str, is_whole: bool = True
    ) -> None:
        self._blocks, self._ready = iter(blocks), deque[str]()
        self.name, self.is_whole = name, is_whole

    def __next__(self) -> str:
        while not self._ready:
            self._ready.extend(next(self._blocks))
        return self._ready.popleft()

    @property
    def must_wait(self) -> bool:
        """Whether no line is at hand."""
        return not self._ready

    def head(self, count: int) -> list[str]:
        """The first lines, which are still to come: so many of a file, of a pipe one."""
        count = count if self.is_whole else 1
        while len(self._ready) < count and (block := next(self._blocks, None)) is not None:
            self._ready.extend(block)
        return list(islice(self._ready, count))


class TrackedLines:
    """Lines as they pass by, in one go, and the fingerprint of those that have."""

    def __init__(self, lines: Iterable[str]) -> None:
        self._lines, self._digest, self._count = lines, hashlib.sha256(), 0

    def __iter__(self) -> Iterator[str]:
        lines = iter(self._lines)
        while chunk := list(islice(lines, LINES_AT_ONCE)):
            self._digest.update("\n".join([*chunk, ""]).encode("utf-8", "surrogatepass"))
            self._count += len(chunk)
            yield from chunk

    def fingerprint(self) -> Fingerprint:
        """How many lines have passed, and their digest."""
        return {"lines": self._count, "sha256": self._digest.hexdigest()}


class TrackedBlocks:
    """The same of blocks of whole lines of UTF-8."""

    def __init__(self, blocks: Iterable[bytes]) -> None:
        self._blocks, self._digest, self._count = blocks, hashlib.sha256(), 0

    def __iter__(self) -> Iterator[bytes]:
        for block in self._blocks:
            self._digest.update(block)
            self._count += block.count(b"\n")
            yield block

    def fingerprint(self) -> Fingerprint:
        """How many lines have passed, and their digest."""
        return {"lines": self._count, "sha256": self._digest.hexdigest()}


def one_ahead(items: Iterable[T]) -> Iterator[T]:
    """The same, the next being fetched while one is worked on; not for what a user must send."""
    from concurrent.futures import ThreadPoolExecutor  # --help does without

    coming = iter(items)
    with ThreadPoolExecutor(1) as pool:
        following = pool.submit(list, islice(coming, 1))
        while found := following.result():
            following = pool.submit(list, islice(coming, 1))
            yield found[0]


def fingerprint_of(lines: Iterable[str]) -> Fingerprint:
    """Of all these lines."""
    tracked = TrackedLines(lines)
    for _ in tracked:
        pass
    return tracked.fingerprint()
