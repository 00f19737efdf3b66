"""Binary trees over a vocabulary, for the hierarchical softmax (Morin & Bengio 2005).

A word's probability is the product of the decisions on the way from the root to its leaf, each
σ(±θᵀh), so those of all words sum to 1. A Huffman tree gives frequent words short ways, a balanced
one gives all words about log₂ V decisions.
"""

from collections.abc import Callable, Mapping

import numpy as np
from numpy.typing import NDArray

from unrolled.nn.embed_kernels import Paths

Longs = NDArray[np.int64]


def huffman(counts: Longs) -> tuple[Longs, NDArray[np.int8]]:
    """The parent of each node and the turn to it: leaves 0 … V − 1, inner nodes behind, root last.

    Counts must fall: the two least of leaves and nodes are then found at the ends of two queues.
    """
    V = len(counts)
    weight = np.concatenate([counts, np.full(V - 1, np.iinfo(np.int64).max)]).tolist()
    parent, turn = [0] * (2 * V - 1), [0] * (2 * V - 1)
    leaf, node = V - 1, V
    for new in range(V, 2 * V - 1):
        least = []
        for _ in range(2):
            if leaf >= 0 and (node >= new or weight[leaf] <= weight[node]):
                least.append(leaf)
                leaf -= 1
            else:
                least.append(node)
                node += 1
        weight[new] = weight[least[0]] + weight[least[1]]
        parent[least[0]] = parent[least[1]] = new
        turn[least[1]] = 1
    return np.array(parent), np.array(turn, np.int8)


def balanced(counts: Longs) -> tuple[Longs, NDArray[np.int8]]:
    """The same of a tree whose leaves are all about as deep."""
    V = len(counts)
    parent, turn = np.zeros(2 * V - 1, np.int64), np.zeros(2 * V - 1, np.int8)
    level, new = list(range(V)), V
    while len(level) > 1:
        above = []
        for left, right in zip(level[::2], level[1::2], strict=False):
            parent[left] = parent[right] = new
            turn[right] = 1
            above.append(new)
            new += 1
        level = above + level[len(level) - len(level) % 2 :]
    return parent, turn


TREES: Mapping[str, Callable[[Longs], tuple[Longs, NDArray[np.int8]]]] = {
    "huffman": huffman,
    "balanced": balanced,
}


def paths_of(tree: str, counts: Longs) -> Paths:
    """The way from the root to each word; inner nodes are numbered from 0."""
    V = len(counts)
    parent, turn = TREES[tree](counts)
    at, lengths, steps = np.arange(V), np.zeros(V, np.int64), []
    while len(below := np.flatnonzero(at != 2 * V - 2)):  # words not yet at the root
        steps.append((below, at[below]))
        lengths[below] += 1
        at[below] = parent[at[below]]
    starts = np.concatenate([[0], np.cumsum(lengths)])
    nodes, turns = np.empty(starts[-1], np.int32), np.empty(starts[-1], np.float32)
    for number, (below, on_the_way) in enumerate(steps, 1):
        places = starts[below + 1] - number
        nodes[places] = parent[on_the_way] - V
        turns[places] = turn[on_the_way]
    return Paths(starts, nodes, turns)
