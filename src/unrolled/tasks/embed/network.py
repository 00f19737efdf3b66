"""Two vectors a word, and the losses by which they are learned (Mikolov et al. 2013).

e_c is the row of a word in `input`, θ_t the row of what is predicted in `output`. With negative
sampling (arXiv:1310.4546, equation 4) a prediction costs

    −log σ(θ_tᵀ h) − k E[log σ(−θ_nᵀ h)]     n drawn by count^¾

h being e_c of the word (skip-gram: each neighbour t) or the mean of the neighbours' vectors (CBOW:
the word t). The expectation is over the negatives that a block of words shares. With a hierarchical
softmax it costs −Σ log σ(±θₙᵀ h) over the nodes on the way to t, with the full softmax
−θ_tᵀ h + log Σ_w exp θ_wᵀ h.

A mean, of neighbours or of the rows of a word's n-grams, is taught as word2vec and fastText do it:
each of its rows moves as the mean should, undivided. `alike` gives rows that gradient; without, it
is that of the loss.
"""

import torch
from torch import Tensor, nn
from torch.nn import functional

from unrolled.nn.embed_kernels import Grams, Paths
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
        grams: Grams | None = None,
    ) -> None:
        super().__init__()
        self.input = nn.Parameter(_first(torch.empty(grams.inputs if grams else words, size)))
        self.output = nn.Parameter(torch.zeros(words, size))
        self.cbow, self.predictor, self.paths, self.grams = cbow, output, paths, grams

    @torch.no_grad()
    def vectors(self) -> Tensor:
        """Of the words: (V, E)."""
        if self.grams is None:
            return self.input.detach()
        return self.of_words(torch.arange(len(self.output)))

    def of_words(self, words: Tensor, *, alike: bool = False) -> Tensor:
        """The vectors of these words (B,): their rows, or the means of those of their n-grams."""
        own = self.input[words]  # (B, E)
        if self.grams is None:
            return own
        owner, place = _spans(torch.from_numpy(self.grams.starts), words)
        rows = torch.from_numpy(self.grams.rows)[place].long()
        total = own.index_add(0, owner, self.input[rows])
        number = 1 + torch.bincount(owner, minlength=len(words)).to(own.dtype)
        return _mean(total, number, alike=alike)

    def loss(self, block: Block, carry: None = None, *, alike: bool = False) -> Loss:
        """Summed over the predictions of a block."""
        each = self.losses(block, alike=alike)
        return Loss(each.sum(), self.predictions(block), None)

    def predictions(self, block: Block) -> int:
        """Pairs, or words that have a neighbour."""
        return int((block.pairs_of > 0).sum()) if self.cbow else len(block.pair_word)

    def losses(self, block: Block, *, alike: bool = False) -> Tensor:
        """The loss that each word of a block accounts for: (B,)."""
        return self._cbow(block, alike) if self.cbow else self._skip_gram(block, alike)

    def _skip_gram(self, block: Block, alike: bool) -> Tensor:
        rows = self.of_words(block.words, alike=alike)  # (B, E)
        lost = self._positive(rows[block.pair_word], block.pair_neighbour)  # (P,)
        lost = rows.new_zeros(len(rows)).index_add(0, block.pair_word, lost)
        return lost + self._against_noise(rows, block, block.pairs_of.to(rows.dtype))

    def _cbow(self, block: Block, alike: bool) -> Tensor:
        rows = self.means(block, alike=alike)  # (B, E)
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
        owner, place = _spans(torch.from_numpy(self.paths.starts), words)
        nodes = torch.from_numpy(self.paths.nodes)[place].long()
        signs = (2.0 * torch.from_numpy(self.paths.turns)[place] - 1.0).to(rows.dtype)
        scores = (rows[owner] * self.output[nodes]).sum(1)
        return rows.new_zeros(len(words)).index_add(0, owner, functional.softplus(-signs * scores))

    def means(self, block: Block, *, alike: bool = False) -> Tensor:
        """The mean of the neighbours' vectors, zeros where there are none: (B, E)."""
        rows = self.of_words(block.pair_neighbour, alike=alike)
        none = rows.new_zeros(len(block.words), rows.size(1))
        number = block.pairs_of.clamp(min=1).to(rows.dtype)
        return _mean(none.index_add(0, block.pair_word, rows), number, alike=alike)

    def _against_noise(self, rows: Tensor, block: Block, predictions: Tensor) -> Tensor:
        if self.predictor != "negative":
            return torch.zeros_like(predictions)
        scores = rows @ self.output[block.negatives].T  # (B, N)
        return functional.softplus(scores).sum(1) * block.weight * predictions


def _mean(total: Tensor, number: Tensor, *, alike: bool) -> Tensor:
    """Of sums (B, E) of so many rows (B,)."""
    mean = total / number[:, None]
    return mean.detach() + (total - total.detach()) if alike else mean


def _spans(starts: Tensor, wanted: Tensor) -> tuple[Tensor, Tensor]:
    """Whose each is and where it lies, of all that lies from starts[w] to starts[w + 1]."""
    lengths = starts[wanted + 1] - starts[wanted]
    owner = torch.repeat_interleave(torch.arange(len(wanted)), lengths)
    offset = torch.arange(len(owner)) - (lengths.cumsum(0) - lengths)[owner]
    return owner, starts[wanted][owner] + offset


def _first(weight: Tensor) -> Tensor:
    """Uniform in ±1 / (2 E), as word2vec begins."""
    bound = 0.5 / weight.size(1)
    return weight if weight.is_meta else weight.uniform_(-bound, bound)
