"""GloVe: vectors whose products are the logarithms of how often words come together.

    J = Σ f(X_ij) (wᵢᵀ w̃ⱼ + bᵢ + b̃ⱼ − log X_ij)²        (Pennington et al. 2014, equation 8)

over the pairs that come together at all: X_ij counts word j in the window of word i, neighbours at
distance d as 1/d, and f(0) = 0. What a word's vector is in the end is wᵢ + w̃ᵢ.
"""

import torch
from torch import Tensor, nn

from unrolled.nn.glove_kernels import Pairs, Weighting
from unrolled.nn.output import Loss


class GloveNetwork(nn.Module):
    """Words and contexts, a vector and a bias each."""

    def __init__(self, words: int, size: int, weighting: Weighting) -> None:
        super().__init__()
        self.word = nn.Parameter(_first(torch.empty(words, size)))
        self.context = nn.Parameter(_first(torch.empty(words, size)))
        self.word_bias = nn.Parameter(torch.zeros(words))
        self.context_bias = nn.Parameter(torch.zeros(words))
        self.weighting = weighting

    def vectors(self) -> Tensor:
        """Word and context of each, summed: (V, E)."""
        return (self.word + self.context).detach()

    def loss(self, pairs: Pairs, carry: None = None) -> Loss:
        """Summed over the pairs."""
        return Loss(self.losses(pairs).sum(), len(pairs.rows), None)

    def losses(self, pairs: Pairs) -> Tensor:
        """Of each pair: (N,)."""
        rows, columns = torch.from_numpy(pairs.rows).long(), torch.from_numpy(pairs.columns).long()
        logs = torch.from_numpy(pairs.logs).to(self.word.dtype)
        scores = (self.word[rows] * self.context[columns]).sum(1)
        error = scores + self.word_bias[rows] + self.context_bias[columns] - logs
        return self.weighting.of_logs(logs) * error**2


def _first(weight: Tensor) -> Tensor:
    """Uniform in ±1 / (2 E), as the authors begin."""
    bound = 0.5 / weight.size(1)
    return weight if weight.is_meta else weight.uniform_(-bound, bound)
