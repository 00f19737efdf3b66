"""Two vectors a word, and the losses by which they are learned (Mikolov et al. 2013).

e_c is the row of a word in `input`, θ_t the row of what is predicted in `output`. With negative
sampling (arXiv:1310.4546, equation 4) a prediction costs

    −log σ(θ_tᵀ h) − k E[log σ(−θ_nᵀ h)]     n drawn by count^¾

h being e_c of the word (skip-gram: each neighbour t) or the mean of the neighbours' vectors (CBOW:
the word t). The expectation is over the negatives that a block of words shares.
"""

import torch
from torch import Tensor, nn
from torch.nn import functional

from unrolled.nn.output import Loss
from unrolled.tasks.embed.blocks import Block


class EmbedNetwork(nn.Module):
    """Input and output vectors of a vocabulary."""

    def __init__(self, words: int, size: int, *, cbow: bool) -> None:
        super().__init__()
        self.input = nn.Parameter(_first(torch.empty(words, size)))
        self.output = nn.Parameter(torch.zeros(words, size))
        self.cbow = cbow

    def loss(self, block: Block, carry: None = None) -> Loss:
        """Summed over the predictions of a block."""
        each = self.losses(block)
        return Loss(each.sum(), self.predictions(block), None)

    def predictions(self, block: Block) -> int:
        """Pairs, or words that have a neighbour."""
        return int((block.pairs_of > 0).sum()) if self.cbow else len(block.pair_word)

    def losses(self, block: Block) -> Tensor:
        """The loss that each word of a block accounts for: (B,)."""
        return self._cbow(block) if self.cbow else self._skip_gram(block)

    def _skip_gram(self, block: Block) -> Tensor:
        rows = self.input[block.words]  # (B, E)
        scores = (rows[block.pair_word] * self.output[block.pair_neighbour]).sum(1)  # (P,)
        lost = rows.new_zeros(len(rows)).index_add(0, block.pair_word, functional.softplus(-scores))
        return lost + self._against_noise(rows, block, block.pairs_of.to(rows.dtype))

    def _cbow(self, block: Block) -> Tensor:
        rows = self.means(block)  # (B, E)
        has_any = (block.pairs_of > 0).to(rows.dtype)
        scores = (rows * self.output[block.words]).sum(1)
        return functional.softplus(-scores) * has_any + self._against_noise(rows, block, has_any)

    def means(self, block: Block) -> Tensor:
        """The mean of the neighbours' vectors, zeros where there are none: (B, E)."""
        share = 1.0 / block.pairs_of.clamp(min=1)[block.pair_word].to(self.input.dtype)
        rows = self.input[block.pair_neighbour] * share[:, None]
        return rows.new_zeros(len(block.words), rows.size(1)).index_add(0, block.pair_word, rows)

    def _against_noise(self, rows: Tensor, block: Block, predictions: Tensor) -> Tensor:
        scores = rows @ self.output[block.negatives].T  # (B, N)
        return functional.softplus(scores).sum(1) * block.weight * predictions


def _first(weight: Tensor) -> Tensor:
    """Uniform in ±1 / (2 E), as word2vec begins."""
    bound = 0.5 / weight.size(1)
    return weight if weight.is_meta else weight.uniform_(-bound, bound)
