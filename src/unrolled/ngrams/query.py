"""Look tokens up in an n-gram table, many at a time.

A text here is a row of tokens in which <s> stands before each line and <pad> between rows that have
nothing to do with each other: no n-gram crosses either, so none is found across them.
The same in C++, for whole texts: csrc/ngram.hpp.
"""

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from unrolled.ngrams import kernels as ngram_kernels
from unrolled.ngrams.table import Floats, Level, NgramTable
from unrolled.nn.threads import threads
from unrolled.text.tokens import END, PAD, START

Places = NDArray[np.int64]

TOKENS_AT_ONCE = 1 << 16


def find(level: Level, above: Level, nodes: Places, words: NDArray[np.integer]) -> Places:
    """Where in the level above each word continues each node (N,); -1 where it does not."""
    known = nodes >= 0
    low = np.where(known, level.begin[nodes], 0)
    end = np.where(known, level.begin[nodes + known], 0)
    high = end
    while (open_ := low < high).any():
        middle = (low + high) // 2
        right = open_ & (above.words[np.minimum(middle, len(above.words) - 1)] < words)
        low, high = np.where(right, middle + 1, low), np.where(open_ & ~right, middle, high)
    inside = np.flatnonzero(low < end)
    found = np.full(len(nodes), -1)
    hits = inside[above.words[low[inside]] == words[inside]]
    found[hits] = low[hits]
    return found


def places(table: NgramTable, tokens: Places) -> list[Places]:
    """For each order, where in its level the n-gram that ends at each token is (N,), or -1."""
    found = [np.where(tokens == PAD, -1, tokens)]
    for level, above in zip(table.levels, table.levels[1:], strict=False):
        before = np.concatenate([[-1], found[-1][:-1]])
        found.append(find(level, above, before, tokens))
    return found


def log_probabilities(table: NgramTable, tokens: Places) -> Floats:
    """Of each token (N,) of a text, after those before it; <s> and <pad> get what is of no use."""
    found = places(table, tokens)
    lengths = context_lengths(tokens)
    log_p = table.levels[0].log_p[tokens]
    for k in range(1, table.order):
        before = np.concatenate([[-1], found[k - 1][:-1]])
        log_p = log_p + _weights(table, k, before, lengths >= k)
        here = found[k] >= 0
        log_p[here] = table.levels[k].log_p[found[k][here]]
    return log_p


def context_lengths(tokens: Places) -> Places:
    """How many tokens stand before each (N,) in its own line, <s> counted."""
    at = np.arange(len(tokens))
    bound = np.where((tokens == START), at, np.where(tokens == PAD, at + 1, 0))
    return np.asarray(np.maximum(at - np.maximum.accumulate(bound), 0))


def line_nats(table: NgramTable, ids: NDArray[np.int32]) -> Floats:
    """Surprise at each token (N,) of lines, each closed by END: compiled, or else in numpy."""
    kernel = kernel_of(table)
    if kernel is None:
        return nats_of_lines(table, ids)
    nats = np.empty(len(ids))
    kernel.nats(np.ascontiguousarray(ids), nats, threads())
    return nats


def kernel_of(table: NgramTable) -> Any | None:
    """The kernel on a table's own arrays, which it keeps; None where nothing is compiled."""
    if ngram_kernels.TABLE is None:
        return None
    words, log_p, log_b, begin = (list(arrays) for arrays in zip(*table.levels, strict=True))
    return ngram_kernels.TABLE(words, log_p, log_b, begin, table.missing)


def nats_of_lines(table: NgramTable, ids: NDArray[np.int32]) -> Floats:
    """Surprise at each token (N,) of lines, each closed by END."""
    nats = [-log_probabilities(table, tokens)[tokens != START] for tokens in started_lines(ids)]
    return np.concatenate([np.zeros(0), *nats])


def unseen_shares(
    table: NgramTable, ids: NDArray[np.int32], seen: NDArray[np.bool_]
) -> tuple[float, ...]:
    """For each order, how many of a text's n-grams are not in the table, as a share of them.

    `seen` (V,) says it of single tokens, which are all in the table. Orders beyond the longest line
    are left out.
    """
    absent, total = np.zeros(table.order), np.zeros(table.order)
    for tokens in started_lines(ids):
        lengths = np.where(tokens == START, -1, context_lengths(tokens))
        found = places(table, tokens)
        found[0] = np.where(seen[tokens], tokens, -1)
        for k, at in enumerate(found):
            inside = lengths >= k
            total[k] += np.count_nonzero(inside)
            absent[k] += np.count_nonzero(at[inside] < 0)
    return tuple((absent[total > 0] / total[total > 0]).tolist())


def started_lines(ids: NDArray[np.int32]) -> Iterator[Places]:
    """Lines of ids, each closed by END, many at a time and each opened by START."""
    for start, stop in _whole_lines(ids, TOKENS_AT_ONCE):
        piece = ids[start:stop].astype(np.int64)
        starts = np.flatnonzero(np.concatenate([[True], piece[:-1] == END]))
        yield np.insert(piece, starts, START)


def distributions(table: NgramTable, contexts: Places) -> Floats:
    """Log-probabilities of all tokens (N, V) after each context (N, C), <pad> where there is none.

    What shorter contexts know is weighed down, then what the longer one knows written over it.
    """
    N, C = contexts.shape
    log_p = np.repeat(table.levels[0].log_p[None], N, axis=0)  # (N, V)
    padded = np.concatenate([np.full((N, 1), PAD), contexts], axis=1)  # (N, 1 + C)
    found = places(table, padded.reshape(-1))
    lengths = np.count_nonzero(contexts != PAD, axis=1)
    for k in range(1, min(table.order, C + 1)):
        nodes = found[k - 1].reshape(N, 1 + C)[:, -1]
        log_p += _weights(table, k, nodes, lengths >= k)[:, None]
        row, child = _children(table.levels[k - 1], nodes)
        above = table.levels[k]
        log_p[row, above.words[child]] = above.log_p[child]
    return log_p


def _weights(table: NgramTable, k: int, nodes: Places, exists: NDArray[np.bool_]) -> Floats:
    """Log weights of contexts of k tokens (N,): nothing where a line has no such context."""
    weights = np.where(exists, table.missing, 0.0)
    known = nodes >= 0
    weights[known] = table.levels[k - 1].log_b[nodes[known]]
    return weights


def _children(level: Level, nodes: Places) -> tuple[Places, Places]:
    """For all continuations of nodes (N,): which node, and where in the level above."""
    known = np.flatnonzero(nodes >= 0)
    low, high = level.begin[nodes[known]], level.begin[nodes[known] + 1]
    sizes = np.maximum(high - low, 0)
    within = np.arange(sizes.sum()) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    return np.repeat(known, sizes), np.repeat(low, sizes) + within


def _whole_lines(ids: NDArray[np.int32], at_once: int) -> Iterator[tuple[int, int]]:
    """Ranges of about so many tokens that end where a line ends."""
    ends = np.flatnonzero(ids == END) + 1
    start = 0
    while start < len(ids):
        last = int(np.searchsorted(ends, start + at_once))
        stop = int(ends[last]) if last < len(ends) else len(ids)
        yield start, stop
        start = stop
