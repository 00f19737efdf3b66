"""`unrolled demo`: a character model of Python itself, in about a minute, with no download.

`unrolled demo dates` is in app/commands/demo_dates.py.
"""

import json
import sysconfig
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from unrolled.app.commands.demo_dates import demo_dates
from unrolled.app.options import Minutes, Seed, Threads
from unrolled.app.output import note, print_report
from unrolled.app.progress import progress
from unrolled.errors import DataError, not_one_of
from unrolled.store.files import write_file

if TYPE_CHECKING:
    from unrolled.evaluate.report import Report
    from unrolled.tasks.shared.language_model import LanguageModel

CHARACTERS = 2_500_000  # of source to train on: a minute reads them once or twice
HELD_OUT = 60_000
SETTINGS = {
    "tokens.level": "char",
    "tokens.min_count": 5,
    "model.hidden_size": 256,
    "model.dropout": 0.0,
    "train.learning_rate": 0.005,
    "train.batch_tokens": 2048,
}
PROMPT = "def "
LINES_DRAWN = 12
MINUTES = 1.0


def demo(
    what: Annotated[str, typer.Argument(help="python or dates.")] = "python",
    out: Annotated[Path, typer.Option(help="The folder to make.")] = Path("unrolled-demo"),
    minutes: Annotated[float | None, Minutes] = None,
    seed: Annotated[int, Seed] = 1,
    threads: Annotated[int, Threads] = 0,
) -> None:
    """Learn to write Python from its own source, or to read dates; score it and draw it."""
    if what not in DEMOS:
        raise not_one_of("demo", what, DEMOS)
    DEMOS[what](unused(out), minutes=minutes, seed=seed, threads=threads)


def demo_python(folder: Path, *, minutes: float | None, seed: int, threads: int) -> None:
    """Train a model on Python's own source, score it, let it write, draw what it did."""
    from unrolled.evaluate.report import saved_reports
    from unrolled.tasks.run import train as run

    minutes = MINUTES if minutes is None else minutes
    note(f"Learning to write Python from its standard library, for {minutes:g} min, in {folder}/ …")
    write_texts(folder)
    with progress() as watch:
        model = run(
            "lm",
            train=folder / "train.txt",
            dev=folder / "held-out.txt",
            out=folder / "model",
            settings=SETTINGS,
            minutes=minutes,
            seed=seed,
            threads=threads,
            watch=watch,
        )
    report = saved_reports(folder / "model")["dev"]
    print_report(report, title="How well it foresees source that it has not seen")
    print(verdict(report))
    print(f"\nWhat it writes after {PROMPT!r}:\n")
    print(*model.generate(PROMPT, tokens=400, temperature=0.8, seed=seed))
    draw(model, report, folder)
    print(farewell(folder))


def unused(folder: Path) -> Path:
    """The folder, or the same name with the first free number: nothing is overwritten."""
    candidates = (folder.with_name(f"{folder.name}-{number}") for number in range(2, 10_000))
    return folder if not folder.exists() else next(path for path in candidates if not path.exists())


def write_texts(folder: Path) -> None:
    """Modules of the standard library in the order of their names; every tenth is held out."""
    library = Path(sysconfig.get_path("stdlib"))
    modules = sorted(library.glob("*.py"))
    if len(modules) < 20:
        raise DataError(library, "holds no Python source here, which the demo learns from.")
    folder.mkdir(parents=True)
    held_out = joined(modules[::10], HELD_OUT)
    train = joined([path for index, path in enumerate(modules) if index % 10], CHARACTERS)
    write_file(folder / "train.txt", train.encode())
    write_file(folder / "held-out.txt", held_out.encode())


def joined(paths: list[Path], limit: int) -> str:
    """The files' texts, one after another, cut off at the limit."""
    texts, size = [], 0
    for path in paths:
        if size >= limit:
            break
        texts.append(path.read_text(encoding="utf-8", errors="replace").replace("\0", ""))
        size += len(texts[-1])
    return "".join(texts)[:limit]


def verdict(report: "Report") -> str:
    """The scores in a sentence."""
    from unrolled.evaluate.score import named

    mine, other = (
        named(scores, "bits_per_character").value
        for scores in (report.scores, report.baselines["unigram"])
    )
    return f"A character costs it {mine:.2f} bits; knowing only how frequent each is, {other:.2f}."


def draw(model: "LanguageModel", report: "Report", folder: Path) -> None:
    """The learning curve, and how surprised the model is at each character of some lines."""
    from unrolled.charts import loss_curve, save, surprise
    from unrolled.evaluate.score import named
    from unrolled.text.tokens import END, SPECIALS

    metrics = (folder / "model" / "metrics.jsonl").read_text(encoding="utf-8")
    rows = [json.loads(line) for line in metrics.splitlines()]
    steps = [row for row in rows if "loss" in row]
    devs = [row for row in rows if "dev_loss" in row]
    baselines = report.baselines.items()
    curve = loss_curve(
        [row["step"] for row in steps],
        [row["loss"] for row in steps],
        dev_steps=[row["step"] for row in devs],
        dev_losses=[row["dev_loss"] for row in devs],
        baselines={name: named(scores, "cross_entropy").value for name, scores in baselines},
        unit="nats per character",
    )
    save(curve, folder / "loss.png")
    tokens, nats = model.surprise(passage((folder / "held-out.txt").read_text(encoding="utf-8")))
    shown = ["\n" if token == SPECIALS[END] else token for token in tokens]
    title = "How surprised it is at each character of source it has not seen"
    save(surprise(shown, nats, title=title), folder / "surprise.png")


def passage(text: str) -> str:
    """A dozen lines from the first function on, without the empty ones."""
    lines = [line for line in text.split("\n") if line.strip()]
    first = next((i for i, line in enumerate(lines) if line.lstrip().startswith("def ")), 0)
    return "\n".join(line[:100] for line in lines[first : first + LINES_DRAWN])


def farewell(folder: Path) -> str:
    """Where things are, and what to type next."""
    return f"""
Pictures: {folder}/loss.png and {folder}/surprise.png. Now try:

  unrolled generate {folder}/model --prompt "class " --temperature 0.8
  unrolled next {folder}/model "for i in rang"
  unrolled score {folder}/model some-file.py
  unrolled train lm --train your.txt --out your-model --minutes 10
"""


DEMOS = {"python": demo_python, "dates": demo_dates}
