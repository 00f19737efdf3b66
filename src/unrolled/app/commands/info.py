"""`unrolled info [MODEL]`: what a model folder holds, or what this installation is."""

import os
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from unrolled.app.options import Json
from unrolled.app.output import print_json, print_report, say
from unrolled.errors import ConfigError

if TYPE_CHECKING:
    from unrolled.evaluate.report import Report

WITHOUT_KERNELS = "torch's layers where they are exact, a plain loop elsewhere"


def info(
    model: Annotated[Path | None, typer.Argument(help="A model folder.")] = None,
    shapes: Annotated[
        bool, typer.Option("--shapes", help="List its tensors: shapes, numbers, gates.")
    ] = False,
    json: Json = False,
) -> None:
    """Describe a model folder, or the installation when none is named."""
    if shapes:
        show_shapes(model, json=json)
        return
    facts = about_installation() if model is None else about_model(model)
    reports, notes = ({}, []) if model is None else saved(model)
    if json:
        scores = {name: report.as_json() for name, report in reports.items()}
        print_json({**facts, **scores, **({"notes": notes} if notes else {})})
        return
    width = max(map(len, facts))
    for name, value in facts.items():
        say(f"{name:<{width}}  {value}")
    for name, report in reports.items():
        print_report(report, title=f"\nOn the {name} text, when training ended")
    for message in notes:
        say(f"\n{message}")


def show_shapes(folder: Path | None, *, json: bool) -> None:
    """The tensors of a model: their shapes, how many numbers they hold, and which gates."""
    from unrolled.evaluate.shown import columns
    from unrolled.nn.table import shape_rows
    from unrolled.tasks.folder import load

    if folder is None:
        raise ConfigError("--shapes was given, but no model. Name a model folder.")
    model = load(folder)
    rows = shape_rows(model.network, model.tensors())
    if json:
        print_json([row._asdict() for row in rows])
        return
    say(columns([["tensor", "shape", "numbers", "of each gate"], *(row.cells() for row in rows)]))
    say(f"{sum(row.numbers for row in rows):,} numbers in all.")


def about_installation() -> dict[str, Any]:
    """Versions, cores, and which code runs the recurrent layers."""
    import torch

    from unrolled.native import NONE, VARIABLE, chosen
    from unrolled.nn import kernels

    choice = f", chosen by {VARIABLE}" if chosen() else ""
    instead = "" if kernels.active() else f": {WITHOUT_KERNELS}"
    return {
        "unrolled": version("unrolled"),
        "torch": torch.__version__,
        "cores": os.cpu_count(),
        "threads": torch.get_num_threads(),
        "kernels": (kernels.active() or NONE) + choice + instead,
    }


def about_model(folder: Path) -> dict[str, Any]:
    """Size and settings of a model."""
    from unrolled.config import flat
    from unrolled.tasks.folder import load

    model = load(folder)
    chosen = flat(model.settings.model_dump(exclude_none=True, exclude={"task", "seed", "train"}))
    return {
        "task": model.settings.task,
        **model.about(),
        "bytes": sum(path.stat().st_size for path in folder.iterdir() if path.is_file()),
        **chosen,
    }


def saved(folder: Path) -> "tuple[dict[str, Report], list[str]]":
    """The scores that were taken when training ended, and what is to be known beside them."""
    from unrolled.evaluate.report import saved_notes, saved_reports

    return saved_reports(folder), saved_notes(folder)
