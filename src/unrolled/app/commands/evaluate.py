"""`unrolled evaluate MODEL DATA`: scores with recipes, beside the baselines."""

from collections.abc import Callable, Iterable
from inspect import Parameter, Signature
from typing import Annotated, Any

import typer

from unrolled.app.options import (
    Encoding,
    Json,
    Model,
    Out,
    chosen,
    data_parameters,
    parameters,
    with_data,
)
from unrolled.app.output import note, print_shown
from unrolled.app.progress import busy
from unrolled.tasks import TASKS, task_named

Data = Annotated[
    str, typer.Argument(help="A file, .gz or .xz, or -; of parallel files what they share.")
]
OWN: dict[str, tuple[Any, Any]] = {
    "model": (Model, Parameter.empty),
    "data": (Data, Parameter.empty),
    "encoding": (Encoding, "utf-8"),
    "out": (Out, None),
    "json": (Json, False),
}


def evaluate_command() -> Callable[..., None]:
    """The function behind `unrolled evaluate`, with the options of every task."""
    options = parameters(task.scoring for task in TASKS.values())
    reading = data_parameters(TASKS.values())

    def evaluate(**given: Any) -> None:
        """Score a model on a text or a labelled file, with intervals and baselines."""
        evaluate_model(given, known=options, reading=reading)

    own = [
        Parameter(key, Parameter.KEYWORD_ONLY, default=default, annotation=annotation)
        for key, (annotation, default) in OWN.items()
    ]
    order = [*own[:2], *options.values(), *reading.values(), *own[2:]]
    evaluate.__signature__ = Signature(order)  # type: ignore[attr-defined]
    evaluate.__annotations__ = {parameter.name: parameter.annotation for parameter in order}
    return evaluate


def evaluate_model(given: dict[str, Any], *, known: Iterable[str], reading: Iterable[str]) -> None:
    """Load a model, read the data as its task does, and show what comes of it."""
    from unrolled.tasks.folder import load
    from unrolled.text.source import Source

    model = load(given["model"])
    task = task_named(model.settings.task)
    options = chosen(task.scoring, known, given, noun=task.noun)
    settings = with_data(model.settings, reading, given, noun=task.noun)
    data = task.read(Source(given["data"], given["encoding"]), settings, options)
    for remark in task.remarks(data):
        note(f"{given['data']}: {remark}.")
    with busy(f"evaluating {given['model']} on {given['data']}"):
        shown = task.evaluate(model, data, options)
    title = f"{given['model']} on {given['data']}"
    print_shown(shown, title=title, out=given["out"], json=given["json"])
