"""`unrolled compare A B … --data FILE`: models on the same examples, and whether chance decides."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from unrolled.app.options import Encoding, Json
from unrolled.app.output import note, print_shown
from unrolled.app.progress import busy
from unrolled.errors import ConfigError
from unrolled.tasks import task_named

if TYPE_CHECKING:
    from unrolled.evaluate.measure import Measure


def compare_models(
    models: Annotated[
        list[Path], typer.Argument(help="Model folders; the first is what the others are held to.")
    ],
    data: Annotated[str, typer.Option(help="What all of them are scored on.", show_default=False)],
    encoding: Encoding = "utf-8",
    json: Json = False,
) -> None:
    """Compare models on the same data: differences, their intervals, and how likely by chance."""
    from unrolled.evaluate.compare import compare

    names = list(dict.fromkeys(map(str, models)))
    if len(names) < 2:
        raise ConfigError(f"{names[0]} is the only model, but a comparison needs two or more.")
    if data == "-":
        raise ConfigError("--data is -, but every model reads the data: give a file.")
    measures = {}
    for name in names:
        with busy(f"scoring {name} on {data}"):
            measures[name] = measures_of(name, data, encoding)
    with busy("drawing resamples"):
        found = compare(measures)
    print_shown(found, title=f"On {data}:", out=None, json=json)


def measures_of(folder: str, data: str, encoding: str) -> "list[Measure]":
    """What a model scores on the data, line by line."""
    from unrolled.tasks.folder import load
    from unrolled.text.source import Source

    model = load(folder)
    task = task_named(model.settings.task)
    read = task.read(Source(data, encoding), model.settings, task.scoring())
    for remark in task.remarks(read):
        note(f"{data}, for {folder}: {remark}.")
    return task.measures(model, read)
