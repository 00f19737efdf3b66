"""Ctrl-C, SIGTERM and a terminal that is closed, while a run is under way."""

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

from unrolled.errors import ending_signals


@contextmanager
def caught_signals() -> Iterator[list[int]]:
    """Signals that ask to end are noted in the list instead of ending the process at once.

    A second Ctrl-C does end it: whoever presses it will not wait.
    """
    caught: list[int] = []

    def note(number: int, frame: FrameType | None) -> None:
        if number == signal.SIGINT and number in caught:
            raise KeyboardInterrupt
        caught.append(number)

    try:
        before = {number: signal.signal(number, note) for number in ending_signals()}
    except ValueError:  # not in the main thread: the embedding program has the signals
        before = {}
    try:
        yield caught
    finally:
        for number, handler in before.items():
            signal.signal(number, handler or signal.SIG_DFL)
