"""Two vectors a word, and the losses by which they are learned (Mikolov et al. 2013).

e_c is the row of a word in `input`, θ_t the row of what is predicted in `output`. With negative
sampling (arXiv:1310.4546, equation 4) a prediction costs

    −log σ(θ_tᵀ h) − k E[log σ(−θ_nᵀ h)]     n drawn by count^¾

h being e_c of the word (skip-gram: each neighbour t) or the mean of the neighbours' vectors (CBOW:
the word t). The expectation is over the negatives that a block of words shares. With a hierarchical
softmax it costs −Σ log σ(±θₙᵀ h) over the nodes on the way to t, with the full softmax
−θ_tᵀ h + log Σ_w exp θ_wᵀ h.
"""

import torch
from torch import Tensor, nn
from torch.nn import functional

from unrolled.nn.embed_kernels import Paths
from unrolled.nn.output import Loss
from unrolled.tasks.embed.blocks import Block


class EmbedNetwork(nn.Module):
    """Input and output vectors of a vocabulary."""

    def __init__(
        self,
        words: int,
        size: int,
        *,
        cbow: bool,
        output: str = "negative",
        paths: Paths | None = None,
    ) -> None:
        super().__init__()
        self.input = nn.Parameter(_first(torch.empty(words, size)))
        self.output = nn.Parameter(torch.zeros(words, size))
        self.cbow, self.predictor, self.paths = cbow, output, paths

    def vectors(self) -> Tensor:
        """Of the words: (V, E)."""
        return self.input.detach()

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
        lost = self._positive(rows[block.pair_word], block.pair_neighbour)  # (P,)
        lost = rows.new_zeros(len(rows)).index_add(0, block.pair_word, lost)
        return lost + self._against_noise(rows, block, block.pairs_of.to(rows.dtype))

    def _cbow(self, block: Block) -> Tensor:
        rows = self.means(block)  # (B, E)
        has_any = (block.pairs_of > 0).to(rows.dtype)
        lost = self._positive(rows, block.words) * has_any
        return lost + self._against_noise(rows, block, has_any)

    def _positive(self, rows: Tensor, words: Tensor) -> Tensor:
        """What predicting these words (P,) from rows (P, E) costs, but for negatives: (P,)."""
        if self.predictor == "softmax":
            return functional.cross_entropy(rows @ self.output.T, words, reduction="none")
        if self.predictor == "hierarchical":
            return self._on_the_way(rows, words)
        return functional.softplus(-(rows * self.output[words]).sum(1))

    def _on_the_way(self, rows: Tensor, words: Tensor) -> Tensor:
        assert self.paths is not None
        starts, wanted = torch.from_numpy(self.paths.starts), words
        lengths = starts[wanted + 1] - starts[wanted]
        owner = torch.repeat_interleave(torch.arange(len(words)), lengths)
        offset = torch.arange(len(owner)) - (lengths.cumsum(0) - lengths)[owner]
        place = starts[wanted][owner] + offset
        nodes = torch.from_numpy(self.paths.nodes)[place].long()
        signs = (2.0 * torch.from_numpy(self.paths.turns)[place] - 1.0).to(rows.dtype)
        scores = (rows[owner] * self.output[nodes]).sum(1)
        return rows.new_zeros(len(words)).index_add(0, owner, functional.softplus(-signs * scores))

    def means(self, block: Block) -> Tensor:
        """The mean of the neighbours' vectors, zeros where there are none: (B, E)."""
        share = 1.0 / block.pairs_of.clamp(min=1)[block.pair_word].to(self.input.dtype)
        rows = self.input[block.pair_neighbour] * share[:, None]
        return rows.new_zeros(len(block.words), rows.size(1)).index_add(0, block.pair_word, rows)

    def _against_noise(self, rows: Tensor, block: Block, predictions: Tensor) -> Tensor:
        if self.predictor != "negative":
            return torch.zeros_like(predictions)
        scores = rows @ self.output[block.negatives].T  # (B, N)
        return functional.softplus(scores).sum(1) * block.weight * predictions


def _first(weight: Tensor) -> Tensor:
    """Uniform in ±1 / (2 E), as word2vec begins."""
    bound = 0.5 / weight.size(1)
    return weight if weight.is_meta else weight.uniform_(-bound, bound)
