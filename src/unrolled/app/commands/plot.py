"""`unrolled plot MODEL --view NAME`: pictures of one's own run, model and data."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from unrolled.app.options import Encoding, Json, Model, Out
from unrolled.app.output import note, print_shown
from unrolled.app.progress import busy
from unrolled.config import read_toml
from unrolled.errors import ConfigError, ModelError, not_one_of
from unrolled.tasks import TASKS, AnyTask, task_named

if TYPE_CHECKING:
    from unrolled.evaluate.shown import Shown

VIEWS = list(dict.fromkeys(name for task in TASKS.values() for name in task.views))


def plot(
    model: Model,
    view: Annotated[str | None, typer.Option(help=f"The picture: {', '.join(VIEWS)}.")] = None,
    data: Annotated[str | None, typer.Option(help="What the model is asked about.")] = None,
    out: Out = None,
    encoding: Encoding = "utf-8",
    json: Json = False,
) -> None:
    """Draw a run and its model: losses, mistakes, calibration, scores by length."""
    task = task_of(model)
    if not task.views:
        raise ConfigError(f"{model} holds a {task.noun}, of which there is no picture.")
    name = view or next(iter(task.views))
    if name not in task.views:
        raise not_one_of(f"--view of a {task.noun}", name, task.views)
    with busy(f"drawing {name} of {model}"):
        shown = view_of(task, name, model, data, encoding)
    print_shown(shown, title=f"{name} of {model}", out=out, json=json)


def task_of(folder: Path) -> AnyTask:
    """The task of a run, whether it is finished or under way."""
    from unrolled.store.names import SETTINGS

    if not (folder / SETTINGS).is_file():
        raise ModelError(folder, f"holds no {SETTINGS}, so it is neither a model nor a run.")
    return task_named(read_toml(folder / SETTINGS).get("task"))


def view_of(task: AnyTask, name: str, folder: Path, data: str | None, encoding: str) -> "Shown":
    """A run's own rows, or what the model makes of the data."""
    from unrolled.evaluate.views import loss_of_run
    from unrolled.tasks.folder import load
    from unrolled.text.source import Source

    view = task.views[name]
    if view.of_run:
        return loss_of_run(folder, same_unit=view.same_unit)
    if data is None:
        raise ConfigError(
            f"--view is {name}, but there are no data to ask the model about. Add --data FILE."
        )
    model = load(folder)
    read = task.read(Source(data, encoding), model.settings, task.scoring())
    for remark in task.remarks(read):
        note(f"{data}: {remark}.")
    return task.view(name, model, read)
