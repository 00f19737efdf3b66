"""What the tests of commands share: a model's answers to lines, printed as the command does."""

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from unrolled.app.commands.use import in_blocks, show
from unrolled.tasks import task_named


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
    blocks = in_blocks(task.inputs(lines, use, chosen, source=source), at_once)
    answers = model.answers(use, blocks, chosen, source=source)
    show(answers, task.uses[use], source=source, out=out, json=json)
