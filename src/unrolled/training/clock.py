"""How long a run has taken, how fast it goes, and what a person wants to know of it."""

import math
import time
from dataclasses import dataclass
from typing import NamedTuple


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

    def start(self, before: float) -> None:
        """Begin, after `before` seconds of earlier sessions."""
        self.begun = self.last_save = time.monotonic()
        self.before, self.units, self.first_share = before, 0, -1.0

    def seconds(self) -> float:
        """Seconds of the run, earlier sessions included."""
        return self.before + time.monotonic() - self.begun

    def since_save(self) -> float:
        """Seconds since the last checkpoint."""
        return time.monotonic() - self.last_save

    def saved(self) -> None:
        """Say that a checkpoint stands."""
        self.last_save = time.monotonic()

    def count(self, units: int) -> None:
        """Add to what was read in this session."""
        self.units += units

    def rate(self) -> float:
        """Units a second in this session, evaluations included."""
        return self.units / max(time.monotonic() - self.begun, 1e-9)

    def left(self, share: float) -> float:
        """Seconds that the rest should take; infinity while there is nothing to go by."""
        if self.first_share < 0.0:
            self.first_share = share
        done = share - self.first_share
        spent = time.monotonic() - self.begun
        return spent * max(1.0 - share, 0.0) / done if done > 0.002 else math.inf
