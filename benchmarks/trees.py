"""Networks over trees beside the same node by node: trees a second of training and of inference.

    python benchmarks/trees.py FOLDER [--rounds 3] [--seconds 1] [--only treelstm|rntn|greedy|depth]

FOLDER holds the Stanford Sentiment Treebank as bracketed trees (train.txt). Training is forth, a
softmax over five classes at every node, back, and Adagrad with row-sparse word vectors; inference
the labels of all nodes. Every way begins with trees in memory: laying out a batch counts. Ways:

    per node     ordinary PyTorch, a node at a time, on one thread or two, whichever is the faster
    level-wise   what this package runs where there are no kernels
    compiled     its kernels

Medians of rounds in which the ways take turns. The share is that of the arithmetic that torch's
product of 1,024 × 1,024 matrices reaches on this machine in the same minute; products that sharing
between leaves saves count as done. Prints Markdown.
"""

import argparse
import re
import statistics
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple
from unittest.mock import patch

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from unrolled.nn import tree_kernels
from unrolled.nn.tree_composition import Composition
from unrolled.nn.tree_compositions import Autoencoder, TensorNet
from unrolled.nn.tree_greedy import greedy
from unrolled.nn.tree_lstm import TreeLSTM
from unrolled.nn.trees import Tree, forest, tree
from unrolled.tasks.run import use_machine
from unrolled.training.optimise import Adagrad

CLASSES, RATE = 5, 0.05
BATCHES = (25, 100, 400)
TOKEN = re.compile(r"\(|\)|[^\s()]+")


class Labelled(NamedTuple):
    """A tree, and the label of each of its nodes."""

    tree: Tree
    labels: np.ndarray


def read(path: Path, most: int) -> tuple[list[Labelled], int]:
    """The first trees of a file, and how many words they have."""
    words: dict[str, int] = {}
    lines = path.read_text(encoding="utf-8").splitlines()[:most]
    return [one_tree(line, words) for line in lines], len(words)


def one_tree(line: str, words: dict[str, int]) -> Labelled:
    tokens = TOKEN.findall(line)
    parent: list[int] = []
    word: list[int] = []
    labels: list[int] = []
    open_labels: list[int] = []
    below: list[list[int]] = [[]]
    for at, token in enumerate(tokens):
        if token == "(":
            open_labels.append(int(tokens[at + 1]))
            below.append([])
        elif token == ")":
            children = below.pop()
            node = len(parent)
            for child in children:
                parent[child] = node
            leaf = -1 if children else words.setdefault(tokens[at - 1], len(words))
            parent.append(-1)
            word.append(leaf)
            labels.append(open_labels.pop())
            below[-1].append(node)
    return Labelled(tree(parent, word), np.array(labels))


class Network(nn.Module):
    """Words, a composition and a softmax at every node."""

    def __init__(self, composition: Composition, V: int) -> None:
        super().__init__()
        self.words = nn.Embedding(V, composition.word_size, sparse=True)
        composition.init_words_(self.words.weight.data)
        self.composition = composition
        self.output = nn.Linear(composition.hidden_size, CLASSES)

    def scores(self, batch: Sequence[Labelled]) -> tuple[Tensor, Tensor]:
        woods = forest([each.tree for each in batch])
        labels = np.concatenate([each.labels for each in batch])
        vectors = self.composition.compose(woods, self.words(woods.words))
        return self.output(vectors), torch.from_numpy(labels)[woods.nodes]

    def scores_by_node(self, batch: Sequence[Labelled]) -> tuple[Tensor, Tensor]:
        labels = np.concatenate([each.labels for each in batch])
        nodes = [self.output(h) for each in batch for h in self.nodes_of(each.tree)]
        return torch.cat(nodes), torch.from_numpy(labels)

    def loss_by_node(self, batch: Sequence[Labelled]) -> Tensor:
        return sum(
            functional.cross_entropy(self.output(h), torch.tensor([label]))
            for each in batch
            for h, label in zip(self.nodes_of(each.tree), each.labels.tolist(), strict=True)
        )  # type: ignore[return-value]

    def loss(self, batch: Sequence[Labelled]) -> Tensor:
        return functional.cross_entropy(*self.scores(batch), reduction="sum")

    def nodes_of(self, each: Tree) -> list[Tensor]:
        """Their vectors (1, H), a node at a time."""
        step = STEPS[type(self.composition)]
        stack: list[Tensor] = []
        nodes: list[Tensor] = []
        for word in each.word.tolist():
            if word >= 0:
                stack.append(self.composition.leaf(self.words(torch.tensor([word]))))
            else:
                right, left = stack.pop(), stack.pop()
                stack.append(step(self.composition, left, right))
            nodes.append(stack[-1][:, : self.composition.hidden_size])
        return nodes


