"""Networks over trees: words, a composition from the leaves up to the root, softmax at the nodes.

    P(label | node) = softmax(W h + b),    h the vector of the node

What is learned is the surprise at the labels of nodes. An autoencoder adds how badly children are
found again in their parent: α E_rec + (1 − α) E_ce (Socher et al. 2011, D11-1014, section 2.4);
without labels it is all there is, and the words' vectors stay as they begin: else all words would
become one, which is found again best.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn import functional

from unrolled.nn.output import Loss
from unrolled.nn.tree_compositions import COMPOSITIONS, Autoencoder
from unrolled.nn.tree_greedy import Merged, greedy
from unrolled.nn.trees import Forest, forest
from unrolled.tasks.tree.settings import WORDS, TreeSettings
from unrolled.text.labels import Labels
from unrolled.text.tokens import UNK

NONE = -1  # the target of a node that has no label


class TreeBatch(NamedTuple):
    """Trees and what to say of their nodes."""

    forest: Forest
    targets: Tensor  # (N,) by place; NONE: nothing

    @classmethod
    def of(cls, trees: Forest, targets: Sequence[NDArray[np.int64]]) -> "TreeBatch":
        """From the targets of each tree's nodes in post-order."""
        return cls(trees, torch.from_numpy(np.concatenate(targets))[trees.nodes])


class Sentences(NamedTuple):
    """Words whose trees are built when they are read, and what to say of their roots."""

    words: Sequence[NDArray[np.int64]]
    targets: Sequence[int]


class Reading(NamedTuple):
    """What the network makes of trees."""

    vectors: Tensor  # (N, H) by place
    sentences: Tensor  # (B, H)
    errors: Tensor | None  # (M,) of each inner node's reconstruction, where there is any


