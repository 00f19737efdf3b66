"""`unrolled import FILE.arpa --out DIR`: a model that another tool made, as a model folder."""

from pathlib import Path
from typing import Annotated

import typer

from unrolled.app.options import Encoding
from unrolled.app.output import note, say
from unrolled.app.progress import busy
from unrolled.tasks import TASKS


def import_model(
    data: Annotated[str, typer.Argument(help="An ARPA file, .gz or .xz, or - for standard input.")],
    out: Annotated[Path, typer.Option(help="The folder to make.", show_default=False)],
    encoding: Encoding = "utf-8",
) -> None:
    """Make a model folder from an ARPA file of n-grams."""
    from unrolled.tasks.run import save_model
    from unrolled.text.source import Source

    formats = {name: f for task in TASKS.values() for name, f in task.formats().items()}
    with busy(f"reading {data}"):
        model, made = formats["arpa"].read(Source(data, encoding))
        save_model(model, out, made=made)
    for name, value in model.about().items():
        say(f"{name}  {value}")
    note(made)