def lstm_step(net: TreeLSTM, left: Tensor, right: Tensor) -> Tensor:
    """As people write it: gates of one product, a node's state h and c."""
    h1, c1 = left.chunk(2, 1)
    h2, c2 = right.chunk(2, 1)
    a = functional.linear(torch.cat([h1, h2], 1), net.weight_h, net.bias)
    i, f1, f2, g, o = a.chunk(5, 1)
    c = torch.sigmoid(i) * torch.tanh(g) + torch.sigmoid(f1) * c1 + torch.sigmoid(f2) * c2
    return torch.cat([torch.sigmoid(o) * torch.tanh(c), c], 1)


def tensor_step(net: TensorNet, left: Tensor, right: Tensor) -> Tensor:
    both = torch.cat([left, right], 1)
    squares = ((both @ net.tensor) @ both.t()).view(1, -1)
    return torch.tanh(squares + functional.linear(both, net.weight, net.bias))


STEPS: dict[type, Callable] = {TreeLSTM: lstm_step, TensorNet: tensor_step}


def trains(network: Network, *, by_node: bool) -> Callable[[Sequence[Labelled]], None]:
    """A step of training on a batch."""
    optimizer = Adagrad(network.parameters(), lr=RATE)
    summed = network.loss_by_node if by_node else network.loss

    def step(batch: Sequence[Labelled]) -> None:
        loss = summed(batch) / len(batch)
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        optimizer.step()

    return step


def infers(network: Network, *, by_node: bool) -> Callable[[Sequence[Labelled]], None]:
    """The labels of a batch's nodes."""
    scores = network.scores_by_node if by_node else network.scores

    @torch.no_grad()
    def step(batch: Sequence[Labelled]) -> None:
        scores(batch)[0].argmax(1)

    return step


def rate(step: Callable, data: Sequence, batch: int, seconds: float) -> float:
    """Trees a second, for at least so long and one batch."""
    begin, done = time.perf_counter(), 0
    while done == 0 or time.perf_counter() - begin < seconds:
        at = done % max(len(data) - batch, 1)
        step(data[at : at + batch])
        done += batch
    return done / (time.perf_counter() - begin)


def without_kernels(step: Callable) -> Callable:
    def run(batch: Sequence) -> None:
        with patch.object(tree_kernels, "_kernels", None):
            step(batch)

    return run


def on_threads(step: Callable, count: int) -> Callable:
    def run(batch: Sequence) -> None:
        torch.set_num_threads(count)
        step(batch)

    return run


def medians(
    ways: dict[str, Callable], data: Sequence, batch: int, options: argparse.Namespace
) -> dict[str, float]:
    """Of rounds in which the ways take turns."""
    found: dict[str, list[float]] = {name: [] for name in ways}
    for name, way in ways.items():
        way(data[:batch] if not name.startswith("per node") else data[:2])
    for _ in range(options.rounds):
        for name, way in ways.items():
            found[name].append(rate(way, data, batch, options.seconds))
    return {name: statistics.median(values) for name, values in found.items()}


