"""Trees that an autoencoder builds itself (Socher et al. 2011, EMNLP, section 2.3).

Of all neighbours in a sentence the two are merged whose parent gives them back with the lowest
error; the parent takes their place, and so on until one node is left. Only the parent's own two
neighbourhoods are new then. All sentences of a batch take each step together, so that all new
candidates are one product. Of equal errors the leftmost wins.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from unrolled.errors import ConfigError
from unrolled.nn import tree_kernels
from unrolled.nn.shapes import check_tensor
from unrolled.nn.tree_compositions import Autoencoder
from unrolled.nn.trees import Ints, Tree, tree

Floats = NDArray[np.float64]


class Merged(NamedTuple):
    """A tree that was built, and how; of a leaf the step is −1 and the error 0. Both (n,)."""

    tree: Tree
    step: Ints  # when a node was made, from 0 on
    error: Floats  # of its reconstruction


@torch.no_grad()
def greedy(autoencoder: Autoencoder, sentences: Sequence[Ints], vectors: Tensor) -> list[Merged]:
    """The trees of sentences, each the ids of its words, rows of vectors (V, H)."""
    if not sentences:
        return []
    lengths = np.array([len(ids) for ids in sentences])
    if not lengths.all():
        raise ConfigError("a sentence has no words, but a tree needs at least one.")
    ids = np.concatenate(sentences).astype(np.int64, copy=False)
    check_tensor("the words' vectors", vectors, (len(vectors), autoencoder.hidden_size), vectors)
    if ids.min() < 0 or ids.max() >= len(vectors):
        raise ConfigError(
            f"words are from {ids.min()} to {ids.max()}, but there are {len(vectors)} vectors."
        )
    weights = [autoencoder.weight, autoencoder.bias, autoencoder.decoder, autoencoder.decoder_bias]
    if tree_kernels.can_run([vectors, *weights]):
        return _by_kernels(autoencoder, ids, lengths, [vectors, *weights])
    return _by_torch(autoencoder, sentences, vectors)


def _by_kernels(
    net: Autoencoder, ids: Ints, lengths: Ints, tensors: Sequence[Tensor]
) -> list[Merged]:
    made = tree_kernels.greedy(net.node, ids, lengths, tensors, weighted=net.weighted)
    ends = np.cumsum(2 * lengths - 1).tolist()
    pieces = [slice(begin, end) for begin, end in zip([0, *ends], ends, strict=False)]
    return [
        Merged(
            Tree(made.parent[at], made.word[at], made.height[at], made.leaves[at]),
            made.step[at],
            made.error[at],
        )
        for at in pieces
    ]


def _by_torch(net: Autoencoder, sentences: Sequence[Ints], vectors: Tensor) -> list[Merged]:
    order = sorted(range(len(sentences)), key=lambda row: -len(sentences[row]))  # longest first
    built = _Merging(net, [np.asarray(sentences[row]) for row in order], vectors).run()
    results: list[Merged | None] = [None] * len(order)
    for row, merged in zip(order, built, strict=True):
        results[row] = merged
    return [merged for merged in results if merged is not None]


class _Merging:
    """Rows of nodes, each known by the place of its first word; the longest sentence first."""

    def __init__(self, net: Autoencoder, sentences: Sequence[Ints], vectors: Tensor) -> None:
        self.net, self.sentences = net, sentences
        lengths = np.array([len(ids) for ids in sentences])
        B, T = len(sentences), int(lengths[0]) if len(lengths) else 0
        columns = np.arange(T)
        self.lengths = lengths
        real = columns < lengths[:, None]  # (B, T)
        ids = np.zeros((B, T), np.int64)
        ids[real] = np.concatenate(sentences) if B else 0
        H = net.hidden_size
        self.nodes = vectors.index_select(0, torch.from_numpy(ids.ravel())).view(B, T, H)
        self.parents = torch.zeros_like(self.nodes)  # of a node and the next
        self.sizes = real.astype(np.int64)
        self.after = np.tile(columns + 1, (B, 1))  # the place of the next node
        self.before = np.tile(columns - 1, (B, 1))
        self.errors = np.full((B, T), np.inf)
        self.left = np.zeros((B, max(T - 1, 0)), np.int64)  # place of each merge
        self.right = np.zeros_like(self.left)
        self.paid = np.zeros(self.left.shape)

    def run(self) -> list[Merged]:
        rows, places = np.nonzero(np.arange(self.errors.shape[1]) < self.lengths[:, None] - 1)
        self._try(rows, places)
        for step in range(self.left.shape[1]):
            self._merge(step, int(np.searchsorted(-self.lengths, -(step + 1))))
        return [self._built(row) for row in range(len(self.sentences))]

    def _try(self, rows: Ints, places: Ints) -> None:
        """Parents of the nodes at these places and of the next ones, and their errors."""
        if not len(rows):
            return
        others = self.after[rows, places]
        pairs = torch.cat([self.nodes[rows, places], self.nodes[rows, others]], dim=1)  # (n, 2H)
        sizes = np.stack([self.sizes[rows, places], self.sizes[rows, others]], axis=1)
        parents = self.net.parent(pairs)
        errors = self.net.reconstruction(pairs, parents, torch.from_numpy(sizes))
        self.parents[rows, places] = parents
        self.errors[rows, places] = errors.double().numpy()

    def _merge(self, step: int, count: int) -> None:
        """The best pair of each of the first `count` rows."""
        rows = np.arange(count)
        left = self.errors[:count].argmin(axis=1)
        right = self.after[rows, left]
        self.left[:count, step], self.right[:count, step] = left, right
        self.paid[:count, step] = self.errors[rows, left]
        self.nodes[rows, left] = self.parents[rows, left]
        self.sizes[rows, left] += self.sizes[rows, right]
        after = self.after[rows, right]
        self.after[rows, left] = after
        self.errors[rows, left] = self.errors[rows, right] = np.inf
        has_next, has_previous = after < self.lengths[:count], left > 0
        self.before[rows[has_next], after[has_next]] = left[has_next]
        previous = self.before[rows, left][has_previous]
        self._try(
            np.concatenate([rows[has_next], rows[has_previous]]),
            np.concatenate([left[has_next], previous]),
        )

    def _built(self, row: int) -> Merged:
        n = int(self.lengths[row])
        merges = zip(
            self.left[row, : n - 1].tolist(), self.right[row, : n - 1].tolist(), strict=True
        )
        return _in_post_order(self.sentences[row], [*merges], self.paid[row, : n - 1])


def _in_post_order(words: Ints, merges: list[tuple[int, int]], paid: Floats) -> Merged:
    """The tree of n − 1 merges of the nodes that begin at two places."""
    n = len(words)
    pairs, at = [], list(range(n))  # the node that begins at a place: words first, then by step
    spans = [1] * n  # nodes at and below each
    for left, right in merges:
        pairs.append((at[left], at[right]))
        spans.append(1 + spans[at[left]] + spans[at[right]])
        at[left] = n + len(pairs) - 1
    ends, parent = [0] * len(spans), [-1] * len(spans)
    ends[-1] = len(spans) - 1  # the number of a node in post-order
    for node in range(len(spans) - 1, n - 1, -1):
        left, right = pairs[node - n]
        ends[right] = ends[node] - 1
        ends[left] = ends[right] - spans[right]
        parent[ends[left]] = parent[ends[right]] = ends[node]
    word, step, error = np.full(len(ends), -1), np.full(len(ends), -1), np.zeros(len(ends))
    word[ends[:n]] = words
    step[ends[n:]] = np.arange(len(merges))
    error[ends[n:]] = paid
    return Merged(tree(parent, word), step, error)
