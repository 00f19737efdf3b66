"""Trees as plain arrays, and a batch of them laid out for networks that run level by level.

A node is a leaf with a word or has children. In a `Forest` the children of one parent lie side by
side, and parents are ordered by their height above the leaves. So all that a level reads is one
slice, and only what it writes goes to scattered places:

    places 0 … first[-1]: the children of inner node 0, of inner node 1, …; then the roots

Nothing here recurs: a tree may be as deep as it has nodes.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from torch import Tensor

from unrolled.errors import ConfigError

Ints = NDArray[np.int64]


class Tree(NamedTuple):
    """One tree of n nodes, children before parents, left before right; the root is the last.

    Made by `tree`, which checks it. All (n,).
    """

    parent: Ints  # −1 for the root
    word: Ints  # of a leaf; −1 for an inner node
    height: Ints  # the longest way down to a leaf; 0 for a leaf
    leaves: Ints  # how many there are at and below a node


def tree(parent: ArrayLike, word: ArrayLike) -> Tree:
    """A tree from each node's parent and word, in post-order."""
    parents, words = np.asarray(parent, np.int64), np.asarray(word, np.int64)
    n = len(parents)
    if parents.ndim != 1 or parents.shape != words.shape or n == 0:
        raise ConfigError(
            f"a tree has parents of shape {parents.shape} and words of shape {words.shape}, but "
            "must have one of each for every node, and at least one node."
        )
    above = parents[:-1]
    if parents[-1] != -1 or not ((above > np.arange(n - 1)) & (above < n)).all():
        raise ConfigError(
            "a node's parent does not come after it. Give nodes in post-order, the root last, its "
            "parent being -1."
        )
    height, leaves = _measured(parents.tolist())
    if not np.array_equal(height == 0, words >= 0):
        raise ConfigError("a leaf has no word, or an inner node has one; -1 stands for none.")
    return Tree(parents, words, height, leaves)


def _measured(parents: list[int]) -> tuple[Ints, Ints]:
    """Each node's height, and the leaves at and below it."""
    height, leaves = [0] * len(parents), [0] * len(parents)
    for node, parent in enumerate(parents[:-1]):
        leaves[node] = leaves[node] or 1
        leaves[parent] += leaves[node]
        if height[node] >= height[parent]:
            height[parent] = height[node] + 1
    leaves[-1] = leaves[-1] or 1
    return np.array(height), np.array(leaves)


class Forest(NamedTuple):
    """A batch of B trees: N nodes by their place, of which L are leaves and M inner nodes.

    Inner nodes are numbered level by level; the children of number j are the places first[j] up to
    first[j + 1], from left to right.
    """

    words: Tensor  # (U,) the distinct words of all leaves, ascending
    word: Tensor  # (L,) which of them each leaf is
    leaves: Tensor  # (L,) the places of leaves
    inner: Tensor  # (M,) the places of inner nodes
    first: Tensor  # (M + 1,)
    levels: tuple[int, ...]  # where each level's inner nodes begin, and the end of the last
    nodes: Tensor  # (N,) which node of all trees, one after the other, is at a place
    tree: Tensor  # (N,) whose it is
    sizes: Tensor  # (N,) the leaves at and below it
    trees: int  # B

    @property
    def roots(self) -> slice:
        """The places of the roots, in the order of the trees."""
        return slice(len(self.nodes) - self.trees, len(self.nodes))

    @property
    def children(self) -> slice:
        """The places of all nodes that are no roots."""
        return slice(0, len(self.nodes) - self.trees)

    @property
    def is_binary(self) -> bool:
        """Whether every inner node has two children."""
        return np.array_equal(self.first.numpy(), np.arange(0, 2 * len(self.inner) + 1, 2))


def forest(trees: Sequence[Tree]) -> Forest:
    """Lay out a batch of trees."""
    if not trees:
        raise ConfigError("a forest has no trees, but must have at least one.")
    parent, word, height, sizes = (np.concatenate(arrays) for arrays in zip(*trees, strict=True))
    counts = np.array([len(each.parent) for each in trees])
    ends = np.cumsum(counts)
    parent += np.repeat(ends - counts, counts)  # roots' are wrong, and not read
    inside, children = _sorted_inner(height), np.ones(len(parent), bool)
    children[ends - 1] = False
    rank = np.empty(len(parent), np.int64)
    rank[inside] = np.arange(len(inside))
    below = np.flatnonzero(children)
    owner = rank[parent[below]]
    nodes = np.concatenate([below[_order(owner)], ends - 1])
    place = np.empty(len(nodes), np.int64)
    place[nodes] = np.arange(len(nodes))
    leaves = np.flatnonzero(height[nodes] == 0)
    words, which = np.unique(word[nodes[leaves]], return_inverse=True)
    arity = np.bincount(owner, minlength=len(inside))
    return Forest(
        words=torch.from_numpy(words),
        word=torch.from_numpy(which.reshape(-1)),
        leaves=torch.from_numpy(leaves),
        inner=torch.from_numpy(place[inside]),
        first=torch.from_numpy(np.concatenate([[0], np.cumsum(arity)])),
        levels=(0, *np.cumsum(np.bincount(height)[1:]).tolist()),
        nodes=torch.from_numpy(nodes),
        tree=torch.from_numpy(np.repeat(np.arange(len(trees)), counts)[nodes]),
        sizes=torch.from_numpy(sizes[nodes]),
        trees=len(trees),
    )


def _sorted_inner(height: Ints) -> Ints:
    """Inner nodes, the lowest first."""
    inner = np.flatnonzero(height)
    return inner[_order(height[inner])]


def _order(keys: Ints) -> Ints:
    """What sorts small numbers and keeps the order of equal ones; numpy counts those of 16 bits."""
    few = len(keys) == 0 or int(keys.max()) < 1 << 16
    return np.argsort(keys.astype(np.uint16) if few else keys, kind="stable")
