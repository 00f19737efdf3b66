"""Two models of the next token as one: P = w P₁ + (1 − w) P₂, w chosen on development data."""

import math
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from unrolled.decode.stepper import Stepper
from unrolled.tasks.shared.next_token import NextToken, State
from unrolled.tasks.shared.ngram_network import NgramNetwork
from unrolled.text.batch import Batch
from unrolled.text.tokens import PAD, START, EncodedLines

Floats = NDArray[np.float64]
ROUNDS = 100


def mixed_nats(first: Floats, second: Floats, weight: float) -> Floats:
    """Surprise at tokens (N,) of a mixture of two models, from theirs."""
    with np.errstate(divide="ignore"):
        return np.asarray(-np.logaddexp(np.log(weight) - first, np.log1p(-weight) - second))


def best_weight(first: Floats, second: Floats) -> float:
    """The first model's weight in the mixture that is least surprised, from both surprises (N,).

    By expectation and maximisation: w ← the mean of w P₁ / (w P₁ + (1 − w) P₂), in which the
    likelihood, concave in w, never falls.
    """
    ratio = np.exp(np.clip(first - second, -700.0, 700.0))  # P₂ / P₁
    weight = 0.5
    for _ in range(ROUNDS):
        weight = float(np.mean(weight / (weight + (1.0 - weight) * ratio)))
    return weight


class MixedNetwork(NextToken):
    """A network and an n-gram model; a Stepper of two Steppers. Its state is theirs, one by one."""

    def __init__(
        self, network: NextToken, ngrams: NgramNetwork, weight: float, stepper: Any = None
    ) -> None:
        super().__init__()
        self.network, self.ngrams, self.share = network, ngrams, weight
        self.stepper: Stepper[State] = stepper or network
        self.own, self.other = (math.log(max(w, 1e-300)) for w in (weight, 1.0 - weight))

    @property
    def recipe(self) -> str:
        return f"|mixture:{self.share:.4f}{self.ngrams.recipe}"

    @property
    def first(self) -> int:
        return self.network.first

    def token_nats(
        self, batch: Batch, carry: State | None = None, *, backward: bool = False
    ) -> tuple[Tensor, State]:
        mine, theirs = (None, None) if carry is None else (carry[:-1], carry[-1:])
        tokens = batch.tokens if carry is not None else self._started(batch.tokens)
        own, after = self.network.token_nats(batch, mine, backward=backward)
        other, known = self.ngrams.token_nats(Batch(tokens, batch.lengths), theirs)
        return -self._mixed(-own.double(), -other), (*after, *known)

    def nats_in_lines(self, encoded: EncodedLines, *, backward: bool = False) -> Floats:
        own = self.network.nats_in_lines(encoded, backward=backward)
        return mixed_nats(own, self.ngrams.nats_in_lines(encoded), self.share)

    @torch.inference_mode()
    def step(self, token: Tensor, state: State) -> tuple[Tensor, State]:
        own, after = self.stepper.step(token, state[:-1])
        line = token.masked_fill(token == PAD, START)  # a zero vector is a line's first input, too
        other, known = self.ngrams.step(line, state[-1:])
        return self._mixed(own.double(), other).to(own.dtype), (*after, *known)

    def select(self, state: State, rows: Tensor) -> State:
        return (*self.stepper.select(state[:-1], rows), *self.ngrams.select(state[-1:], rows))

    def read(self, tokens: Tensor) -> State:
        return (*self.network.read(tokens), *self.ngrams.read(self._started(tokens)))

    def writer(self) -> "MixedNetwork":
        """With the network's own."""
        return MixedNetwork(self.network, self.ngrams, self.share, self.network.writer())

    def _mixed(self, own: Tensor, other: Tensor) -> Tensor:
        return torch.logaddexp(own + self.own, other + self.other)

    def _started(self, tokens: Tensor) -> Tensor:
        """Rows (B, T) in which a line begins with START, whatever it begins with elsewhere."""
        begins = torch.zeros_like(tokens, dtype=torch.bool)
        begins[:, :1] = tokens[:, :1] == self.first
        return tokens.masked_fill(begins, START)
