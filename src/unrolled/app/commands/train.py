"""`unrolled train TASK`: from text files to a model folder."""

from pathlib import Path
from typing import Annotated, Any

import typer

from unrolled.app.options import Encoding, Json, Minutes, Seed, Threads
from unrolled.app.output import note, print_json, print_report
from unrolled.app.progress import progress
from unrolled.app.seeds import parse_seeds, train_seeds
from unrolled.errors import ConfigError, ModelError
from unrolled.tasks import TASKS, task_named

*OTHERS, LAST = TASKS
LONGEST_ROW = 1 << 16  # bytes
NAMES = f"{', '.join(OTHERS)} or {LAST}"
From = Annotated[
    str | None, typer.Option("--from", help="Parallel files: the ending of the source.")
]
To = Annotated[str | None, typer.Option("--to", help="Parallel files: the ending of the target.")]


def train(
    context: typer.Context,
    task: Annotated[str, typer.Argument(help=f"What to train: {NAMES}.", show_default=False)],
    train: Annotated[Path, typer.Option(help="Training data.", show_default=False)],
    out: Annotated[Path, typer.Option(help="The folder to make.", show_default=False)],
    dev: Annotated[Path | None, typer.Option(help="Data to choose the best model by.")] = None,
    test: Annotated[Path | None, typer.Option(help="Data to score the finished model on.")] = None,
    source: From = None,
    target: To = None,
    config: Annotated[Path | None, typer.Option(help="Settings, as TOML.")] = None,
    settings: Annotated[
        list[str] | None, typer.Option("--set", help="One setting: section.key=value.")
    ] = None,
    epochs: Annotated[int | None, typer.Option(help="How often to read the data.")] = None,
    minutes: Annotated[float | None, Minutes] = None,
    seed: Annotated[int | None, Seed] = None,
    seeds: Annotated[
        str | None, typer.Option(help="Several runs, a folder a seed below --out: 1,2,3.")
    ] = None,
    threads: Annotated[int | None, Threads] = None,
    resume: Annotated[bool, typer.Option("--resume", help="Go on with the run in --out.")] = False,
    encoding: Encoding = "utf-8",
    json: Json = False,
) -> None:
    """Train a model and score it beside the baselines.

    Every setting of the task is an option too: --hidden-size 200 is --set model.hidden_size=200.
    """
    from unrolled.config import parse_options, parse_overrides
    from unrolled.nn import kernels
    from unrolled.tasks.run import Sources, run_settings, run_training
    from unrolled.training.run_folder import RunFolder

    direct: dict[str, Any] = {"train.epochs": epochs, "train.minutes": minutes, "seed": seed}
    direct |= {"languages.source": source, "languages.target": target, "train.threads": threads}
    overrides = parse_overrides(settings or [])
    overrides |= parse_options(task_named(task).settings, context.args)
    chosen = run_settings(task, config, overrides, direct)
    sources = Sources(train=train, dev=dev, test=test, encoding=encoding)
    if seeds is not None:
        if seed is not None:
            raise ConfigError("--seed and --seeds were given. Give one of them.")
        train_seeds(chosen, sources, out, parse_seeds(seeds), resume=resume, json=json)
        return
    finished, how = RunFolder(out).is_finished, getattr(chosen, "train", None)
    if not kernels.active() and not finished and hasattr(how, "epochs"):
        note("No compiled kernels here: training runs on torch's layers and a plain loop, slower.")
    with progress() as watch:
        run_training(chosen, sources, out, resume=resume, watch=watch)
    if finished:
        note(f"The run in {out} was finished already; these are its scores.")
    show(out, task, json=json)


def show(out: Path, task: str, *, json: bool) -> None:
    """Print the scores that were taken when training ended."""
    from unrolled.evaluate.report import saved_notes, saved_reports

    reports = saved_reports(out)
    for message in [learned_from(out, task), *saved_notes(out)]:
        note(message)
    if json:
        print_json({"model": str(out), **{name: r.as_json() for name, r in reports.items()}})
        return
    for name, report in reports.items():
        print_report(report, title=f"{out} on the {name} data")


def learned_from(out: Path, task: str) -> str:
    """What the model learned from, by the first row of its metrics."""
    from json import loads

    from unrolled.store.manifest import RESTORE
    from unrolled.store.names import METRIC_ROWS
    from unrolled.store.storage import open_regular, storage_errors

    path = out / METRIC_ROWS
    with storage_errors(path, "read"), open_regular(path) as file:
        row = file.readline(LONGEST_ROW)
    try:
        return task_named(task).sentence(loads(row))
    except (AttributeError, LookupError, RecursionError, TypeError, ValueError) as error:
        problem = f"is damaged: its first row does not tell of the data; {RESTORE}."
        raise ModelError(path, problem) from error
