"""The compositions: recursive net, autoencoder, tensor network, matrix-vector network, Tree-LSTMs.

c₁ and c₂ are the children's vectors, [c₁; c₂] one below the other.
"""

import math
from collections.abc import Callable, Sequence

import torch
from torch import Tensor, nn
from torch.nn import functional

from unrolled.nn.tree_composition import Composition
from unrolled.nn.tree_kernels import TANH, UNIT_TANH, Node
from unrolled.nn.tree_lstm import ChildSumTreeLSTM, TreeLSTM
from unrolled.nn.trees import Forest

RANK = 3  # of the words' matrices in a matrix-vector network, as in the paper


def _pairs(children: Tensor) -> Tensor:
    """Children (2n, S) as pairs (n, 2S)."""
    return children.reshape(-1, 2 * children.size(1))


def _mean_of_two(H: int) -> Tensor:
    """Weights (H, 2H) that begin near the children's mean: CoreNLP's way, halved."""
    eye = torch.eye(H)
    noise = torch.empty(H, 2 * H).uniform_(-1.0, 1.0) / (2.0 * math.sqrt(H))
    return 0.5 * torch.cat([eye, eye], dim=1) + noise  # (H, 2H)


def _tanh_layer(weights: Sequence[Tensor], pairs: Tensor) -> Tensor:
    """tanh(W [c₁; c₂] + b), (n, H), of children (n, 2H)."""
    weight, bias = weights
    return torch.tanh(functional.linear(pairs, weight, bias))


class RecursiveNet(Composition):
    """p = tanh(W [c₁; c₂] + b): Socher et al. 2011 (ICML), equation 2; Pollack 1990."""

    def __init__(self, H: int) -> None:
        super().__init__(H)
        self.weight = nn.Parameter(_mean_of_two(H))  # (H, 2H)
        self.bias = nn.Parameter(torch.zeros(H))

    def weights(self) -> tuple[Tensor, ...]:
        return self.weight, self.bias

    @property
    def node(self) -> Node:
        return TANH

    def join(self, weights: Sequence[Tensor], children: Tensor, owner: Tensor) -> Tensor:
        return _tanh_layer(weights, _pairs(children))


class Autoencoder(Composition):
    """Recursive autoencoder (Socher et al. 2011, EMNLP, D11-1014).

    p = tanh(W [c₁; c₂] + b), of length 1 where `normalise` says so (section 2.2), and
    [c₁'; c₂'] = W' p + b'. The error of a node (equation 4) weighs its children by the numbers of
    words below them, n₁/(n₁+n₂) ‖c₁ − c₁'‖² + n₂/(n₁+n₂) ‖c₂ − c₂'‖², or equally (equation 3).
    """

    def __init__(self, H: int, *, normalise: bool = True, weighted: bool = True) -> None:
        super().__init__(H)
        self.normalise, self.weighted = normalise, weighted
        self.weight = nn.Parameter(_mean_of_two(H))  # (H, 2H)
        self.bias = nn.Parameter(torch.zeros(H))
        self.decoder = nn.Parameter(_mean_of_two(H).t().contiguous())  # (2H, H)
        self.decoder_bias = nn.Parameter(torch.zeros(2 * H))

    def weights(self) -> tuple[Tensor, ...]:
        return self.weight, self.bias

    @property
    def node(self) -> Node:
        return UNIT_TANH if self.normalise else TANH

    def join(self, weights: Sequence[Tensor], children: Tensor, owner: Tensor) -> Tensor:
        p = _tanh_layer(weights, _pairs(children))
        return functional.normalize(p, dim=1) if self.normalise else p

    def parent(self, pairs: Tensor) -> Tensor:
        """p (n, H) of children (n, 2H)."""
        children = pairs.reshape(-1, self.hidden_size)
        return self.join(self.weights(), children, torch.empty(0))

    def errors(self, forest: Forest, vectors: Tensor) -> Tensor:
        """The reconstruction error (M,) of each inner node, of the vectors that `compose` gave."""
        pairs = _pairs(vectors[forest.children])  # (M, 2H)
        sizes = forest.sizes[forest.children].view(-1, 2)  # (M, 2)
        return self.reconstruction(pairs, vectors.index_select(0, forest.inner), sizes)

    def reconstruction(self, pairs: Tensor, parents: Tensor, sizes: Tensor) -> Tensor:
        """The error (n,) of parents (n, H) of children (n, 2H), with so many words (n, 2) each."""
        again = functional.linear(parents, self.decoder, self.decoder_bias)  # (n, 2H)
        apart = (again - pairs).square().view(-1, 2, self.hidden_size).sum(dim=2)  # (n, 2)
        if not self.weighted:
            return 0.5 * apart.sum(dim=1)
        share = sizes.to(apart.dtype)
        return (apart * share).sum(dim=1) / share.sum(dim=1)


