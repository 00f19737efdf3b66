"""A word-for-word dictionary, learned from sentence pairs: what a translator must beat.

IBM Model 1 (Brown et al. 1993, section 4.1), without its empty word. Every token of a target comes
from some token of its source, at first from any of them alike:

    c(s, t)  = Σ P(t | s) / Σ_k P(t | s_k)     over all that t meets s, the s_k being s's line
    P(t | s) = c(s, t) / Σ_u c(s, u)

and again, ten times. The dictionary has the likeliest t of each s.

Memory: 8 bytes for each of at most MAX_LINKS meetings of a source with a target token, and five
numbers for each kind of meeting. What would be more is thinned out: every k-th pair is read.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from unrolled.text.tokens import SPECIALS, UNK

ROUNDS = 10
MAX_SIDE = 100  # tokens of a line that are read
MAX_LINKS = 16_000_000  # about 100,000 pairs of 13 tokens a side
LINKS_AT_ONCE = 1_000_000
Integers = NDArray[np.integer]
Ids = NDArray[np.int64]
Floats = NDArray[np.float64]
Chunk = tuple[NDArray[np.int32], NDArray[np.int32]]  # of each link: its kind, its target token


@dataclass(frozen=True, eq=False)
class Side:
    """The ordinary tokens of N lines, one after the other."""

    ids: Ids
    starts: Ids  # (N,)
    lengths: Ids  # (N,)

    @classmethod
    def of(cls, ids: Integers, lengths: Integers) -> "Side":
        """Lines whose special tokens are left out, and what goes beyond MAX_SIDE tokens."""
        ordinary = ids >= len(SPECIALS)
        before = np.concatenate([[0], np.cumsum(ordinary)])  # ordinary tokens before each place
        ends = np.cumsum(lengths)
        starts = before[ends - lengths]
        kept = np.minimum(before[ends] - starts, MAX_SIDE)
        return cls(ids[ordinary].astype(np.int64), starts, kept)


def word_dictionary(
    source_ids: Integers,
    source_lengths: Integers,
    target_ids: Integers,
    target_lengths: Integers,
    *,
    source_size: int,
    target_size: int,
) -> Ids:
    """The target id that each source id goes with best: (source_size,).

    Special tokens go with themselves. A word that is unknown, or that never met a known one, goes
    with UNK: copy it. Ties go to the lower id.
    """
    if len(source_lengths) != len(target_lengths):
        raise ValueError(f"{len(source_lengths)} sources but {len(target_lengths)} targets")
    source, target = Side.of(source_ids, source_lengths), Side.of(target_ids, target_lengths)
    kinds, chunks = _read(source, target, target_size)
    sources = kinds // target_size
    probabilities = _fitted(sources, chunks)
    table = np.full(source_size, UNK, dtype=np.int64)
    table[: len(SPECIALS)] = np.arange(len(SPECIALS))
    order = np.lexsort((kinds, -np.round(probabilities, 12), sources))  # rounded: ties are ties
    best = order[np.diff(sources[order], prepend=-1) > 0]
    table[sources[best]] = kinds[best] % target_size
    return table


def _fitted(sources: Ids, chunks: list[Chunk]) -> Floats:
    """P(t | s) of each kind of link, by expectation and maximisation."""
    probabilities = np.ones(len(sources))
    for _ in range(ROUNDS):
        counts = np.zeros(len(sources))
        for kind, asker in chunks:
            weights = probabilities[kind]
            weights /= np.bincount(asker, weights)[asker]
            counts += np.bincount(kind, weights, minlength=len(sources))
        probabilities = counts / np.bincount(sources, counts)[sources]
    return probabilities


def _read(source: Side, target: Side, target_size: int) -> tuple[Ids, list[Chunk]]:
    """The kinds of link there are, in order, and the links: source tokens beside target tokens."""
    runs = list(_runs(source.lengths * target.lengths))
    seen = [np.unique(_links(source, target, rows, target_size)[0]) for rows in runs]
    kinds: Ids = np.unique(np.concatenate([np.zeros(0, np.int64), *seen]))
    chunks = []
    for rows in runs:
        links, askers = _links(source, target, rows, target_size)
        numbers = np.searchsorted(kinds, links)
        chunks.append((numbers.astype(np.int32), askers.astype(np.int32)))
    return kinds, chunks


def _runs(links: Ids) -> Iterator[Ids]:
    """Rows to read at a time, given how many links each has (N,)."""
    step = max(1, -(-int(links.sum()) // MAX_LINKS))
    rows = np.arange(0, len(links), step)
    ends = np.cumsum(links[rows])
    rows, ends = rows[ends <= MAX_LINKS], ends[ends <= MAX_LINKS]
    cuts = np.searchsorted(ends // LINKS_AT_ONCE, np.unique(ends // LINKS_AT_ONCE))
    for start, end in pairwise([*cuts.tolist(), len(rows)]):
        yield rows[start:end]


def _links(source: Side, target: Side, rows: Ids, target_size: int) -> tuple[Ids, Ids]:
    """Each token of a source beside each of its target: the kind of link, and the target token.

    A kind is source id · target_size + target id; target tokens are counted from these rows' first.
    """
    widths, heights = source.lengths[rows], target.lengths[rows]
    sizes = widths * heights
    row = np.repeat(np.arange(len(rows)), sizes)  # (L,)
    place = np.arange(len(row)) - (np.cumsum(sizes) - sizes)[row]  # among its pair's links
    down, across = np.divmod(place, widths[row])
    sources = source.ids[source.starts[rows][row] + across]
    targets = target.ids[target.starts[rows][row] + down]
    return sources * target_size + targets, (np.cumsum(heights) - heights)[row] + down
