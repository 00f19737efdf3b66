"""The one contract between models and decoding."""

from typing import Protocol, TypeVar

from torch import Tensor

State = TypeVar("State")


class Stepper(Protocol[State]):
    """All that decoding knows of a model: n-gram, window, recurrent or attention decoder alike."""

    def step(self, token: Tensor, state: State) -> tuple[Tensor, State]:
        """token (N,), state of N rows -> log-probabilities (N, V), next state.

        The log-probabilities are the caller's: it may change them in place.
        """
        ...

    def select(self, state: State, rows: Tensor) -> State:
        """The state of these rows, in this order; a row may repeat."""
        ...
