"""Tree-LSTMs: a memory cell at every node, and a forget gate for every child."""

import math
from collections.abc import Sequence

import torch
from torch import Tensor, nn
from torch.nn import functional

from unrolled.nn.tree_composition import Composition
from unrolled.nn.tree_fold import plain_fold
from unrolled.nn.tree_kernels import LSTM, Node
from unrolled.nn.trees import Forest


class TreeLSTM(Composition):
    """Binary Tree-LSTM (Tai et al. 2015, arXiv:1503.00075), equations 9 to 14 with N = 2.

    With a = U [h₁; h₂] + b at an inner node, cut into i, f₁, f₂, g and o (the paper's u is g),

        c = σ(i) ⊙ tanh(g) + σ(f₁) ⊙ c₁ + σ(f₂) ⊙ c₂,   h = σ(o) ⊙ tanh(c)

    A leaf has no children and c = σ(i) ⊙ tanh(g), with W x + b in the place of a. The biases of
    forget gates begin at 1.
    """

    def __init__(self, E: int, H: int) -> None:
        super().__init__(H)
        self._words = E
        self.weight_x = nn.Parameter(torch.empty(3 * H, E))  # i, g, o
        self.weight_h = nn.Parameter(torch.empty(5 * H, 2 * H))  # i, f₁, f₂, g, o
        self.bias = nn.Parameter(torch.zeros(5 * H))
        bound = 1.0 / math.sqrt(H)
        nn.init.uniform_(self.weight_x, -bound, bound)
        nn.init.uniform_(self.weight_h, -bound, bound)
        nn.init.ones_(self.bias.data[H : 3 * H])

    @property
    def word_size(self) -> int:
        return self._words

    @property
    def state_size(self) -> int:
        return 2 * self.hidden_size

    def weights(self) -> tuple[Tensor, ...]:
        return self.weight_h, self.bias

    @property
    def node(self) -> Node:
        return LSTM

    def kernel_weights(self) -> tuple[Tensor, ...]:
        return self.weight_h, self.bias, self.weight_x

    def plain(self, forest: Forest, x: Tensor, *weights: Tensor) -> Tensor:
        weight, bias, weight_x = weights
        states = _binary_leaf(x, weight_x, bias)
        return plain_fold(self.join, (weight, bias), forest, states)[:, : self.hidden_size]

    def leaf(self, x: Tensor) -> Tensor:
        return _binary_leaf(x, self.weight_x, self.bias)

    def join(self, weights: Sequence[Tensor], children: Tensor, owner: Tensor) -> Tensor:
        weight, bias = weights
        h, c = children.view(-1, 2, children.size(1)).chunk(2, dim=2)  # (n, 2, H) each
        H = h.size(2)
        a = functional.linear(h.flatten(1), weight, bias)  # (n, 5H)
        i, f, g, o = torch.split(a, [H, 2 * H, H, H], dim=1)
        kept = (torch.sigmoid(f).view_as(c) * c).sum(dim=1)  # (n, H)
        return _lstm_state(torch.sigmoid(i) * torch.tanh(g) + kept, o)


class ChildSumTreeLSTM(Composition):
    """Child-sum Tree-LSTM (Tai et al. 2015, arXiv:1503.00075), equations 2 to 8; any children.

    With s = Σ_k h_k and a = U s + b cut into i, g and o, and f_k = σ(U_f h_k + b_f),

        c = σ(i) ⊙ tanh(g) + Σ_k f_k ⊙ c_k,   h = σ(o) ⊙ tanh(c)

    A leaf has no children, and W x + b in the place of a. b_f begins at 1.
    """

    is_binary = False

    def __init__(self, E: int, H: int) -> None:
        super().__init__(H)
        self._words = E
        self.weight_x = nn.Parameter(torch.empty(3 * H, E))  # i, g, o
        self.weight_h = nn.Parameter(torch.empty(3 * H, H))
        self.bias = nn.Parameter(torch.zeros(3 * H))
        self.forget_weight = nn.Parameter(torch.empty(H, H))
        self.forget_bias = nn.Parameter(torch.ones(H))
        bound = 1.0 / math.sqrt(H)
        for weight in (self.weight_x, self.weight_h, self.forget_weight):
            nn.init.uniform_(weight, -bound, bound)

    @property
    def word_size(self) -> int:
        return self._words

    @property
    def state_size(self) -> int:
        return 2 * self.hidden_size

    def weights(self) -> tuple[Tensor, ...]:
        return self.weight_h, self.bias, self.forget_weight, self.forget_bias

    def leaf(self, x: Tensor) -> Tensor:
        return _lstm_leaf(functional.linear(x, self.weight_x, self.bias))

    def join(self, weights: Sequence[Tensor], children: Tensor, owner: Tensor) -> Tensor:
        weight, bias, forget_weight, forget_bias = weights
        n = int(owner[-1]) + 1
        h, c = children.chunk(2, dim=1)  # (m, H) each
        kept = torch.sigmoid(functional.linear(h, forget_weight, forget_bias)) * c
        both = torch.cat([h, kept], dim=1)
        summed = both.new_zeros(n, both.size(1)).index_add(0, owner, both)
        s, memory = summed.chunk(2, dim=1)  # (n, H) each
        i, g, o = functional.linear(s, weight, bias).chunk(3, dim=1)
        return _lstm_state(torch.sigmoid(i) * torch.tanh(g) + memory, o)


def _binary_leaf(x: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    """The states of words by gates i, g and o, which are the first and the last two of five."""
    H = len(bias) // 5
    own = torch.cat([bias[:H], bias[3 * H :]])
    return _lstm_leaf(functional.linear(x, weight, own))


def _lstm_leaf(a: Tensor) -> Tensor:
    """The states (U, 2H) of words by their sums (U, 3H)."""
    i, g, o = a.chunk(3, dim=1)
    return _lstm_state(torch.sigmoid(i) * torch.tanh(g), o)


def _lstm_state(c: Tensor, o: Tensor) -> Tensor:
    """h and c (n, 2H)."""
    return torch.cat([torch.sigmoid(o) * torch.tanh(c), c], dim=1)
