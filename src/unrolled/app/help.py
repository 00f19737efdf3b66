"""Help for people: types in words, and the settings of a task with default, bounds and meaning."""

from collections.abc import Iterable
from itertools import groupby
from pathlib import Path
from typing import Any

from typer.core import TyperCommand

from unrolled.config.describe import Setting, settings_in_words
from unrolled.tasks import TASKS

HOW = (
    "Settings of `train {task}`, with their defaults. One is written as an option "
    "(--hidden-size 200), as --set model.hidden_size=200, as hidden_size = 200 below [model] in a "
    'TOML file (--config), or in Python as settings={{"model.hidden_size": 200}}.'
)

# What is to be typed; behind a switch nothing.
TYPES: dict[Any, str] = {int: "NUMBER", float: "NUMBER", str: "TEXT", Path: "PATH", bool: ""}
TYPES[list[str]] = "TEXT"


def name_types(command: Any) -> None:
    """Let the help of a command, and of those below it, name types as people do."""
    for parameter in command.params:
        if parameter.param_type_name == "argument":
            parameter.metavar = parameter.name.upper()
        elif parameter.metavar is None:
            parameter.metavar = TYPES.get(parameter.type_descriptor.annotation)
    for inner in getattr(command, "commands", {}).values():
        name_types(inner)


class TrainCommand(TyperCommand):
    """`train`, whose help for a task lists the settings of that task."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Take note of the task before `--help` is seen."""
        ctx.meta["task"] = next((word for word in args if word in TASKS), None)
        return super().parse_args(ctx, args)

    def format_help(self, ctx: Any, formatter: Any) -> None:
        """The options that all tasks have, then the task's settings."""
        super().format_help(ctx, formatter)
        if (task := ctx.meta["task"]) is not None:
            print_settings(task)


def print_settings(task: str) -> None:
    """The settings of a task, in a box for each section."""
    from rich.console import Console
    from rich.padding import Padding

    console = Console()
    console.print(Padding(HOW.format(task=task), (0, 1, 1, 1)), markup=False, highlight=False)
    settings = settings_in_words(TASKS[task].settings)
    for section, found in groupby(settings, key=lambda setting: setting.section):
        console.print(_box(section or "of the run", found))


def _box(title: str, settings: Iterable[Setting]) -> Any:
    from rich import box
    from rich.panel import Panel
    from rich.table import Table
    from rich.text import Text

    table = Table(box=box.SIMPLE, show_header=False, show_edge=False, pad_edge=False)
    for setting in settings:
        about = Text(setting.about).append(f" [{setting.allowed}]", style="dim")
        table.add_row(Text(setting.option, style="bold cyan"), Text(setting.default), about)
    return Panel(table, title=title, title_align="left", border_style="dim")
