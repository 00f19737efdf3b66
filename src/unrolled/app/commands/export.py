"""`unrolled export MODEL --arpa FILE`: a model in a form that other tools read."""

from pathlib import Path
from typing import Annotated

import typer

from unrolled.app.options import Model
from unrolled.app.output import note
from unrolled.app.progress import busy
from unrolled.errors import ConfigError
from unrolled.tasks import task_named


def export(
    model: Model,
    arpa: Annotated[
        Path, typer.Option(help="The ARPA file to write, for KenLM and others.", show_default=False)
    ],
) -> None:
    """Write an n-gram model as an ARPA file."""
    from unrolled.tasks.folder import load

    loaded = load(model)
    task = task_named(loaded.settings.task)
    formats = task.formats()
    if "arpa" not in formats:
        raise ConfigError(
            f"{model} is a model of task {task.name!r}, but ARPA files hold n-grams only."
        )
    with busy(f"writing {arpa}"):
        remark = formats["arpa"].write(loaded, arpa)
    if remark:
        note(remark)
