"""Dropout for sequences."""

import torch
from torch import Tensor, nn
from torch.nn import functional

from unrolled.errors import ConfigError


class Dropout(nn.Module):
    """Zero a share p of the features while training, and scale the rest by 1 / (1 − p).

    Each time step draws its own mask, or, if `variational`, all steps of a sequence share one
    (Gal & Ghahramani 2016, arXiv:1512.05287).
    """

    def __init__(self, p: float, *, variational: bool = False) -> None:
        super().__init__()
        check_share(p)
        self.p, self.variational = p, variational

    def forward(self, x: Tensor) -> Tensor:
        """x (B, T, F) -> (B, T, F)."""
        return drop(x, self.p, variational=self.variational) if self.training else x

    def extra_repr(self) -> str:
        return f"p={self.p}, variational={self.variational}"


def check_share(p: float) -> None:
    """Refuse what is no share, and all."""
    if not 0.0 <= p < 1.0:
        raise ConfigError(f"dropout is {p}, but must be in [0, 1). Take 0 to drop nothing.")


def drop(x: Tensor, p: float, *, variational: bool) -> Tensor:
    """What Dropout does to x (B, T, F) in training."""
    if p == 0.0:
        return x
    if not variational:
        return functional.dropout(x, p)
    return x * functional.dropout(torch.ones_like(x[:, :1]), p)  # mask (B, 1, F)
