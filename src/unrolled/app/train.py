"""`unrolled train TASK`: from text files to a model folder."""

from pathlib import Path
from typing import Annotated, Any

import typer

from unrolled.app.options import Encoding, Json, Minutes, Seed, Threads
from unrolled.app.output import note, print_json, print_report
from unrolled.app.progress import progress
from unrolled.app.search import From, To, checked_pair

TASKS = "lm, ngram, window, classify, tag or translate"
TOLD = ("lines", "tokens", "unknown", "vocabulary", "padding")  # in a sentence of their own


def train(
    context: typer.Context,
    task: Annotated[str, typer.Argument(help=f"What to train: {TASKS}.", show_default=False)],
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
    from unrolled.training.checkpoint import RunFolder
    from unrolled.training.run import Sources, run_settings, run_training

    direct: dict[str, Any] = {"train.epochs": epochs, "train.minutes": minutes, "seed": seed}
    if languages := checked_pair((source, target)):
        direct |= {"languages.source": languages[0], "languages.target": languages[1]}
    overrides = parse_overrides(settings or []) | parse_options(task, context.args)
    chosen = run_settings(task, config, overrides, {**direct, "train.threads": threads})
    sources = Sources(train=train, dev=dev, test=test, encoding=encoding)
    finished = RunFolder(out).is_finished
    if getattr(chosen.train, "minutes", None) is not None and not finished:
        note("With --minutes the schedule follows the clock: two runs end in different bytes.")
    if not kernels.active() and not finished and task != "ngram":
        note("No compiled kernels here: training runs on torch's layers and a plain loop, slower.")
    with progress() as watch:
        run_training(chosen, sources, out, resume=resume, watch=watch)
    if finished:
        note(f"The run in {out} was finished already; these are its scores.")
    show(out, json=json)


def show(out: Path, *, json: bool) -> None:
    """Print the scores that were taken when training ended."""
    from unrolled.evaluate.report import saved_notes, saved_reports

    reports = saved_reports(out)
    for message in [data_facts(out), *saved_notes(out)]:
        note(message)
    if json:
        print_json({"model": str(out), **{name: r.as_json() for name, r in reports.items()}})
        return
    for name, report in reports.items():
        print_report(report, title=f"{out} on the {name} data")


def data_facts(out: Path) -> str:
    """What the model learned from, in a sentence."""
    from json import loads

    with (out / "metrics.jsonl").open(encoding="utf-8") as file:
        facts = loads(file.readline())
    others = ", ".join(
        f"{name.replace('_', ' ')} {value:,}" for name, value in facts.items() if name not in TOLD
    )
    return (
        f"Learned from {facts['lines']:,} lines, {facts['tokens']:,} tokens, {facts['unknown']:,} "
        f"of them unknown; vocabulary {facts['vocabulary']:,}; {facts['padding']:.1%} padding."
        + (f" Also: {others}." if others else "")
    )
