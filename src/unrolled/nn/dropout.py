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
        if not 0.0 <= p < 1.0:
            raise ConfigError(f"dropout is {p}, but must be in [0, 1). Take 0 to drop nothing.")
        self.p, self.variational = p, variational

    def forward(self, x: Tensor) -> Tensor:
        """x (B, T, F) -> (B, T, F)."""
        if not self.training or self.p == 0.0:
            return x
        if not self.variational:
            return functional.dropout(x, self.p)
        return x * functional.dropout(torch.ones_like(x[:, :1]), self.p)  # mask (B, 1, F)

    def extra_repr(self) -> str:
        return f"p={self.p}, variational={self.variational}"
