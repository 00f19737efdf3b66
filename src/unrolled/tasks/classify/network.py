"""Recurrent classifiers: embeddings, recurrent stack, one vector for the text, softmax.

    P(label | text) = softmax(W s + b),    s = pooled h_1 … h_T

Texts that are aligned, such as windows of DNA, say much by where a token stands: `positions` adds a
learned vector for each of the first places to what stands there.

Where a text may have several labels each is asked by itself: P(label) = σ(w·s + b), and the loss is
−y log ŷ − (1−y) log(1−ŷ), summed over the labels. Without the stack (kind "mean") s is the mean of
the embeddings: what such a model cannot see is order.
"""

from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional

from unrolled.nn.dropout import Dropout
from unrolled.nn.output import Loss
from unrolled.nn.pooling import AttentionPooling, pool
from unrolled.tasks.classify.reader import LabelledBatch
from unrolled.tasks.classify.settings import ClassifySettings
from unrolled.tasks.shared.stack import recurrent_stack
from unrolled.tasks.shared.word_embedder import WordEmbedder
from unrolled.text.labels import Labels
from unrolled.text.word_batch import WordBatch

State = tuple[Tensor, ...]

EMBEDDING_BOUND = 0.25  # embeddings begin uniform in ± this (Kim 2014, arXiv:1408.5882)


class Reading(NamedTuple):
    """What the network makes of texts."""

    logits: Tensor  # (B, K)
    attention: Tensor | None  # (B, T), exactly 0 in the padding
    sentence: Tensor  # (B, F)


class ClassifyNetwork(nn.Module):
    """The network of a classifier; `word_counts` (V,) are the vocabulary's."""

    label_weights: Tensor

    def __init__(
        self,
        settings: ClassifySettings,
        labels: Labels,
        word_counts: Sequence[int],
        character_count: int,
    ) -> None:
        super().__init__()
        self.settings, self.multi_label = settings, labels.multi_label
        self.embedder = WordEmbedder(
            word_counts,
            character_count,
            embedding_size=settings.embedding_size,
            characters=settings.characters,
            character_embedding_size=settings.character_embedding_size,
            character_hidden_size=settings.character_hidden_size,
            word_dropout=settings.word_dropout,
        )
        nn.init.uniform_(self.embedder.embedding.weight, -EMBEDDING_BOUND, EMBEDDING_BOUND)
        words = self.embedder.output_size
        self.positions = _positions(settings.positions, words)
        self.stack = recurrent_stack(settings, words) if settings.kind == "recurrent" else None
        size = self.stack.output_size if self.stack else words
        self.pooling = settings.pooling if self.stack else "mean"
        self.attention = AttentionPooling(size) if self.pooling == "attention" else None
        self.dropout = Dropout(settings.dropout, variational=settings.variational)
        self.weight = nn.Parameter(torch.empty(len(labels), size).uniform_(-0.1, 0.1))
        self.bias = nn.Parameter(torch.zeros(len(labels)))
        weights = label_weights(labels, settings.class_weights)
        self.register_buffer("label_weights", weights, persistent=False)

    def forward(self, texts: WordBatch) -> Reading:
        """Logits (B, K) and, where there is attention, its weights (B, T)."""
        return self.read(self.embedder(texts), texts.lengths)

    def read(self, vectors: Tensor, lengths: Tensor) -> Reading:
        """The same from the vectors of tokens (B, T, E) on."""
        y, state = self.dropout(self._placed(vectors)), None
        if self.stack is not None:
            y, state = self.stack(y, lengths)  # (B, T, F)
            y = self.dropout(y)
        sentence, attention = self._pooled(y, lengths, state)
        return Reading(functional.linear(sentence, self.weight, self.bias), attention, sentence)

    def _placed(self, vectors: Tensor) -> Tensor:
        if self.positions is None:
            return vectors
        known = self.positions[: vectors.size(1)]
        beyond = vectors.size(1) - known.size(0)
        return vectors + functional.pad(known, (0, 0, 0, beyond))  # (B, T, E)

    def _pooled(
        self, y: Tensor, lengths: Tensor, state: State | None
    ) -> tuple[Tensor, Tensor | None]:
        """One vector a text (B, F)."""
        if self.attention is not None:
            return self.attention(y, lengths)  # type: ignore[no-any-return]
        if self.pooling != "last" or state is None or self.stack is None:
            return pool(y, lengths, how=self.pooling), None
        # of two directions the one has its last state at the end, the other at the beginning
        last = state[0][-self.stack.directions :].transpose(0, 1)  # (B, D, H)
        both = last.flatten(1) if self.settings.combine == "concat" else last.mean(dim=1)
        return self.dropout(both[:, None])[:, 0], None  # (B, F)

    def loss(self, batch: LabelledBatch, carry: State | None = None) -> Loss:
        """Nats summed over the texts, or over every label of every text where they are several."""
        logits = self(batch.texts).logits
        nats = self.nats(logits, batch.targets)
        return Loss(nats.sum(), nats.numel(), None)

    def nats(self, logits: Tensor, targets: Tensor) -> Tensor:
        """Weighted surprise at each target: (B,), or (B, K) where labels are several."""
        if not self.multi_label:
            surprise = functional.cross_entropy(logits, targets, reduction="none")
            return surprise * self.label_weights[1, targets]
        surprise = functional.binary_cross_entropy_with_logits(
            logits, targets.to(logits.dtype), reduction="none"
        )
        return surprise * torch.where(targets > 0, self.label_weights[1], self.label_weights[0])

    def probabilities(self, logits: Tensor) -> Tensor:
        """Of each label (B, K), in float64 so that they sum to one."""
        wide = logits.double()
        return wide.sigmoid() if self.multi_label else wide.softmax(dim=1)

    def log_odds(self, logits: Tensor, label: int) -> Tensor:
        """ln p / (1 − p) of one label (B,)."""
        own = logits[:, label]
        if self.multi_label:
            return own
        others = torch.arange(logits.size(1)) != label  # (K,)
        return own - logits[:, others].logsumexp(dim=1)


def label_weights(labels: Labels, how: str) -> Tensor:
    """What an example counts without a label and with it: (2, K), 1 on average.

    "balanced": N / (K n_k), so that all labels weigh the same together; of several labels, each
    label's yes and no do.
    """
    if how == "none":
        return torch.ones(2, len(labels), device="cpu")
    counts = torch.tensor(labels.counts, dtype=torch.float64, device="cpu")
    if not labels.multi_label:
        yes = labels.examples / (len(labels) * counts)
        return torch.stack([torch.zeros_like(yes), yes]).float()
    both = torch.stack([labels.examples - counts, counts])  # (2, K)
    return (labels.examples / (2.0 * both.clamp(min=1.0))).float()


def _positions(places: int, size: int) -> nn.Parameter | None:
    return nn.Parameter(torch.empty(places, size).uniform_(-0.1, 0.1)) if places else None
