"""One vector for a sequence: its last state, the mean or maximum over its steps, or attention."""

from collections.abc import Callable, Mapping

import torch
from torch import Tensor, nn
from torch.nn import functional

from unrolled.errors import not_one_of


def _last(y: Tensor, lengths: Tensor) -> Tensor:
    return y[torch.arange(y.size(0), device=y.device), lengths - 1]


def _mean(y: Tensor, lengths: Tensor) -> Tensor:
    return _cleared(y, lengths, 0.0).sum(dim=1) / lengths[:, None]


def _max(y: Tensor, lengths: Tensor) -> Tensor:
    return _cleared(y, lengths, -torch.inf).amax(dim=1)


def _cleared(y: Tensor, lengths: Tensor, value: float) -> Tensor:
    return y.masked_fill(_padding_mask(y, lengths)[:, :, None], value)


def _padding_mask(y: Tensor, lengths: Tensor) -> Tensor:
    return torch.arange(y.size(1), device=y.device) >= lengths[:, None]  # (B, T)


POOLS: Mapping[str, Callable[[Tensor, Tensor], Tensor]] = {
    "last": _last,
    "mean": _mean,
    "max": _max,
}


def pool(y: Tensor, lengths: Tensor | None = None, *, how: str = "last") -> Tensor:
    """y (B, T, F), lengths (B,) -> (B, F); what lies beyond a length changes nothing.

    "last" is the output at each row's last step: of a one-directional stack its last state.
    """
    if how not in POOLS:
        raise not_one_of("pooling", how, POOLS)
    if lengths is None:
        lengths = torch.full((y.size(0),), y.size(1), device=y.device)
    return POOLS[how](y, lengths)


class AttentionPooling(nn.Module):
    """The mean of the steps, weighted by how well each answers one learned question.

        u_t = tanh(W y_t + b)     a = softmax_t(u_t · v)     s = Σ_t a_t y_t

    Yang et al. 2016 (aclanthology.org/N16-1174), eq. 5 to 7.
    """

    def __init__(self, size: int) -> None:
        super().__init__()
        bound = size**-0.5
        self.weight = nn.Parameter(torch.empty(size, size).uniform_(-bound, bound))
        self.bias = nn.Parameter(torch.zeros(size))
        self.query = nn.Parameter(torch.empty(size).uniform_(-bound, bound))

    def forward(self, y: Tensor, lengths: Tensor) -> tuple[Tensor, Tensor]:
        """y (B, T, F), lengths (B,) -> s (B, F), a (B, T); a is exactly 0 beyond each length."""
        y = _cleared(y, lengths, 0.0)
        scores = torch.tanh(functional.linear(y, self.weight, self.bias)) @ self.query  # (B, T)
        weights = scores.masked_fill(_padding_mask(y, lengths), -torch.inf).softmax(dim=1)
        return torch.einsum("bt,btf->bf", weights, y), weights
