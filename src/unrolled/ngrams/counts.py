"""Count n-grams: all runs of 1 … n tokens of "<s> line </s>", for every line by itself.

The places of a text are sorted by the n-grams that end there, one order after the other. Once they
are sorted by k tokens, the places after them are sorted by the k tokens before: to sort those by
k + 1 tokens, only the places of the same group of k are sorted again, each by its own token. Many
groups are sorted at once, as whole numbers

    key = group << … | token << … | place in the block

one block after the other, so that only a block needs memory. The distinct keys, in their order, are
the next level of a trie. The same in C++, which sorts one group at a time: csrc/ngram_counts.hpp.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from unrolled.ngrams.kernels import counter_of
from unrolled.ngrams.scratch import Scratch
from unrolled.text.tokens import END, START

Ints = NDArray[Any]  # int32 where that is enough, int64 elsewhere
Counts = NDArray[np.int64]
Keys = NDArray[np.uint64]

BLOCK = 1 << 20  # places; with two such numbers and a token, a key has at most 64 bits


@dataclass(frozen=True, eq=False)
class Grams:
    """The distinct n-grams of one order, N of them, sorted by prefix and last token."""

    words: NDArray[np.int32]  # (N,) last tokens, ascending within a prefix
    begin: Counts  # (prefixes + 1,) where the n-grams of each prefix begin
    suffix: Ints  # (N,) the n-gram of the order below that is left without the first token
    count: Counts  # (N,)

    def __len__(self) -> int:
        return len(self.words)


class Block(NamedTuple):
    """The n-grams of some prefixes, n of them at m places."""

    words: NDArray[np.int32]  # (n,)
    times: Counts  # (n,) how often each comes
    groups: Counts  # (n,) whose prefix it has
    places: Ints  # (m,) where they end, in their order


class Ends(NamedTuple):
    """Where n-grams end in a text of N tokens."""

    here: Ints  # (N,) the n-gram of the order below that ends at each place
    places: Ints  # (m,) sorted by prefix; counting leaves the places after each n-gram there
    above: Ints | None  # (N,) to be told which n-gram ends at each place, but for the last order


def count_ngrams(
    ids: NDArray[np.int32], order: int, vocabulary_size: int, scratch: Scratch | None = None
) -> list[Grams]:
    """The n-grams of orders 1 … order of lines of ids (N,), each line closed by END.

    Orders beyond the longest line are there, and empty.
    """
    scratch = scratch or Scratch()
    index = np.int32 if len(ids) < 2**31 else np.int64
    counter = counter_of(ids, vocabulary_size)
    grams = [_unigrams(ids, vocabulary_size)]
    here: Ints = ids
    places = _by_token_before(ids, grams[0], scratch.empty(len(ids), index), counter)
    for k in range(2, order + 1):
        above = scratch.empty(len(ids), index) if k < order else None
        level, after = _level(ids, grams[-1], Ends(here, places, above), scratch, counter=counter)
        grams.append(level)
        if above is not None:
            here, places = above, places[:after]
    return grams


def spans(begin: Counts, at_once: int) -> Iterator[tuple[int, int]]:
    """Ranges of groups that have about so many members together; `begin` (groups + 1,)."""
    first, last = 0, len(begin) - 1
    while first < last:
        beyond = int(np.searchsorted(begin, begin[first] + at_once, side="right")) - 1
        stop = min(last, max(first + 1, beyond))
        yield first, stop
        first = stop


def _unigrams(ids: NDArray[np.int32], vocabulary_size: int) -> Grams:
    """Every token of the vocabulary, seen or not; <s> as often as there are lines."""
    count = np.bincount(ids, minlength=vocabulary_size).astype(np.int64)
    count[START] = count[END]
    words = np.arange(vocabulary_size, dtype=np.int32)
    return Grams(words, np.array([0, vocabulary_size]), np.zeros(vocabulary_size, np.int32), count)


def _groups(below: Grams, scratch: Scratch) -> Counts:
    """Where the places that follow each n-gram begin (N + 1,).

    There are as many as the n-gram comes times, or none if it ends a line.
    """
    groups = scratch.zeros(len(below) + 1, np.int64)
    for start in range(0, len(below), BLOCK):
        here = slice(start, start + BLOCK)
        groups[1:][here] = np.where(below.words[here] == END, 0, below.count[here])
    return np.cumsum(groups, out=groups)


def _by_token_before(
    ids: NDArray[np.int32], unigrams: Grams, places: Ints, counter: Any | None
) -> Ints:
    """Fill in all places (N,), sorted by the token before, which is <s> where a line begins."""
    free = _groups(unigrams, Scratch())[:-1]  # where the next place of each token goes
    if counter is not None:
        counter.by_token_before(free, places)
        return places
    for start in range(0, len(ids), BLOCK):
        before = ids[max(0, start - 1) : min(start + BLOCK, len(ids)) - 1]
        before = np.where(before == END, START, before)
        before = before if start else np.insert(before, 0, START)
        keys, order = _sorted(before.astype(np.uint64))
        starts = _starts(keys)
        tokens, times = keys[starts].astype(np.int64), np.diff(starts, append=len(keys))
        places[np.arange(len(keys)) + np.repeat(free[tokens] - starts, times)] = order + start
        free[tokens] += times
    return places


def _level(
    ids: NDArray[np.int32], below: Grams, ends: Ends, scratch: Scratch, *, counter: Any | None
) -> tuple[Grams, int]:
    """The n-grams of one order more than `below`, and how many places after them are left."""
    size = len(ends.places)
    words, count = scratch.empty(size, np.int32), scratch.empty(size, np.int64)
    suffix, begin = scratch.empty(size, ends.places.dtype), scratch.zeros(len(below) + 1, np.int64)
    found = Grams(words, begin, suffix, count)
    if counter is not None:
        size, after = counter.level(below.words, below.count, *ends, words, count, suffix, begin)
    else:
        size, after = _fill(found, ids, below, ends, scratch)
    return Grams(words[:size], begin, suffix[:size], count[:size]), after


def _fill(
    found: Grams, ids: NDArray[np.int32], below: Grams, ends: Ends, scratch: Scratch
) -> tuple[int, int]:
    """The same in numpy: how many n-grams were found, and how many places are left."""
    end, after = 0, 0
    groups = _groups(below, scratch)
    for first, last in spans(groups, min(BLOCK, scratch.block or BLOCK)):
        here_only = slice(int(groups[first]), int(groups[last]))
        block = _sorted_block(ids, ends.places[here_only], np.diff(groups[first : last + 1]))
        starts, stop = np.cumsum(block.times) - block.times, end + len(block.words)
        found.words[end:stop], found.count[end:stop] = block.words, block.times
        found.suffix[end:stop] = ends.here[block.places[starts]]
        found.begin[first + 1 : last + 1] = np.bincount(block.groups, minlength=last - first)
        if ends.above is not None:
            ends.above[block.places] = np.repeat(np.arange(end, stop), block.times)
            left = block.places[np.repeat(block.words != END, block.times)] + 1
            ends.places[after : after + len(left)] = left
            after += len(left)
        end = stop
    np.cumsum(found.begin, out=found.begin)
    return end, after


def _sorted_block(ids: NDArray[np.int32], places: Ints, sizes: Counts) -> Block:
    """Places (m,) of groups of these sizes, sorted by their own token within each group."""
    some = np.flatnonzero(sizes)
    group = np.repeat(np.arange(len(some), dtype=np.uint64), sizes[some])
    tokens = ids[places].astype(np.uint64)
    bits = np.uint64(int(tokens.max(initial=1)).bit_length())
    keys, order = _sorted(group << bits | tokens)
    starts = _starts(keys)
    words = (keys[starts] & ((np.uint64(1) << bits) - np.uint64(1))).astype(np.int32)
    groups = some[(keys[starts] >> bits).astype(np.int64)]
    return Block(words, np.diff(starts, append=len(keys)), groups, places[order])


def _sorted(keys: Keys) -> tuple[Keys, Counts]:
    """The keys in order, and where each came from; together they must fit into 64 bits."""
    bits = np.uint64(len(keys).bit_length())
    packed = keys << bits | np.arange(len(keys), dtype=np.uint64)
    packed.sort()
    order = packed & ((np.uint64(1) << bits) - np.uint64(1))
    return packed >> bits, order.astype(np.int64)


def _starts(keys: Keys) -> Counts:
    """Where each distinct one of ascending keys begins."""
    new = np.ones(len(keys), dtype=bool)
    np.not_equal(keys[1:], keys[:-1], out=new[1:])
    return np.flatnonzero(new)
