"""Random trees, and compositions evaluated node by node, as the papers write them."""

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor

from unrolled.nn.tree_composition import Composition
from unrolled.nn.tree_compositions import (
    Autoencoder,
    MatrixVector,
    RecursiveNet,
    TensorNet,
)
from unrolled.nn.tree_lstm import ChildSumTreeLSTM, TreeLSTM
from unrolled.nn.trees import Tree, tree

E, H = 5, 4


def make(name: str, dtype: torch.dtype = torch.float64) -> Composition:
    """A small composition with biases that are not zero."""
    torch.manual_seed(3)
    made: Composition = {
        "rnn": lambda: RecursiveNet(H),
        "autoencoder": lambda: Autoencoder(H),
        "autoencoder, of any length": lambda: Autoencoder(H, normalise=False, weighted=False),
        "rntn": lambda: TensorNet(H),
        "mvrnn": lambda: MatrixVector(H),
        "treelstm": lambda: TreeLSTM(E, H),
        "childsum": lambda: ChildSumTreeLSTM(E, H),
    }[name]()
    for weight in made.parameters():
        torch.nn.init.normal_(weight, std=0.5)
    return made.to(dtype)


NAMES = (
    "rnn",
    "autoencoder",
    "autoencoder, of any length",
    "rntn",
    "mvrnn",
    "treelstm",
    "childsum",
)


def random_tree(words: int, rng: np.random.Generator, *, V: int = 7, most: int = 2) -> Tree:
    """Neighbours merged at random, `most` of them at a time at most; words of 0..V − 1."""
    parents: dict[int, list[int]] = {}
    row, made = list(range(words)), words
    while len(row) > 1:
        count = min(int(rng.integers(2, most + 1)), len(row))
        at = int(rng.integers(0, len(row) - count + 1))
        parents[made] = row[at : at + count]
        row[at : at + count] = [made]
        made += 1
    return from_children(row[0], parents, rng.integers(0, V, words).tolist())


def from_children(root: int, children: dict[int, list[int]], words: Sequence[int]) -> Tree:
    """In post-order, without recursion; leaf k has word k."""
    order, stack = [], [root]
    while stack:
        node = stack.pop()
        order.append(node)
        stack.extend(children.get(node, []))
    order.reverse()
    number = {node: index for index, node in enumerate(order)}
    parent = [-1] * len(order)
    for node, below in children.items():
        for child in below:
            parent[number[child]] = number[node]
    return tree(parent, [-1 if node in children else words[node] for node in order])


def left_chain(words: Sequence[int]) -> Tree:
    """((w0 w1) w2) …"""
    n = len(words)
    children = {n + k: [n + k - 1 if k else 0, k + 1] for k in range(n - 1)}
    return from_children(2 * n - 2 if n > 1 else 0, children, words)


def children_of(each: Tree) -> list[list[int]]:
    below: list[list[int]] = [[] for _ in each.parent]
    for node, parent in enumerate(each.parent.tolist()):
        if parent >= 0:
            below[parent].append(node)
    return below


def one_by_one(composition: Composition, each: Tree, table: Tensor) -> Tensor:
    """The vectors (n, H) of a tree's nodes in its own order, one node after the other."""
    states: list[Tensor] = []
    for below, word in zip(children_of(each), each.word.tolist(), strict=True):
        if below:
            states.append(INNER[type(composition)](composition, [states[node] for node in below]))
        else:
            states.append(LEAVES.get(type(composition), lambda _, x: x)(composition, table[word]))
    return torch.stack([state[: composition.hidden_size] for state in states])


def _net(c, children):
    return torch.tanh(c.weight @ torch.cat(children) + c.bias)


def _autoencoder(c, children):
    p = _net(c, children)
    return p / p.square().sum().sqrt() if c.normalise else p


def _tensor_net(c, children):
    both = torch.cat(children)
    squares = torch.stack([both @ part @ both for part in c.tensor]) / (2 * c.hidden_size)
    return torch.tanh(squares + c.weight @ both + c.bias)


def _matrix_vector_word(c, x):
    a, d, u, v = x.split([H, H, 3 * H, 3 * H])
    return torch.cat([a, (torch.diag(d) + u.view(H, 3) @ v.view(3, H)).flatten()])


def _matrix_vector(c, children):
    (a, A), (b, B) = [(state[:H], state[H:].view(H, H)) for state in children]
    p = torch.tanh(c.weight @ torch.cat([B @ a, A @ b]) + c.bias)
    return torch.cat([p, (c.matrix_weight @ torch.cat([A, B])).flatten()])


def _lstm(i, g, o, kept):
    memory = torch.sigmoid(i) * torch.tanh(g) + kept
    return torch.cat([torch.sigmoid(o) * torch.tanh(memory), memory])


def _lstm_word(c, x):
    bi, _, _, bg, bo = c.bias.chunk(5)
    i, g, o = (c.weight_x @ x).chunk(3)
    return _lstm(i + bi, g + bg, o + bo, torch.zeros_like(i))


def _lstm_node(c, children):
    (h1, c1), (h2, c2) = [state.chunk(2) for state in children]
    i, f1, f2, g, o = (c.weight_h @ torch.cat([h1, h2]) + c.bias).chunk(5)
    return _lstm(i, g, o, torch.sigmoid(f1) * c1 + torch.sigmoid(f2) * c2)


def _child_sum_word(c, x):
    i, g, o = (c.weight_x @ x + c.bias).chunk(3)
    return _lstm(i, g, o, torch.zeros_like(i))


def _child_sum_node(c, children):
    hs, cs = zip(*(state.chunk(2) for state in children), strict=True)
    i, g, o = (c.weight_h @ sum(hs) + c.bias).chunk(3)
    forget = [torch.sigmoid(c.forget_weight @ h + c.forget_bias) for h in hs]
    return _lstm(i, g, o, sum(f * m for f, m in zip(forget, cs, strict=True)))


LEAVES = {
    MatrixVector: _matrix_vector_word,
    TreeLSTM: _lstm_word,
    ChildSumTreeLSTM: _child_sum_word,
}
INNER = {
    RecursiveNet: _net,
    Autoencoder: _autoencoder,
    TensorNet: _tensor_net,
    MatrixVector: _matrix_vector,
    TreeLSTM: _lstm_node,
    ChildSumTreeLSTM: _child_sum_node,
}
