"""Fit the mean-of-embeddings baseline on rows of tokens: softmax(W · mean(e_t) + b)."""

from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn import functional

from unrolled.tasks.shared.label_baselines import TokenRows

SIZE, RATE, BATCH = 50, 0.01, 256
TOKENS = 12_000_000  # that are read at most, in two epochs or more


class MeanEmbedding(NamedTuple):
    """What `Baselines.keep_mean` takes over."""

    embedding: Tensor  # (V, E)
    weight: Tensor  # (K, E)
    bias: Tensor  # (K,)


def fit_mean_embedding(
    texts: TokenRows, targets: NDArray[np.int64], *, sizes: tuple[int, int], seed: int
) -> MeanEmbedding:
    """Fit it by Adam, `sizes` being tokens and labels; torch's generator stays as it was."""
    V, K = sizes
    epochs = min(10, max(2, TOKENS // max(1, int(texts.lengths.sum()))))
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        table = nn.Parameter(torch.empty(V, SIZE).uniform_(-0.25, 0.25))
        weight = nn.Parameter(torch.empty(K, SIZE).uniform_(-0.1, 0.1))
        bias = nn.Parameter(torch.zeros(K))
    model = MeanEmbedding(table, weight, bias)
    optimizer = torch.optim.Adam([*model], lr=RATE, fused=True)
    batch = max(BATCH, len(texts) // 500)
    for epoch in range(epochs):
        order = np.random.default_rng([seed, epoch]).permutation(len(texts))
        for begin in range(0, len(order), batch):
            rows = order[begin : begin + batch]
            logits = _logits(model, texts, rows)
            optimizer.zero_grad()
            loss: Tensor = functional.cross_entropy(logits, torch.from_numpy(targets[rows]))
            loss.backward()  # type: ignore[no-untyped-call]
            optimizer.step()
    return MeanEmbedding(*(part.detach() for part in model))


def _logits(model: MeanEmbedding, texts: TokenRows, rows: NDArray[np.int64]) -> Tensor:
    lengths = texts.lengths[rows]
    before = np.cumsum(lengths) - lengths
    places = np.repeat(texts.rows.starts[rows] - before, lengths) + np.arange(lengths.sum())
    ids = torch.from_numpy(texts.ids[places].astype(np.int64))
    mean = functional.embedding_bag(ids, model.embedding, torch.from_numpy(before), mode="mean")
    return functional.linear(mean, model.weight, model.bias)
