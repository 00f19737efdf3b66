"""Where data come from, and by what to know them again."""

import hashlib
from collections.abc import Iterable, Iterator
from itertools import islice
from pathlib import Path
from typing import NamedTuple

from unrolled.text.corpus import read_lines

LINES_AT_ONCE = 1000
Fingerprint = dict[str, int | str]


class Source(NamedTuple):
    """A file, or of parallel files what their names share; "-" is standard input."""

    path: Path | str
    encoding: str = "utf-8"

    def lines(self) -> "TrackedLines":
        """Its lines, in one pass."""
        return TrackedLines(read_lines(self.path, encoding=self.encoding))


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


def fingerprint_of(lines: Iterable[str]) -> Fingerprint:
    """Of all these lines."""
    tracked = TrackedLines(lines)
    for _ in tracked:
        pass
    return tracked.fingerprint()
