"""A text as numbers of words, in one pass and in little memory: for corpora of any size.

Runs of letters are found by csrc/letters.hpp where there are kernels. Words are numbered as they
come; whoever has counted them all gives them their final ids.
"""

from collections.abc import Iterable, Iterator
from functools import cache

import numpy as np

from unrolled.text.word_index import Ids, Lengths, Table, WordIndex

SPLITTERS = ("letters", "space")
BEYOND = 0x32400  # no letter has a code point from here on
SPACE, LINE_END = ord(" "), ord("\n")


class NumberedWords:
    """Lines in, numbers out.

    "letters": a word is a run of letters, all else parts words; "space": white space alone does.
    """

    def __init__(self, splitter: str = "letters", *, lowercase: bool = True) -> None:
        self.splitter, self.lowercase, self.index = splitter, lowercase, WordIndex()

    def pieces(self, blocks: Iterable[bytes]) -> Iterator[tuple[Ids, Lengths]]:
        """The numbers of all words of blocks of whole lines, and how many words each line has."""
        for block in blocks:
            yield self._compiled(block) or self.index.read(self.read_as(_lines_of(block)))

    def _compiled(self, block: bytes) -> tuple[Ids, Lengths] | None:
        if self.splitter != "letters":
            return None
        return self.index.read_letters(block, _letters(self.lowercase))

    def read_as(self, lines: list[str]) -> list[str]:
        """The lines with nothing but words in them, parted by spaces."""
        if self.splitter == "letters":
            return _letters_of(lines, lowercase=self.lowercase)
        return [line.lower() for line in lines] if self.lowercase else lines

    def words(self) -> list[str]:
        """All words, in the order of their numbers."""
        return self.index.words()


def _lines_of(block: bytes) -> list[str]:
    return block.decode().split("\n")[:-1]


def _letters_of(lines: list[str], *, lowercase: bool) -> list[str]:
    """Every character that is no letter as a space, many lines at a time by a table."""
    joined = "\n".join(lines).encode("utf-32-le", "replace")
    codes = np.minimum(np.frombuffer(joined, dtype="<u4"), BEYOND)
    return str(_letters(lowercase)[codes].astype("<u4").tobytes(), "utf-32-le").split("\n")


@cache
def _letters(lowercase: bool) -> Table:
    """What each code point is read as: a letter as itself, or as the small one; else a space."""
    table = np.full(BEYOND + 1, SPACE, dtype=np.uint32)
    for code in range(BEYOND):
        char = chr(code)
        if char.isalpha():
            small = char.lower()
            table[code] = ord(small) if lowercase and len(small) == 1 else code
    table[LINE_END] = LINE_END
    return table
