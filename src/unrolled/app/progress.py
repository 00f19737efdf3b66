"""Signs of life: a bar on a terminal, plain lines elsewhere; always on stderr."""

import math
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import Event, Thread
from typing import TYPE_CHECKING

from unrolled.app.output import CONTROLS, note

if TYPE_CHECKING:
    from rich.console import Console

    from unrolled.training.clock import Status
    from unrolled.training.watch import Watch

LINE_SECONDS = 10.0  # between plain lines
NEWS_SECONDS = 1.0  # between plain lines when there is a new measure on the dev data
PATIENCE = 2.0  # seconds before work without a measure of its own is announced


@contextmanager
def progress() -> "Iterator[Watch]":
    """A watch that shows a training run."""
    from unrolled.training.watch import Watch

    class Lines(Watch):
        """A line every few seconds."""

        @contextmanager
        def phase(self, what: str) -> Iterator[None]:
            with busy(what):
                yield

        def remark(self, text: str) -> None:
            note(text)

    console = stderr()
    if not console.is_terminal:
        yield Lines(plain_lines())
        return
    from rich.progress import BarColumn, Progress, TextColumn

    class Bar(Watch):
        """A bar, and remarks above it."""

        @contextmanager
        def phase(self, what: str) -> Iterator[None]:
            before = bar.tasks[task].description
            bar.update(task, description=what)
            yield
            bar.update(task, description=before)

        def remark(self, text: str) -> None:
            console.print(text, markup=False, highlight=False)

    text = TextColumn("{task.description}", markup=False)
    with Progress(text, BarColumn(bar_width=None), console=console, expand=True) as bar:
        task = bar.add_task("getting ready", total=1.0)
        yield Bar(
            lambda status: bar.update(
                task, completed=min(status.share, 1.0), description=describe(status, brief=True)
            )
        )


@contextmanager
def busy(what: str) -> Iterator[None]:
    """Say what goes on and for how long, once it has taken more than two seconds."""
    done = Event()
    teller = Thread(target=_tell, args=(what.translate(CONTROLS), done), daemon=True)
    teller.start()
    try:
        yield
    finally:
        done.set()
        teller.join()


def _tell(what: str, done: Event) -> None:
    begun = time.monotonic()
    if done.wait(PATIENCE):
        return
    console = stderr()
    if console.is_terminal:
        from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

        text = TextColumn("{task.description}", markup=False)
        columns = (SpinnerColumn(), text, TimeElapsedColumn())
        with Progress(*columns, console=console, transient=True) as spinner:
            spinner.add_task(what)
            done.wait()
        return
    while True:
        note(f"{what}, {clock(time.monotonic() - begun)}")
        if done.wait(LINE_SECONDS):
            return


def stderr() -> "Console":
    """The terminal or the file that is no place for results."""
    from rich.console import Console

    return Console(stderr=True)


def plain_lines() -> "Callable[[Status], None]":
    """A line every few seconds, the first one soon, and one for each new dev measure."""
    last, dev = -math.inf, None

    def show(status: "Status") -> None:
        nonlocal last, dev
        wait = NEWS_SECONDS if status.dev != dev else LINE_SECONDS
        if time.monotonic() - last >= wait or status.share >= 1.0:
            last, dev = time.monotonic(), status.dev
            note(describe(status))

    return show


def describe(status: "Status", *, brief: bool = False) -> str:
    """One line: where the run is, how well and how fast it goes; brief beside a bar."""
    place = f"epoch {status.epoch}" + ("" if brief else f"  step {status.step}")
    dev = f"  dev {status.dev.name} {status.dev.value:.4g}" if status.dev else ""
    rate = status.units_per_second
    speed = f"{rate / 1000:.0f}k" if brief and rate >= 10_000 else f"{rate:,.0f}"
    left = f"  {clock(status.seconds_left)} left" if 0.0 < status.seconds_left < 1e7 else ""
    return f"{place}  loss {status.loss:.3f}{dev}  {speed} {status.unit}/s{left}"


def clock(seconds: float) -> str:
    """Seconds as h:mm:ss or m:ss."""
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02d}:{rest:02d}" if hours else f"{minutes}:{rest:02d}"
