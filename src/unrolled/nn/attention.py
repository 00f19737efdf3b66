"""Attention: for each query a mean of the values, weighted by how well their keys answer it.

    e_i = score(s, h_i)     α = softmax_i(e)     c = Σ_i α_i h_i

Bahdanau et al. 2015 (arXiv:1409.0473), eq. 5 and 6. Keys and values are the same vectors h_i, the
states of an encoder. What of a score depends on the keys alone is computed once, in `remember`.
"""

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional

from unrolled.errors import ConfigError, not_one_of


class Memory(NamedTuple):
    """What queries meet."""

    values: Tensor  # (B, S, D)
    keys: Tensor  # (B, S, ·) as the score wants them
    padding_mask: Tensor  # (B, S) True on padding

    def rows(self, which: Tensor) -> "Memory":
        """These rows, in this order."""
        return Memory(*(part.index_select(0, which) for part in self))


class AttentionScore(nn.Module, ABC):
    """How well keys answer queries; Q is the size of a query, D that of a key."""

    def keys(self, h: Tensor) -> Tensor:
        """h (B, S, D), the part of the score that is the same for all queries."""
        return h

    @abstractmethod
    def forward(self, s: Tensor, keys: Tensor) -> Tensor:
        """Queries (B, T, Q) -> scores (B, T, S)."""


class Dot(AttentionScore):
    """sᵀh (Luong et al. 2015, arXiv:1508.04025, eq. 8)."""

    def __init__(self, query_size: int, key_size: int, **_: int) -> None:
        super().__init__()
        if query_size != key_size:
            name = type(self).__name__.lower()
            raise ConfigError(
                f"{name} attention compares queries of {query_size} features with keys of "
                f'{key_size}, but they must be equal. Take "general", which has a matrix between '
                "them, or make decoder and encoder states of equal size."
            )

    def forward(self, s: Tensor, keys: Tensor) -> Tensor:
        return s @ keys.mT


class Scaled(Dot):
    """sᵀh / √d: of variance 1 where s and h have it (Vaswani et al. 2017, arXiv:1706.03762)."""

    def forward(self, s: Tensor, keys: Tensor) -> Tensor:
        return s @ keys.mT * (1.0 / math.sqrt(s.size(2)))


class Cosine(Dot):
    """sᵀh / (‖s‖ ‖h‖), in −1..1 (Graves et al. 2014, arXiv:1410.5401, eq. 6)."""

    def keys(self, h: Tensor) -> Tensor:
        return functional.normalize(h, dim=2)

    def forward(self, s: Tensor, keys: Tensor) -> Tensor:
        return functional.normalize(s, dim=2) @ keys.mT


class General(AttentionScore):
    """sᵀ W h, W (Q, D): bilinear or multiplicative (Luong et al. 2015, eq. 8)."""

    def __init__(self, query_size: int, key_size: int, **_: int) -> None:
        super().__init__()
        self.weight = _matrix(query_size, key_size)

    def keys(self, h: Tensor) -> Tensor:
        return functional.linear(h, self.weight)  # (B, S, Q)

    def forward(self, s: Tensor, keys: Tensor) -> Tensor:
        return s @ keys.mT


class Reduced(AttentionScore):
    """(U s)ᵀ(V h), U (A, Q) and V (A, D): "general" with W = UᵀV of rank A."""

    def __init__(self, query_size: int, key_size: int, *, size: int, **_: int) -> None:
        super().__init__()
        self.query, self.key = _matrix(size, query_size), _matrix(size, key_size)

    def keys(self, h: Tensor) -> Tensor:
        return functional.linear(h, self.key)  # (B, S, A)

    def forward(self, s: Tensor, keys: Tensor) -> Tensor:
        return functional.linear(s, self.query) @ keys.mT


