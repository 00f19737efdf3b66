"""What the tests of commands share: a model's answers to lines, printed as the command does."""

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from unrolled.app.commands.use import Asked, show
from unrolled.tasks import task_named
from unrolled.text.source import ArrivingLines


def print_answers(
    model: Any,
    lines: Iterable[str],
    *,
    use: str = "predict",
    source: str = "in.txt",
    at_once: int = 256,
    out: Path | None = None,
    json: bool = False,
    **options: Any,
) -> None:
    """Answer lines that come one by one, so many at a time."""
    task = task_named(model.settings.task)
    chosen = task.uses[use].options(**options)
    blocks = ([line] for line in lines)
    arriving = ArrivingLines(blocks, name=source, is_whole=at_once > 1)
    asked = Asked.of(task.inputs(arriving, use, model.settings, chosen), arriving, at_once)
    answers = model.answers(use, asked.blocks, chosen, source=source)
    show(answers, task.uses[use], asked, out=out, json=json)
