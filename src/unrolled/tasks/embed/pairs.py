"""How often words come together: counted a part of the text at a time, in files on disk.

Neighbours at distance d count 1/d, on both sides (Pennington et al. 2014, section 4.2), summed in
whole numbers of 1/UNIT, so that no order of the sums matters. Each part of a text gives a run of
pairs sorted by row and column, and the runs are merged some rows at a time; csrc/glove_count.hpp
counts a part without sorting it.

For training, pairs lie in tiles: CLASSES classes of rows, by number, times as many of columns, by
frequency and about equal in pairs. A stratum is a diagonal of tiles, which share neither rows nor
columns, so threads take one each and their number changes nothing (Gemulla et al. 2011). In a tile
columns lie in blocks that fit the second-level cache, rows in an order of chance.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from unrolled.ngrams.scratch import Scratch
from unrolled.nn import glove_kernels
from unrolled.nn.glove_kernels import UNIT, Ids, Longs, Pairs, Tiles
from unrolled.nn.threads import threads
from unrolled.tasks.embed.data import Corpus

ON_DISK = Scratch(memory=1)
WORDS_AT_ONCE = 1 << 25
PAIRS_AT_ONCE = 1 << 22
CLASSES = 16
CACHE = 1 << 19  # bytes that a block of columns may take


@dataclass(frozen=True, eq=False)
class Counted:
    """Pairs of words, sorted: how often they come together, in parts of 1/UNIT."""

    pairs: Longs  # (N, 2): row << 32 | column, total
    starts: Longs  # (V + 1,): of rows

    def __len__(self) -> int:
        return len(self.pairs)


@dataclass(frozen=True, eq=False)
class Tiled:
    """All pairs, tile by tile."""

    pairs: Pairs
    bounds: Longs  # (CLASSES, CLASSES + 1): of the tiles of each class of rows

    def stratum(self, shift: int) -> Tiles:
        """The tiles of a diagonal."""
        rows = np.arange(CLASSES)
        columns = (rows + shift) % CLASSES
        return Tiles(self.bounds[rows, columns], self.bounds[rows, columns + 1])


def count_pairs(corpus: Corpus, V: int, window: int) -> Counted:
    """The pairs of a text, every line by itself."""
    parts = corpus.runs(WORDS_AT_ONCE)
    runs = [_sorted_run(corpus, part, V, window) for part in parts]
    pairs = runs[0] if len(runs) == 1 else _joined(_merged(runs, V))
    return Counted(pairs, np.searchsorted(pairs[:, 0], np.arange(V + 1) << 32))


def _sorted_run(corpus: Corpus, lines: tuple[int, int], V: int, window: int) -> Longs:
    starts = np.asarray(corpus.starts[lines[0] : lines[1] + 1])
    if not glove_kernels.active():
        first, last = int(starts[0]), int(starts[-1])
        return _counted_plainly(corpus.ids[first:last], starts - first, window)
    return _joined(_counted(corpus.ids, starts, V, window))


def _joined(pieces: Iterator[Longs]) -> Longs:
    return ON_DISK.joined(pieces, np.int64).reshape(-1, 2)


def _counted(ids: Ids, starts: Longs, V: int, window: int) -> Iterator[Longs]:
    """By the kernel, some rows at a time."""
    counter = glove_kernels.counter(ids, starts, V, window)
    room = np.empty(2 * max(V, PAIRS_AT_ONCE), np.int64)
    row = 0
    while row < V:
        row, number = counter.rows(row, room, threads())
        yield room[: 2 * number]


def _counted_plainly(ids: Ids, starts: Longs, window: int) -> Longs:
    """The kernel's twin: a pass over the text for each distance."""
    line = np.repeat(np.arange(len(starts) - 1), np.diff(starts))
    keys, totals = [np.zeros(0, np.int64)], [np.zeros(0, np.int64)]
    for distance in range(1, min(window, len(ids) - 1) + 1):
        near = line[distance:] == line[:-distance]
        left, right = (side[near].astype(np.int64) for side in (ids[:-distance], ids[distance:]))
        keys += [left << 32 | right, right << 32 | left]
        totals.append(np.full(2 * len(left), round(UNIT / distance), np.int64))
    return _summed(np.concatenate(keys), np.concatenate(totals))