class Additive(AttentionScore):
    """vᵀ tanh(W₁ h + W₂ s), of A hidden units (Bahdanau et al. 2015, appendix A.1.2)."""

    def __init__(self, query_size: int, key_size: int, *, size: int, **_: int) -> None:
        super().__init__()
        self.query, self.key = _matrix(size, query_size), _matrix(size, key_size)
        self.vector = nn.Parameter(torch.empty(size).uniform_(-1.0, 1.0).mul_(size**-0.5))

    def keys(self, h: Tensor) -> Tensor:
        return functional.linear(h, self.key)  # (B, S, A)

    def forward(self, s: Tensor, keys: Tensor) -> Tensor:
        asked = functional.linear(s, self.query)  # (B, T, A)
        return torch.tanh(asked[:, :, None] + keys[:, None]) @ self.vector  # of (B, T, S, A)


class Concat(AttentionScore):
    """vᵀ tanh(W [s; h]): "additive" with W = [W₂ W₁] as one matrix (A, Q + D)."""

    def __init__(self, query_size: int, key_size: int, *, size: int, **_: int) -> None:
        super().__init__()
        self.query_size = query_size
        self.weight = _matrix(size, query_size + key_size)
        self.vector = nn.Parameter(torch.empty(size).uniform_(-1.0, 1.0).mul_(size**-0.5))

    def keys(self, h: Tensor) -> Tensor:
        return functional.linear(h, self.weight[:, self.query_size :])  # (B, S, A)

    def forward(self, s: Tensor, keys: Tensor) -> Tensor:
        asked = functional.linear(s, self.weight[:, : self.query_size])  # (B, T, A)
        return torch.tanh(asked[:, :, None] + keys[:, None]) @ self.vector  # of (B, T, S, A)


class Location(AttentionScore):
    """W s, a score for each place whatever stands there (Luong et al. 2015, eq. 9).

    W (span, Q) has a row a place, so no source may be longer than `span`.
    """

    def __init__(self, query_size: int, key_size: int, *, span: int, **_: int) -> None:
        super().__init__()
        self.weight = _matrix(span, query_size)

    def forward(self, s: Tensor, keys: Tensor) -> Tensor:
        S, span = keys.size(1), self.weight.size(0)
        if span < S:
            raise ConfigError(
                f"a source has {S} tokens, but location attention knows {span} places. "
                "Train with a larger model.attention_span, or cut the source."
            )
        return functional.linear(s, self.weight[:S])


SCORES: Mapping[str, type[AttentionScore]] = {
    "additive": Additive,
    "concat": Concat,
    "cosine": Cosine,
    "dot": Dot,
    "general": General,
    "location": Location,
    "reduced": Reduced,
    "scaled": Scaled,
}


class Attention(nn.Module):
    """Queries to contexts. `size` is A of the scores that have it, `span` the places of "location".

    The weights are exactly 0 on padding and sum to 1.
    """

    def __init__(
        self, how: str, query_size: int, key_size: int, *, size: int = 128, span: int = 100
    ) -> None:
        super().__init__()
        if how not in SCORES:
            raise not_one_of("attention", how, SCORES)
        self.score = SCORES[how](query_size, key_size, size=size, span=span)

    def remember(self, h: Tensor, padding_mask: Tensor) -> Memory:
        """Vectors h (B, S, D), padding (B, S) where the mask is True."""
        return Memory(h, self.score.keys(h), padding_mask)

    def forward(self, s: Tensor, memory: Memory) -> tuple[Tensor, Tensor]:
        """Queries (B, T, Q) -> contexts (B, T, D), weights (B, T, S)."""
        scores = self.score(s, memory.keys)
        weights = scores.masked_fill(memory.padding_mask[:, None], -torch.inf).softmax(dim=2)
        return weights @ memory.values, weights


def _matrix(rows: int, columns: int) -> nn.Parameter:
    bound = columns**-0.5
    return nn.Parameter(torch.empty(rows, columns).uniform_(-bound, bound))
