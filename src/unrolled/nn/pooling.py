"""One vector for a sequence: its last state, or the mean or the maximum over its steps."""

from collections.abc import Callable, Mapping

import torch
from torch import Tensor

from unrolled.errors import not_one_of


def _last(y: Tensor, lengths: Tensor) -> Tensor:
    return y[torch.arange(y.size(0), device=y.device), lengths - 1]


def _mean(y: Tensor, lengths: Tensor) -> Tensor:
    return _cleared(y, lengths, 0.0).sum(dim=1) / lengths[:, None]


def _max(y: Tensor, lengths: Tensor) -> Tensor:
    return _cleared(y, lengths, -torch.inf).amax(dim=1)


def _cleared(y: Tensor, lengths: Tensor, value: float) -> Tensor:
    beyond = torch.arange(y.size(1), device=y.device) >= lengths[:, None]  # (B, T)
    return y.masked_fill(beyond[:, :, None], value)


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
