"""Character n-grams of words, numbered as fastText numbers them (Bojanowski et al. 2017).

Of "<word>" with its two brackets, all runs of `least` to `most` characters; a run's number is a
hash (FNV-1a of its bytes, as fastText has it) below `buckets`, so that two runs may share one.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Longs = NDArray[np.int64]
Hashes = NDArray[np.uint32]
FIRST, PRIME = np.uint32(2166136261), np.uint32(16777619)


class _Characters(NamedTuple):
    """All words with their brackets, one after the other."""

    values: Hashes  # bytes, those above 127 as fastText's signed ones
    begins: Longs  # of characters among the bytes, and the end
    word: Longs  # of each character
    firsts: Longs  # of words among the characters, and the end


@dataclass(frozen=True)
class Subwords:
    """Which n-grams count, and how many numbers there are for them."""

    least: int
    most: int
    buckets: int

    def of(self, words: Sequence[str] | Sequence[bytes]) -> tuple[Longs, Longs]:
        """The numbers of the words' n-grams, and where each word's begin: (n,), (words + 1,).

        Words may be bytes, which need not be UTF-8: a byte 10xxxxxx belongs to the one before.
        """
        text = _characters(words)
        start, hashed = np.arange(len(text.word)), np.full(len(text.word), FIRST, np.uint32)
        owners: list[Longs] = []
        numbers: list[Hashes] = []
        for length in range(1, self.most + 1):
            inside = start + length <= text.firsts[text.word[start] + 1]
            start, hashed = start[inside], hashed[inside]
            hashed = _with_character(text, hashed, start + length - 1)
            if length >= self.least:
                kept = _is_no_bracket(text, start, length)
                owners.append(text.word[start[kept]])
                numbers.append(hashed[kept] % np.uint32(self.buckets))
        owner = np.concatenate(owners)
        order = np.argsort(owner, kind="stable")
        bounds = np.concatenate([[0], np.cumsum(np.bincount(owner, minlength=len(words)))])
        return np.concatenate(numbers)[order].astype(np.int64), bounds


def _characters(words: Sequence[str] | Sequence[bytes]) -> _Characters:
    raw = [b"<%b>" % (word if isinstance(word, bytes) else _encoded(word)) for word in words]
    values = np.frombuffer(b"".join(raw), np.int8)
    begins = np.flatnonzero((values.view(np.uint8) & 0xC0) != 0x80)
    ends = np.cumsum([0, *map(len, raw)])
    firsts = np.searchsorted(begins, ends)
    word = np.repeat(np.arange(len(words)), np.diff(firsts))
    signed = values.astype(np.int32).view(np.uint32)
    return _Characters(signed, np.append(begins, len(values)), word, firsts)


def _encoded(word: str) -> bytes:
    return word.encode("utf-8", "replace")


def _with_character(text: _Characters, hashed: Hashes, which: Longs) -> Hashes:
    """The hashes, each with one character more."""
    begin, end = text.begins[which], text.begins[which + 1]
    for byte in range(int((end - begin).max(initial=0))):
        there = begin + byte < end
        values = text.values[np.minimum(begin + byte, len(text.values) - 1)]
        hashed = np.where(there, (hashed ^ values) * PRIME, hashed)
    return hashed


def _is_no_bracket(text: _Characters, start: Longs, length: int) -> NDArray[np.bool_]:
    """A bracket alone says nothing of a word."""
    word = text.word[start]
    alone = (start == text.firsts[word]) | (start == text.firsts[word + 1] - 1)
    return ~alone if length == 1 else np.ones(len(start), dtype=bool)