class TreeNetwork(nn.Module):
    """The network; `word_counts` (V,) are the vocabulary's, `labels` None where it has none."""

    word_rates: Tensor
    root_shares: Tensor

    def __init__(
        self, settings: TreeSettings, labels: Labels | None, word_counts: Sequence[int]
    ) -> None:
        super().__init__()
        self.settings, self.sparse = settings, False
        H = settings.node_size
        E = settings.embedding_size or WORDS.get(settings.composition, 0)
        self.composition = COMPOSITIONS[settings.composition](E or H, H)
        size = self.composition.word_size
        E = E or size
        self.embedding = nn.Parameter(torch.empty(len(word_counts), E))
        self.project = nn.Parameter(torch.empty(size, E)) if size != E else None
        K = 0 if labels is None else len(labels)
        self.weight = nn.Parameter(torch.zeros(K, H)) if K else None
        self.bias = nn.Parameter(torch.zeros(K)) if K else None
        self.register_buffer("word_rates", self._rates(word_counts), persistent=False)
        self.register_buffer("root_shares", torch.full((K,), 1.0 / max(K, 1)))
        if not self.embedding.is_meta:
            self._begin()
        self.embedding.requires_grad_(not settings.freeze_vectors and K > 0)

    @torch.no_grad()
    def _begin(self) -> None:
        if self.project is None:
            self.composition.init_words_(self.embedding)
        else:
            self.embedding.normal_(std=0.1)
            self.project.normal_(std=self.embedding.size(1) ** -0.5)
        if isinstance(self.composition, Autoencoder):
            self.embedding.copy_(functional.normalize(self.embedding))
        if self.weight is not None:
            self.weight.uniform_(-0.1, 0.1)

    def _rates(self, counts: Sequence[int]) -> Tensor:
        alpha = self.settings.word_dropout
        known = torch.tensor(counts, dtype=torch.float32, device="cpu")
        rates = alpha / (alpha + known) if alpha else torch.zeros_like(known)
        rates[: UNK + 1] = 0.0
        return rates

    @torch.no_grad()
    def use_vectors(self, rows: Tensor, vectors: Tensor) -> None:
        """Put pretrained vectors (N, E) into these rows (N,), all at the scale of the others."""
        own = self.embedding.std()
        self.embedding[rows] = vectors * (own / vectors.std())
        if isinstance(self.composition, Autoencoder):
            self.embedding.copy_(functional.normalize(self.embedding))

    def words(self, ids: Tensor) -> Tensor:
        """The vectors (U, E) of words (U,); in training some are unknown, some numbers nothing."""
        if self.training and self.settings.word_dropout:
            ids = ids.masked_fill(torch.rand(ids.shape) < self.word_rates[ids], UNK)
        sparse = self.sparse and self.embedding.requires_grad
        x = functional.embedding(ids, self.embedding, sparse=sparse)
        return x if self.project is None else functional.linear(x, self.project)

    def forward(self, trees: Forest) -> Reading:
        """Vectors of all nodes and of the sentences."""
        x = self._dropped(self.words(trees.words))
        vectors: Tensor = self.composition(trees, x)  # (N, H)
        errors = None
        if isinstance(self.composition, Autoencoder):
            errors = self.composition.errors(trees, vectors)
        return Reading(vectors, self._pooled(trees, vectors), errors)

    def _dropped(self, x: Tensor) -> Tensor:
        return functional.dropout(x, self.settings.dropped, self.training)

    def _pooled(self, trees: Forest, vectors: Tensor) -> Tensor:
        """One vector a tree (B, H)."""
        if self.settings.pooling == "root":
            return vectors[trees.roots]
        sums = vectors.new_zeros(trees.trees, vectors.size(1)).index_add(0, trees.tree, vectors)
        return sums / torch.bincount(trees.tree, minlength=trees.trees)[:, None]

    def logits(self, vectors: Tensor) -> Tensor:
        """Of each label (n, K), for vectors (n, H)."""
        assert self.weight is not None
        return functional.linear(vectors, self.weight, self.bias)

    def all_logits(self, trees: Forest, reading: Reading) -> Tensor:
        """The same of all nodes (N, K) by place; a root's are the sentence's."""
        return self.logits(torch.cat([reading.vectors[trees.children], reading.sentences]))

    def loss(self, batch: TreeBatch | Sentences, carry: None = None) -> Loss:
        """Nats summed over the labels, with an autoencoder's error; without labels that alone."""
        given = batch if isinstance(batch, TreeBatch) else self.grown(batch)
        reading = self(given.forest)
        if self.weight is None:
            assert reading.errors is not None
            return Loss(reading.errors.sum(), max(1, len(reading.errors)), None)
        known = (given.targets >= 0) & (given.targets < len(self.weight))
        wanted = torch.where(known)[0]
        whole = torch.cat([reading.vectors[given.forest.children], reading.sentences])
        logits = self.logits(self._dropped(whole[wanted]))
        total = functional.cross_entropy(logits, given.targets[wanted], reduction="sum")
        if reading.errors is not None:
            alpha = self.settings.alpha
            total = alpha * reading.errors.sum() + (1.0 - alpha) * total
        return Loss(total, max(1, len(wanted)), None)

    def merged(self, sentences: Sequence[NDArray[np.int64]]) -> list[Merged]:
        """The trees that the autoencoder builds of sentences."""
        assert isinstance(self.composition, Autoencoder)
        with torch.no_grad():
            table = self.embedding.detach()
            if self.project is not None:
                table = functional.linear(table, self.project)
        return greedy(self.composition, sentences, table)

    def grown(self, batch: Sentences) -> TreeBatch:
        """Sentences as the trees that they become now."""
        trees = [each.tree for each in self.merged(batch.words)]
        spread = self.settings.labels == "sentence"
        targets = [
            np.full(len(each.parent), target) if spread else _root(len(each.parent), target)
            for each, target in zip(trees, batch.targets, strict=True)
        ]
        return TreeBatch.of(forest(trees), targets)


def _root(nodes: int, target: int) -> NDArray[np.int64]:
    targets = np.full(nodes, NONE)
    targets[-1] = target
    return targets
