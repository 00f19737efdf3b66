"""Words by number, looked up many lines at a time; compiled where the package has its kernels."""

from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, repeat

import numpy as np
from numpy.typing import NDArray

from unrolled.native import module

Ids = NDArray[np.int32]
Lengths = NDArray[np.int64]
Table = NDArray[np.uint32]  # what each code point is read as

UTF8 = ("utf-8", "surrogatepass")  # half a surrogate pair is no text, yet a str may hold it


class Numbers(dict[str, int]):
    """Numbers by word; a word that is asked for the first time gets the next."""

    def __missing__(self, word: str) -> int:
        number = self[word] = len(self)
        return number


class PlainIndex:
    """The kernel's twin: a dictionary."""

    def __init__(self) -> None:
        self._ids = Numbers()

    def add(self, word: bytes) -> int:
        return self._ids[word.decode(*UTF8)]

    def read(self, lines: Sequence[str], unknown: int) -> tuple[Ids, Lengths]:
        lengths: list[int] = []

        def words() -> Iterator[list[str]]:  # one line at a time: its words stay in the cache
            for line in lines:
                found = line.split()
                lengths.append(len(found))
                yield found

        flat = chain.from_iterable(words())
        if unknown < 0:
            ids = np.fromiter(map(self._ids.__getitem__, flat), np.int32)
        else:
            ids = np.fromiter(map(self._ids.get, flat, repeat(unknown)), np.int32)
        return ids, np.array(lengths, dtype=np.int64)

    def words(self) -> list[bytes]:
        return [word.encode(*UTF8) for word in self._ids]


KERNEL: "type[module.WordIndex] | type[PlainIndex]" = module.WordIndex if module else PlainIndex


class WordIndex:
    """Different words, numbered in the order in which they came; white space parts them."""

    def __init__(self, words: Iterable[str] = ()) -> None:
        self._index = KERNEL()
        for word in words:
            self._index.add(word.encode(*UTF8))

    def read(self, lines: Sequence[str], *, unknown: int | None = None) -> tuple[Ids, Lengths]:
        """The ids of all words, and how many words each line has.

        A new word gets the number `unknown`; without that, the next one.
        """
        new = -1 if unknown is None else unknown
        try:
            found = self._index.read(list(lines), new)
        except UnicodeEncodeError:  # the kernel's: a dictionary takes any str
            assert not isinstance(self._index, PlainIndex)
            found = self._index.read([line.encode(*UTF8) for line in lines], new)
        return found

    def read_letters(self, text: bytes, table: Table) -> tuple[Ids, Lengths] | None:
        """The same of whole lines of UTF-8, words being runs of letters, read as a table says.

        None where nothing is compiled.
        """
        if isinstance(self._index, PlainIndex):
            return None
        return self._index.read_letters(text, table)

    def words(self) -> list[str]:
        """All words, in the order of their numbers."""
        return [word.decode(*UTF8) for word in self._index.words()]
