"""How long a run has taken, how fast it goes, and what a person wants to know of it."""

import math
import time
from dataclasses import dataclass
from typing import NamedTuple


def now() -> float:
    """Seconds on a clock that never goes back."""
    return time.monotonic()


class Dev(NamedTuple):
    """How good a model is on the dev data: `name` and `value` are shown, the lowest `cost` wins."""

    name: str
    value: float
    cost: float


@dataclass(frozen=True)
class Status:
    """What a person wants to know while a run is under way."""

    epoch: int
    step: int
    share: float  # of the run that is over
    loss: float  # the mean of this epoch so far
    dev: Dev | None  # the last one
    unit: str  # what is counted: tokens, texts
    units_per_second: float
    seconds_left: float


class Clock:
    """Time on the wall, over all sessions of a run."""

    def __init__(self) -> None:
        self.start(0.0)

    def start(self, before: float, *, session_begun: float | None = None) -> None:
        """Begin with the steps, after `before` seconds of earlier sessions.

        This session began earlier than its steps where it had data to read.
        """
        self.begun = self.last_save = now()
        self.session_begun = self.begun if session_begun is None else session_begun
        self.before, self.units, self.first_share = before, 0, -1.0

    def seconds(self) -> float:
        """Seconds of the run, earlier sessions included."""
        return self.before + now() - self.session_begun

    def since_save(self) -> float:
        """Seconds since the last checkpoint."""
        return now() - self.last_save

    def saved(self) -> None:
        """Say that a checkpoint stands."""
        self.last_save = now()

    def count(self, units: int) -> None:
        """Add to what was read in this session."""
        self.units += units

    def rate(self) -> float:
        """Units a second in this session, evaluations included."""
        return self.units / max(now() - self.begun, 1e-9)

    def left(self, share: float) -> float:
        """Seconds that the rest should take; infinity while there is nothing to go by."""
        if self.first_share < 0.0:
            self.first_share = share
        done = share - self.first_share
        spent = now() - self.begun
        return spent * max(1.0 - share, 0.0) / done if done > 0.002 else math.inf