def _summed(keys: Longs, totals: Longs) -> Longs:
    """Each key once, in order, with the sum of its totals: (n, 2)."""
    order = np.argsort(keys, kind="stable")
    keys, totals = keys[order], totals[order]
    first = np.flatnonzero(np.diff(keys, prepend=-1))
    sums = np.add.reduceat(totals, first) if len(first) else totals
    return np.stack([keys[first], sums], axis=1)


def _merged(runs: Sequence[Longs], V: int) -> Iterator[Longs]:
    """The runs as one, some rows at a time."""
    starts = [np.searchsorted(run[:, 0], np.arange(V + 1) << 32) for run in runs]
    most = np.sum(starts, axis=0)
    row = 0
    while row < V:
        last = int(np.searchsorted(most, most[row] + PAIRS_AT_ONCE, side="right")) - 1
        last = max(row + 1, min(V, last))
        some = [run[start[row] : start[last]] for run, start in zip(runs, starts, strict=True)]
        together = np.concatenate(some)
        yield _summed(together[:, 0], together[:, 1])
        row = last


def tiled(counted: Counted, state_bytes: int) -> Tiled:
    """The pairs in their tiles, a column's state taking so many bytes."""
    classes = _classes(np.diff(counted.starts))
    block, firsts = _blocks(classes, max(1, CACHE // state_bytes))
    begin, pairs = _ordered(counted, block, int(firsts[-1]))
    rows = np.arange(CLASSES)[:, None] * int(firsts[-1])
    return Tiled(pairs, begin[rows + firsts[None, :]])


def _classes(pairs_of: Longs) -> Longs:
    """Bounds of ranges of columns that have about equally many pairs: (CLASSES + 1,)."""
    shares = np.concatenate([[0], np.cumsum(pairs_of)])
    cuts = np.searchsorted(shares, shares[-1] * np.arange(1, CLASSES) / CLASSES)
    return np.concatenate([[0], cuts, [len(pairs_of)]])


def _blocks(classes: Longs, width: int) -> tuple[Ids, Longs]:
    """The block of each column (V,); the first block of each class, and the end."""
    sizes = np.diff(classes)
    firsts = np.concatenate([[0], np.cumsum(-(-sizes // width))])
    inside = np.arange(classes[-1]) - np.repeat(classes[:-1], sizes)
    block = np.repeat(firsts[:-1], sizes) + inside // width
    return block.astype(np.int32), firsts


def _mixed_rows(V: int) -> Ids:
    """Rows in an order of chance, always the same: by frequency they would be learned less well."""
    return np.random.default_rng(V).permutation(V).astype(np.int32)


def _ordered(counted: Counted, block: Ids, blocks: int) -> tuple[Longs, Pairs]:
    """Where each bucket begins, (CLASSES · blocks + 1,), and the pairs in their order."""
    if not glove_kernels.active():
        return _ordered_plainly(counted, block, blocks)
    number = len(counted)
    pairs = Pairs(
        ON_DISK.empty(number, np.int32),
        ON_DISK.empty(number, np.int32),
        ON_DISK.empty(number, np.float32),
    )
    begin = np.zeros(CLASSES * blocks + 1, np.int64)
    glove_kernels.order(
        counted.pairs,
        counted.starts,
        block,
        _mixed_rows(len(block)),
        classes=CLASSES,
        begin=begin,
        pairs=pairs,
        threads=threads(),
    )
    return begin, pairs


def _ordered_plainly(counted: Counted, block: Ids, blocks: int) -> tuple[Longs, Pairs]:
    rows, columns = counted.pairs[:, 0] >> 32, counted.pairs[:, 0] & 0xFFFFFFFF
    bucket = rows % CLASSES * blocks + block[columns]
    place = np.argsort(_mixed_rows(len(block)))
    order = np.lexsort((columns, place[rows], bucket))
    begin = np.searchsorted(bucket[order], np.arange(CLASSES * blocks + 1))
    logs: NDArray[np.float64] = np.log(counted.pairs[order, 1] / UNIT)
    ordered = (rows[order].astype(np.int32), columns[order].astype(np.int32))
    return begin, Pairs(*ordered, logs.astype(np.float32))
