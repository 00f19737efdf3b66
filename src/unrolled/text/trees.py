"""Trees over words: nodes in post-order, children before their parent and the root last.

    words    those of the leaves, from left to right
    parents  the parent of each node (N,); the root's is -1
    labels   what stands at each node, or None

Whatever the depth, nothing here calls itself.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

Places = NDArray[np.int64]
Label = str | None


@dataclass(frozen=True, eq=False)
class WordTree:
    """A tree whose leaves are words; `line` is where it begins in its file."""

    words: tuple[str, ...]
    parents: Places  # (N,)
    labels: tuple[Label, ...]  # (N,)
    line: int = 1

    def __len__(self) -> int:
        return len(self.parents)

    @property
    def label(self) -> Label:
        """The root's."""
        return self.labels[-1]

    @cached_property
    def arities(self) -> Places:
        """How many children each node has (N,); 0: a leaf."""
        return np.bincount(self.parents[:-1], minlength=len(self))

    @cached_property
    def leaves(self) -> Places:
        """The nodes that are words, from left to right."""
        return np.flatnonzero(self.arities == 0)

    @cached_property
    def sizes(self) -> Places:
        """How many nodes each node and all below it are (N,)."""
        sizes, parents = [1] * len(self), self.parents.tolist()
        for node, parent in enumerate(parents[:-1]):
            sizes[parent] += sizes[node]
        return np.array(sizes)

    @property
    def spans(self) -> tuple[Places, Places]:
        """First word and last word but one of each node: (N,) both."""
        before = np.cumsum(np.append(0, self.arities == 0))
        nodes = np.arange(len(self))
        return before[nodes + 1 - self.sizes], before[nodes + 1]

    @cached_property
    def children(self) -> list[list[int]]:
        """Of each node, from left to right."""
        found: list[list[int]] = [[] for _ in range(len(self))]
        for node, parent in enumerate(self.parents[:-1].tolist()):
            found[parent].append(node)
        return found

    @cached_property
    def depth(self) -> int:
        """Steps from the root to the farthest leaf."""
        below, deepest = [0] * len(self), self.parents.tolist()
        for node, parent in enumerate(deepest[:-1]):
            below[parent] = max(below[parent], below[node] + 1)
        return below[-1]

    @property
    def is_binary(self) -> bool:
        """Whether every node has two children or none."""
        return bool(np.isin(self.arities, (0, 2)).all())


def binary(tree: WordTree) -> WordTree:
    """The tree with two children at each inner node.

    Of a chain of nodes with one child each the topmost label stays. More than two children are
    folded from the right, (A B C D) to (A B (C D)); the nodes in between have no label.
    """
    if tree.is_binary:
        return tree
    parents: list[int] = []
    labels: list[Label] = []
    at = [0] * len(tree)  # where each node went

    def put(children: Sequence[int], label: Label) -> int:
        for child in children:
            parents[child] = len(parents)
        parents.append(-1)
        labels.append(label)
        return len(parents) - 1

    for node, children in enumerate(tree.children):
        if len(children) == 1:
            at[node] = at[children[0]]
            own = tree.labels[node]
            labels[at[node]] = labels[at[node]] if own is None else own
            continue
        new = [at[child] for child in children]
        while len(new) > 2:
            new[-2:] = [put(new[-2:], None)]
        at[node] = put(new, tree.labels[node])
    return WordTree(tree.words, np.array(parents), tuple(labels), tree.line)


def right_fold(words: int) -> Places:
    """Parents of a b c d as (a (b (c d)))."""
    inner = np.arange(words, 2 * words - 1)
    leaves = np.concatenate([inner[::-1], inner[:1]])
    return np.concatenate([leaves, inner[1:], [-1]]) if words > 1 else np.array([-1])


def left_fold(words: int) -> Places:
    """Parents of a b c d as (((a b) c) d)."""
    if words == 1:
        return np.array([-1])
    inner = 2 * np.arange(1, words)  # each right behind its right child
    parents = np.full(2 * words - 1, -1)
    parents[0] = inner[0]
    parents[inner - 1] = inner
    parents[inner[:-1]] = inner[1:]
    return parents


def balanced(words: int) -> Places:
    """Parents of a b c d e as ((a b) (c (d e))): halves, the larger one to the right."""
    parents = np.full(2 * words - 1, -1)
    waiting = [(0, 2 * words - 1)]  # runs of nodes, each a subtree with its root last
    while waiting:
        begin, end = waiting.pop()
        leaves = (end - begin + 1) // 2
        if leaves > 1:
            middle = begin + 2 * (leaves // 2) - 1
            parents[[middle - 1, end - 2]] = end - 1
            waiting += [(begin, middle), (middle, end - 1)]
    return parents


FOLDS: Mapping[str, Callable[[int], Places]] = {
    "right": right_fold,
    "left": left_fold,
    "balanced": balanced,
}


def folded(words: Sequence[str], how: str, *, label: Label = None, line: int = 1) -> WordTree:
    """Words as a tree, one of FOLDS, with a label at its root alone; there is a word at least."""
    parents = FOLDS[how](len(words))
    labels = (*[None] * (len(parents) - 1), label)
    return WordTree(tuple(words), parents, labels, line)
