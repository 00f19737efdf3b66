"""What a language model asks of its network, whatever it is made of: the chances of the next token.

    P(x_1 … x_T) = Π_t P(x_t | x_1 … x_{t−1})

A recurrent network remembers all of x_<t in its state, a window network the last n tokens, an
n-gram model the last n − 1. Scoring, suggesting and writing are written once on the class here.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from torch import Tensor, nn

from unrolled.decode.stepper import Stepper
from unrolled.tasks.shared.finite import numbers
from unrolled.text.batch import Batch, LineBatches, Places
from unrolled.text.tokens import EncodedLines

State = tuple[Tensor, ...]

STEPS_AT_ONCE = 256  # without gradients: bounds the memory that a line of a million tokens needs
BATCH_TOKENS = 8192  # tokens scored at once


class NextToken(nn.Module, ABC):
    """A network that predicts the next token; a Stepper. Its state is a value, never kept."""

    @classmethod
    def from_settings(cls, settings: Any, vocabulary_size: int, files: Mapping[str, bytes]) -> Self:
        """The network of a model folder, its tensors shaped but not read; see `files`."""
        return cls(settings, vocabulary_size)

    def files(self) -> dict[str, bytes]:
        """What a model folder must hold, beside settings, vocabulary and tensors, to shape it."""
        return {}

    def about(self) -> dict[str, float]:
        """How large it is, in numbers by name."""
        return {"parameters": sum(parameter.numel() for parameter in self.parameters())}

    @property
    def recipe(self) -> str:
        """What a score's signature says of the network, as `|key:value`; nothing if learned."""
        return ""

    @property
    def caution(self) -> str:
        """What a reader of its scores must know, if anything."""
        return ""

    @property
    def knows_unknown(self) -> bool:
        """Whether a token outside the vocabulary has any chance."""
        return True

    @property
    @abstractmethod
    def first(self) -> int:
        """The token that stands before the first of a text."""

    @abstractmethod
    def token_nats(
        self, batch: Batch, carry: State | None = None, *, backward: bool = False
    ) -> tuple[Tensor, State]:
        """Surprise at each token but the first of each row, in row order without padding (N,).

        carry is the state that an earlier call returned, for a batch that continues its batch; None
        is the start. `backward` is for a pair of models of opposite direction alone: the batch is
        one that was reversed already.
        """

    @abstractmethod
    def step(self, token: Tensor, state: State) -> tuple[Tensor, State]:
        """token (N,), state of N rows -> log-probabilities of the next (N, V), next state."""

    @abstractmethod
    def select(self, state: State, rows: Tensor) -> State:
        """The state of these rows, in this order; a row may repeat."""

    def writer(self) -> Stepper[State]:
        """Itself, made ready for many steps: what is written is written by this."""
        return self

    @abstractmethod
    def read(self, tokens: Tensor) -> State:
        """The state after a prefix (N, T), which may be empty: then it is the start."""

    def next_log_p(self, tokens: Tensor) -> Tensor:
        """Log-probabilities of what comes after tokens (N, T), one at least: (N, V)."""
        return self.step(tokens[:, -1], self.read(tokens[:, :-1]))[0]

    def nats_in_lines(
        self, encoded: EncodedLines, *, backward: bool = False
    ) -> NDArray[np.float64]:
        """Surprise at every token (N,) of a text, each line read by itself.

        A backward model's stand in the order in which it reads. A network with a faster way than
        batch by batch has its own.
        """
        data = LineBatches(encoded, first=self.first, batch_tokens=BATCH_TOKENS)
        starts, nats = encoded.starts, np.empty(len(encoded.ids))
        for rows, batch in data.in_order():
            carry, begin = None, starts[rows]
            for piece in _pieces(batch.reversed() if backward else batch):
                found, carry = self.token_nats(piece, carry, backward=backward)
                of_texts = numbers(found, of="a text").double().numpy()
                nats[_runs(begin, piece.lengths.numpy() - 1)] = of_texts
                begin = begin + STEPS_AT_ONCE
        return nats


def _pieces(batch: Batch) -> Iterator[Batch]:
    """The batch cut along time, each piece beginning with the last token of the one before."""
    for start in range(0, batch.tokens.size(1) - 1, STEPS_AT_ONCE):
        tokens = batch.tokens[:, start : start + STEPS_AT_ONCE + 1]
        yield Batch(tokens, (batch.lengths - start).clamp(1, tokens.size(1)))


def _runs(starts: Places, lengths: Places) -> Places:
    """start, start + 1 … for each run, one run after the other."""
    within = np.arange(lengths.sum()) - np.repeat(np.cumsum(lengths) - lengths, lengths)
    return np.asarray(np.repeat(starts, lengths) + within)