def machine(seconds: float = 0.5) -> dict[int, float]:
    """GFLOP/s of a large product on one thread and on two."""
    left, right = torch.randn(1024, 1024), torch.randn(1024, 1024)
    found = {}
    for count in (1, 2):
        torch.set_num_threads(count)
        torch.mm(left, right)
        begin, done = time.perf_counter(), 0
        while time.perf_counter() - begin < seconds:
            torch.mm(left, right)
            done += 1
        found[count] = done * 2 * 1024**3 / (time.perf_counter() - begin) / 1e9
    return found


def compared(
    make: Callable[[], Network],
    data: Sequence[Labelled],
    work: Callable,
    flops: float,
    options: argparse.Namespace,
) -> None:
    """A table over batches; flops: of an inner node in all."""
    inner = statistics.mean(int((each.tree.word < 0).sum()) for each in data)
    print("| batch | per node | level-wise | compiled | level-wise | compiled | share |")
    print("|---|---|---|---|---|---|---|")
    for batch in BATCHES:
        peak = machine()
        ways = {
            "per node, 1": on_threads(work(make(), by_node=True), 1),
            "per node, 2": on_threads(work(make(), by_node=True), 2),
            "level-wise": on_threads(without_kernels(work(make(), by_node=False)), 2),
            "compiled": on_threads(work(make(), by_node=False), 2),
        }
        found = medians(ways, data, batch, options)
        peer = max(found["per node, 1"], found["per node, 2"])
        level, ours = found["level-wise"], found["compiled"]
        share = ours * inner * flops / 1e9 / max(peak.values())
        print(
            f"| {batch} | {peer:,.0f} | {level:,.0f} | {ours:,.0f} | {level / peer:.1f}× "
            f"| {ours / peer:.1f}× | {share:.0%} |",
            flush=True,
        )


def lstm_table(data: Sequence[Labelled], V: int, options: argparse.Namespace) -> None:
    def make() -> Network:
        torch.manual_seed(1)
        return Network(TreeLSTM(150, 150), V)

    flops = 2 * 5 * 150 * 300
    print("\nBinary Tree-LSTM, 150 dimensions, training\n")
    compared(make, data, trains, 3 * flops, options)
    print("\nThe same, inference\n")
    compared(make, data, infers, flops, options)


def tensor_table(data: Sequence[Labelled], V: int, options: argparse.Namespace) -> None:
    def make() -> Network:
        torch.manual_seed(1)
        return Network(TensorNet(30), V)

    print("\nTensor network, 30 dimensions, training\n")
    compared(make, data, trains, 3 * 2 * 30 * (3600 + 60), options)


@torch.no_grad()
def naive_greedy(net: Autoencoder, words: np.ndarray, table: Tensor) -> None:
    """A sentence as people write it: all pairs of a sentence at every step."""
    nodes, sizes = table[torch.from_numpy(words)], torch.ones(len(words))
    while len(nodes) > 1:
        pairs = torch.cat([nodes[:-1], nodes[1:]], 1)
        parents = net.parent(pairs)
        both = torch.stack([sizes[:-1], sizes[1:]], 1)
        at = int(net.reconstruction(pairs, parents, both).argmin())
        nodes = torch.cat([nodes[:at], parents[at : at + 1], nodes[at + 2 :]])
        sizes = torch.cat([sizes[:at], both[at].sum()[None], sizes[at + 2 :]])