class TensorNet(Composition):
    """Recursive neural tensor network (Socher et al. 2013, D13-1170), equation 2 of section 4.3.

    p_k = tanh([c₁; c₂]ᵀ V_k [c₁; c₂] + (W [c₁; c₂])_k + b_k), with a bias of its own. `tensor`
    holds 2H V: a node sums 4H² products, and optimisers that give all weights steps of one length
    would let them drown the rest.
    """

    def __init__(self, H: int) -> None:
        super().__init__(H)
        self.tensor = nn.Parameter(torch.empty(H, 2 * H, 2 * H).uniform_(-1.0, 1.0) / (4.0 * H))
        self.weight = nn.Parameter(_mean_of_two(H))  # (H, 2H)
        self.bias = nn.Parameter(torch.zeros(H))

    def weights(self) -> tuple[Tensor, ...]:
        return self.tensor / (2.0 * self.hidden_size), self.weight, self.bias

    def join(self, weights: Sequence[Tensor], children: Tensor, owner: Tensor) -> Tensor:
        tensor, weight, bias = weights
        pairs = _pairs(children)  # (n, 2H)
        squares = (pairs[:, :, None] * pairs[:, None, :]).flatten(1)  # (n, 2H · 2H)
        linear = functional.linear(pairs, weight, bias)  # (n, H)
        return torch.tanh(torch.addmm(linear, squares, tensor.flatten(1).t()))


class MatrixVector(Composition):
    """Matrix-vector network (Socher et al. 2012, D12-1110), equations 2, 3 and 5.

    A node is a vector and a matrix: a, A of the left child and b, B of the right one give
    p = tanh(W [B a; A b] + w), with a bias of its own, and P = W_M [A; B]. A word's matrix is
    diag(d) + U V of rank 3, so a word has numbers a, d, U and V, one after the other.
    """

    def __init__(self, H: int) -> None:
        super().__init__(H)
        self.weight = nn.Parameter(_mean_of_two(H))  # (H, 2H)
        self.bias = nn.Parameter(torch.zeros(H))
        self.matrix_weight = nn.Parameter(_mean_of_two(H))  # (H, 2H)

    @property
    def word_size(self) -> int:
        return 2 * (1 + RANK) * self.hidden_size

    @property
    def state_size(self) -> int:
        return self.hidden_size * (1 + self.hidden_size)

    def weights(self) -> tuple[Tensor, ...]:
        return self.weight, self.bias, self.matrix_weight

    def leaf(self, x: Tensor) -> Tensor:
        H = self.hidden_size
        a, d, u, v = torch.split(x, [H, H, RANK * H, RANK * H], dim=1)
        low = u.reshape(-1, H, RANK) @ v.reshape(-1, RANK, H)  # (U, H, H)
        return torch.cat([a, (low + torch.diag_embed(d)).flatten(1)], dim=1)

    def init_words_(self, table: Tensor) -> None:
        H = self.hidden_size
        nn.init.normal_(table, std=0.1)
        with torch.no_grad():
            table[:, H : 2 * H] = 1.0  # matrices begin near the identity

    def join(self, weights: Sequence[Tensor], children: Tensor, owner: Tensor) -> Tensor:
        weight, bias, matrix_weight = weights
        H = len(weight)
        vectors = children[:, :H].reshape(-1, 2, H, 1)
        matrices = children[:, H:].reshape(-1, 2, H, H)
        crossed = (matrices.flip(1) @ vectors).flatten(1)  # (n, 2H): B a, A b
        p = torch.tanh(functional.linear(crossed, weight, bias))
        return torch.cat([p, (matrix_weight @ matrices.flatten(1, 2)).flatten(1)], dim=1)


COMPOSITIONS: dict[str, Callable[[int, int], Composition]] = {  # of E and H
    "rnn": lambda E, H: RecursiveNet(H),
    "autoencoder": lambda E, H: Autoencoder(H),
    "rntn": lambda E, H: TensorNet(H),
    "mvrnn": lambda E, H: MatrixVector(H),
    "treelstm": TreeLSTM,
    "childsum": ChildSumTreeLSTM,
}
