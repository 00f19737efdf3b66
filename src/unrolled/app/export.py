"""`unrolled export MODEL --arpa FILE`: a model in a form that other tools read."""

from pathlib import Path
from typing import Annotated

import typer

from unrolled.app.options import Model
from unrolled.app.output import note
from unrolled.app.progress import busy
from unrolled.errors import ConfigError


def export(
    model: Model,
    arpa: Annotated[
        Path, typer.Option(help="The ARPA file to write, for KenLM and others.", show_default=False)
    ],
) -> None:
    """Write an n-gram model as an ARPA file."""
    from unrolled.models.folder import load
    from unrolled.models.ngram import write_arpa

    loaded = load(model)
    task = loaded.settings.task
    if task != "ngram":
        raise ConfigError(f"{model} is a model of task {task!r}, but ARPA files hold n-grams only.")
    with busy(f"writing {arpa}"):
        write_arpa(loaded, arpa)
    if loaded.settings.model.smoothing == "stupid":
        note("These are scores, not probabilities; what reads the file will not know.")
