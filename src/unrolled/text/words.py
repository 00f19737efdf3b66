"""Characters and words as tokens, counted and looked up many lines at a time."""

import re
import unicodedata
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cache
from itertools import chain

import numpy as np
from numpy.typing import NDArray

from unrolled.errors import not_one_of
from unrolled.text.vocabulary import SPECIALS, UNK, Vocabulary
from unrolled.text.word_index import WordIndex

Ids = NDArray[np.int32]
Lengths = NDArray[np.int64]
IdsOfLines = Callable[[Sequence[str]], tuple[Ids, Lengths]]  # all ids, and how many of each line

CHUNK = 1 << 20  # characters counted or encoded at once
JOINER = "￭"  # U+FFED before a token: no white space stood there
INNER = "'’·\u200c\u200d\u2010\u2011-"  # between two letters these belong to the word
GAP = re.compile(r"[ \t\r\n\f\v]")
PUNCTUATION = re.compile(r"[^\w\s]")
SPLITTERS = ("space", "unicode")


class CharTokeniser:
    """Each Unicode code point is a token."""

    def split(self, text: str) -> list[str]:
        return list(text)

    def join(self, tokens: Sequence[str]) -> str:
        return "".join(tokens)

    def vocabulary(
        self, lines: Sequence[str], *, min_count: int, max_size: int | None
    ) -> Vocabulary:
        total = np.zeros(0x110000, dtype=np.int64)
        for chunk in in_chunks(lines):
            counts = np.bincount(_code_points(chunk))
            total[: len(counts)] += counts
        seen = {chr(code): int(total[code]) for code in np.flatnonzero(total)}
        return Vocabulary.build(seen, ends=len(lines), min_count=min_count, max_size=max_size)

    def reader(self, vocabulary: Vocabulary) -> IdsOfLines:
        """A function from lines to ids, by a table from code point to id."""
        ordinary = vocabulary.tokens[len(SPECIALS) :]
        if any(len(token) != 1 for token in ordinary):
            raise ValueError("a token of a vocabulary of characters has not one character")
        codes = _code_points(ordinary)
        table = np.full(int(codes.max(initial=0)) + 2, UNK, dtype=np.int32)  # the last: all beyond
        table[codes] = np.arange(len(SPECIALS), len(vocabulary))

        def ids_of(lines: Sequence[str]) -> tuple[Ids, Lengths]:
            return table[np.minimum(_code_points(lines), len(table) - 1)], lengths_of(lines)

        return ids_of


class WordTokeniser:
    """Words, parted by white space alone or also by punctuation.

    "space" keeps punctuation on its word. "unicode" cuts it off, one token a character, and marks
    each token that no white space precedes with a joiner, so that the text can be restored.
    White space comes back as one space; a joiner in the text itself survives, for a bare one
    is never a mark.
    """

    def __init__(self, splitter: str = "space", lowercase: bool = False) -> None:
        if splitter not in SPLITTERS:
            raise not_one_of("tokens.splitter", splitter, SPLITTERS)
        self.splitter, self.lowercase = splitter, lowercase

    def split(self, text: str) -> list[str]:
        text = text.lower() if self.lowercase else text
        if self.splitter == "unicode":
            text = PUNCTUATION.sub(_cut_off, text)
        return text.split()

    def join(self, tokens: Sequence[str]) -> str:
        if self.splitter == "space":
            return " ".join(tokens)
        joined = (
            token[1:] if token[0] == JOINER and len(token) > 1 else f" {token}" for token in tokens
        )
        return "".join(joined).removeprefix(" ")

    def vocabulary(
        self, lines: Sequence[str], *, min_count: int, max_size: int | None
    ) -> Vocabulary:
        counts = Counter(chain.from_iterable(map(self.split, lines)))
        return Vocabulary.build(counts, ends=len(lines), min_count=min_count, max_size=max_size)

    def reader(self, vocabulary: Vocabulary) -> IdsOfLines:
        """A function from lines to ids.

        A token may hold a no-break space, as other tools' do: no text here has such a word.
        """
        if any(not token or GAP.search(token) for token in vocabulary.tokens):
            raise ValueError("a token of a vocabulary of words is empty or holds white space")
        if self.splitter == "space" and not self.lowercase:
            return self._indexed(vocabulary)

        def ids_of(lines: Sequence[str]) -> tuple[Ids, Lengths]:
            lengths: list[int] = []

            def words() -> Iterator[list[str]]:  # one line at a time: its words stay in the cache
                for line in lines:
                    found = self.split(line)
                    lengths.append(len(found))
                    yield found

            ids = vocabulary.encode(chain.from_iterable(words()))
            return ids, np.array(lengths, dtype=np.int64)

        return ids_of

    @staticmethod
    def _indexed(vocabulary: Vocabulary) -> IdsOfLines:
        """The same where white space alone parts words: many lines at a time, compiled."""
        control, words = vocabulary.tokens[: len(SPECIALS)], vocabulary.tokens[len(SPECIALS) :]
        known = [*(f" {token}" for token in control), *words]  # no word of a text has a space
        index = cache(lambda: WordIndex(known))  # not made before it is needed

        def ids_of(lines: Sequence[str]) -> tuple[Ids, Lengths]:
            return index().read(lines, unknown=UNK)

        return ids_of


def in_chunks(lines: Iterable[str]) -> Iterator[list[str]]:
    """The lines in runs of about a million characters."""
    chunk: list[str] = []
    size = 0
    for line in lines:
        chunk.append(line)
        size += len(line) + 1
        if size >= CHUNK:
            yield chunk
            chunk, size = [], 0
    if chunk:
        yield chunk


def lengths_of(rows: Sequence[Sequence[object]]) -> Lengths:
    """(rows,)"""
    return np.fromiter(map(len, rows), np.int64, len(rows))


def _code_points(texts: Sequence[str]) -> NDArray[np.uint32]:
    return np.frombuffer("".join(texts).encode("utf-32-le", "surrogatepass"), dtype="<u4")


def _cut_off(found: re.Match[str]) -> str:
    """A character that is neither letter nor space, parted from its neighbours by marked spaces."""
    text, place = found.string, found.start()
    char, before, after = found[0], text[place - 1 : place], text[place + 1 : place + 2]
    if _is_letter(char) or (char in INNER and _is_letter(before) and _is_letter(after)):
        return char
    left = f" {JOINER}" if before and not before.isspace() else ""
    right = f" {JOINER}" if _is_letter(after) else ""  # another such character parts itself
    return f"{left}{char}{right}"


@cache
def _is_letter(char: str) -> bool:
    """Part of a word: as \\w says, or a combining mark, which \\w leaves out."""
    return char.isalnum() or char == "_" or (char != "" and unicodedata.category(char)[0] == "M")