def greedy_table(data: Sequence[Labelled], V: int, options: argparse.Namespace) -> None:
    torch.manual_seed(1)
    net, table = Autoencoder(100), 0.1 * torch.randn(V, 100)
    sentences = [each.tree.word[each.tree.word >= 0] for each in data]

    def naive(batch: Sequence[np.ndarray]) -> None:
        for words in batch:
            naive_greedy(net, words, table)

    def ours(batch: Sequence[np.ndarray]) -> None:
        greedy(net, batch, table)

    print("\nGreedy autoencoder, 100 dimensions, sentences a second\n")
    print(
        "| batch | sentence by sentence | batched | compiled | batched | compiled |\n"
        "|---|---|---|---|---|---|"
    )
    for batch in BATCHES:
        ways = {
            "naive, 1": on_threads(naive, 1),
            "naive, 2": on_threads(naive, 2),
            "batched": on_threads(without_kernels(ours), 2),
            "compiled": on_threads(ours, 2),
        }
        found = medians(ways, sentences, batch, options)
        peer = max(found["naive, 1"], found["naive, 2"])
        level, fast = found["batched"], found["compiled"]
        print(
            f"| {batch} | {peer:,.0f} | {level:,.0f} | {fast:,.0f} | {level / peer:.1f}× "
            f"| {fast / peer:.1f}× |",
            flush=True,
        )


def built(words: np.ndarray, *, chain: bool) -> Labelled:
    """A tree of these words: a chain from the left, or as flat as can be."""
    children: dict[int, list[int]] = {}
    row = [*range(len(words))]
    while len(row) > 1:
        pairs = [row[:2]] if chain else [row[k : k + 2] for k in range(0, len(row), 2)]
        rest = row[2:] if chain else []
        row = []
        for pair in pairs:
            row.append(len(words) + len(children) if len(pair) == 2 else pair[0])
            if len(pair) == 2:
                children[row[-1]] = pair
        row += rest
    order, stack = [], row
    while stack:
        node = stack.pop()
        order.append(node)
        stack.extend(children.get(node, ()))
    number = {node: index for index, node in enumerate(reversed(order))}
    parent = [-1] * len(order)
    for node, below in children.items():
        for child in below:
            parent[number[child]] = number[node]
    ids = [int(words[node]) if node < len(words) else -1 for node in reversed(order)]
    return Labelled(tree(parent, ids), np.zeros(len(order), np.int64))


def depth_table(data: Sequence[Labelled], V: int, options: argparse.Namespace) -> None:
    """Microseconds a node of training, over depth and batch."""
    torch.manual_seed(1)
    rng = np.random.default_rng(1)
    print("\nMicroseconds of training a node, Tree-LSTM, 150 dimensions, compiled\n")
    print(
        "| trees | "
        + " | ".join(f"batch {batch}" for batch in (1, *BATCHES))
        + " |\n|---|---|---|---|---|"
    )
    for chain in (False, True):
        for words in (10, 20, 40, 80):
            trees = [built(rng.integers(0, V, words), chain=chain) for _ in range(800)]
            step = on_threads(trains(Network(TreeLSTM(150, 150), V), by_node=False), 2)
            cells = []
            for batch in (1, *BATCHES):
                step(trees[:batch])
                speed = statistics.median(
                    rate(step, trees, batch, options.seconds / 3) for _ in range(options.rounds)
                )
                cells.append(f"{1e6 / speed / (2 * words - 1):.2f}")
            name = "chains" if chain else "as flat as can be"
            print(f"| {words} words, {name} | " + " | ".join(cells) + " |", flush=True)


TABLES = {
    "treelstm": lstm_table,
    "rntn": tensor_table,
    "greedy": greedy_table,
    "depth": depth_table,
}


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folder", type=Path)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=1.0)
    parser.add_argument("--only", choices=[*TABLES])
    options = parser.parse_args()
    use_machine(2)
    data, V = read(options.folder / "train.txt", 4000)
    peak = machine()
    print(
        f"{len(data):,} trees, {V:,} words; product of 1,024 × 1,024: {peak[1]:.0f} GFLOP/s on one "
        f"thread, {peak[2]:.0f} on two"
    )
    for name, table in TABLES.items():
        if options.only in (None, name):
            table(data, V, options)


if __name__ == "__main__":
    main()
