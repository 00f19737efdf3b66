"""How the vector of a parent is made of those of its children: the face of every composition.

`compose(forest, x)` takes a vector x (U, E) for each distinct word of the forest (`forest.words`)
and gives those of all nodes (N, H), by place. Inner nodes have no word of their own.
"""

from abc import ABC, abstractmethod
from collections.abc import Sequence

from torch import Tensor, nn

from unrolled.errors import ConfigError
from unrolled.nn import tree_kernels
from unrolled.nn.tree_fold import fold, plain_fold
from unrolled.nn.trees import Forest


class Composition(nn.Module, ABC):
    """Weights, and what they do with a word and with children."""

    def __init__(self, H: int) -> None:
        super().__init__()
        self.hidden_size = H

    @property
    def word_size(self) -> int:
        """E: how many numbers a word has."""
        return self.hidden_size

    @property
    def state_size(self) -> int:
        """S: how many numbers a node has, its vector of H being the first of them."""
        return self.hidden_size

    is_binary = True  # two children to every inner node

    @property
    def node(self) -> tree_kernels.Node | None:
        """What it is to the compiled kernels; None where they do not have it."""
        return None

    @abstractmethod
    def weights(self) -> tuple[Tensor, ...]:
        """What `join` computes with."""

    @abstractmethod
    def join(self, weights: Sequence[Tensor], children: Tensor, owner: Tensor) -> Tensor:
        """As tree_fold.Join."""

    def kernel_weights(self) -> tuple[Tensor, ...]:
        """What the compiled kernels compute with."""
        return self.weights()

    def plain(self, forest: Forest, x: Tensor, *weights: Tensor) -> Tensor:
        """What `compose` gives with these `kernel_weights`, differentiable at will."""
        return plain_fold(self.join, weights, forest, x)

    def leaf(self, x: Tensor) -> Tensor:
        """The states (U, S) of words (U, E): their vectors as they are."""
        return x

    def init_words_(self, table: Tensor) -> None:
        """Fill a table (V, E) of words to begin with."""
        nn.init.normal_(table, std=0.1)

    def compose(self, forest: Forest, x: Tensor) -> Tensor:
        """The vectors (N, H) of all nodes by place, from those of the distinct words (U, E)."""
        self._check(forest, x)
        weights = self.kernel_weights()
        if self.node is not None and tree_kernels.can_run([x, *weights]):
            return tree_kernels.compose(self.node, self.plain, forest, x, *weights)
        return fold(self.join, self.weights(), forest, self.leaf(x))[:, : self.hidden_size]

    forward = compose

    def _check(self, forest: Forest, x: Tensor) -> None:
        U, E = len(forest.words), self.word_size
        if x.shape != (U, E):
            raise ConfigError(
                f"the words' vectors are of shape {tuple(x.shape)}, but must be {(U, E)}: one for "
                "each distinct word of the forest."
            )
        if self.is_binary and not forest.is_binary:
            raise ConfigError(
                f"a node has one child or more than two, but {type(self).__name__} needs two. "
                "Binarise the trees, or take the child-sum Tree-LSTM."
            )
