"""Whoever watches a run: told of its steps, of longer work between them, and of what to know."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from unrolled.errors import shown
from unrolled.training.clock import Status, now

OnStep = Callable[[Status], None]


class Watch:
    """Hands each status on and keeps the rest to itself; commands show all of it.

    A run's time begins with its watch: reading and encoding count.
    """

    def __init__(self, on_step: OnStep = lambda status: None) -> None:
        self.on_step, self.begun = on_step, now()

    @classmethod
    def of(cls, given: "Watch | OnStep") -> "Watch":
        """The watch, or one that calls the function after each step."""
        if not callable(given):
            raise TypeError(f"watch is {shown(given)}, but must be a function of a status.")
        return given if isinstance(given, Watch) else Watch(given)

    def __call__(self, status: Status) -> None:
        self.on_step(status)

    @contextmanager
    def phase(self, what: str) -> Iterator[None]:
        """Work that has no steps, such as reading, goes on."""
        yield

    def remark(self, text: str) -> None:
        """Something that a person should know."""
