"""Every kind of language model side by side on one corpus, and what two of them write.

    python benchmarks/side_by_side.py FOLDER [--out DIR] [--epochs 5] [--seed 1] [--only GRU]…

FOLDER holds a train, a dev (or valid) and a test text, as the Penn Treebank comes:
ptb.train.txt.gz, ptb.valid.txt, ptb.test.txt. Recurrent networks read the text as often as is said,
window networks as often as their recipe says. Seconds are the processor's, which other work on the
machine hardly changes. With --out the models are kept: the same command goes on where it was
stopped. Prints Markdown for docs/results.md; what goes on meanwhile to stderr.
"""

import argparse
import json
import sys
import tempfile
import time
from pathlib import Path
from typing import Any, NamedTuple

import unrolled
from unrolled.evaluate.report import Report, saved_reports
from unrolled.evaluate.score import Score, named

RECIPES = Path(__file__).parents[1] / "recipes"
ORDERS = {"bigram": 2, "trigram": 3, "5-gram": 5}
WINDOWS = {"window of 2": 2, "window of 4": 4}
CELLS = {"RNN": "rnn", "GRU": "gru", "LSTM": "lstm"}
NAMES = (*ORDERS, *WINDOWS, *CELLS)
RECURRENT = {  # one layer: what a few epochs are enough for
    "model.hidden_size": 200,
    "model.dropout": 0.2,
    "train.optimizer": "sgd",
    "train.learning_rate": 20.0,
    "train.clip": 0.25,
    "train.batch_tokens": 700,
    "train.steps": 35,
}
PLAIN = {  # a plain RNN diverges at the rate that gated cells like
    "train.optimizer": "adamw",
    "train.learning_rate": 0.005,
    "train.clip": 1.0,
}
SECONDS = "seconds.json"
PANEL = ("5-gram", "RNN", "LSTM")
TEXTS = (("train", "train"), ("dev", "dev", "valid"), ("test", "test"))  # and what a file is called


class Row(NamedTuple):
    """A line of the table."""

    name: str
    parameters: int
    bytes: int | None
    seconds: float | None
    perplexity: Score

    def __str__(self) -> str:
        size = "" if self.bytes is None else f"{self.bytes:,}"
        seconds = "" if self.seconds is None else f"{self.seconds:,.1f}"
        score = self.perplexity
        value = f"{score.value:.1f} [{score.low:.1f}, {score.high:.1f}]"
        return f"| {self.name} | {self.parameters:,} | {size} | {seconds} | {value} |"


class Bench:
    """Trains models of one corpus with the options of the command."""

    def __init__(self, options: argparse.Namespace, out: Path) -> None:
        self.texts = {name: text_of(options.folder, *keys) for name, *keys in TEXTS}
        self.options, self.out = options, out

    def folder(self, name: str) -> Path:
        return self.out / name.replace(" ", "-")

    def train(self, name: str) -> float:
        """Train it, or go on with that; the processor's seconds it took in all."""
        task, choices = self.recipe(name)
        print(f"training {name} …", file=sys.stderr, flush=True)
        kept = self.out / SECONDS
        taken = json.loads(kept.read_text()) if kept.exists() else {}
        begin = time.process_time()
        try:
            unrolled.train(
                task,
                out=self.folder(name),
                resume=True,
                seed=self.options.seed,
                threads=self.options.threads,
                **self.texts,
                **choices,
            )
        finally:
            taken[name] = taken.get(name, 0.0) + time.process_time() - begin
            kept.write_text(json.dumps(taken))
        return taken[name]

    def recipe(self, name: str) -> tuple[str, dict[str, Any]]:
        """The task of a model, and how it is trained."""
        if name in ORDERS:
            return "ngram", {"settings": {"model.order": ORDERS[name]}}
        if name in WINDOWS:
            settings = {"model.window": WINDOWS[name], **self.options.small}
            return "window", {"config": RECIPES / "ptb-window.toml", "settings": settings}
        own = PLAIN if name == "RNN" else {}
        settings = {**RECURRENT, **own, "model.cell": CELLS[name], **self.options.small}
        return "lm", {"settings": settings, "epochs": self.options.epochs}

    def row(self, name: str) -> Row:
        """Train it and look at what came of it."""
        folder = self.folder(name)
        seconds = 0.0 if is_finished(folder) else self.train(name)
        files = json.loads((folder / "MANIFEST.json").read_text())["files"]
        return Row(
            name,
            parameters_of(folder),
            sum(entry["bytes"] for entry in files.values()),
            seconds or json.loads((self.out / SECONDS).read_text())[name],
            named(saved_reports(folder)["test"].scores, "perplexity"),
        )


def is_finished(folder: Path) -> bool:
    return (folder / "MANIFEST.json").exists()


def text_of(folder: Path, *keys: str) -> Path:
    """The one file of the folder whose name has one of these words in it."""
    found = [path for path in folder.iterdir() if any(key in path.name for key in keys)]
    if len(found) != 1:
        raise SystemExit(f"{folder}: one file named *{keys[0]}* is needed, but there are {found}.")
    return found[0]


def parameters_of(folder: Path) -> int:
    """Weights, or the n-grams of all orders, each of which has a probability."""
    about = unrolled.load(folder).network.about()
    return sum(size for name, size in about.items() if "unseen" not in name)


def baselines(report: Report, vocabulary: int) -> list[Row]:
    """The two that need no training: every token alike, and by its count."""
    sizes = {"uniform": 0, "unigram": vocabulary}
    return [
        Row(name, size, None, None, named(report.baselines[name], "perplexity"))
        for name, size in sizes.items()
    ]


def written(folder: Path, options: argparse.Namespace) -> list[str]:
    """Texts after the prompt, each on one line that Markdown shows as it is."""
    texts = unrolled.load(folder).generate(
        options.prompt, tokens=options.tokens, count=options.count, seed=options.seed
    )
    marks = {"&": "&amp;", "<": "&lt;", ">": "&gt;", "|": "&#124;", "\n": " ⏎ "}
    return [text.translate(str.maketrans(marks)) for text in texts]


def panel(bench: Bench, names: list[str]) -> None:
    """What models write after the same words, in columns."""
    options = bench.options
    columns = [written(bench.folder(name), options) for name in names]
    print(f"\nWhat they write after “{options.prompt}”, seed {options.seed}; ⏎ is a line's end:\n")
    print("| " + " | ".join(names) + " |\n" + "|---" * len(names) + "|")
    for texts in zip(*columns, strict=True):
        print("| " + " | ".join(texts) + " |")


def run(options: argparse.Namespace, out: Path) -> None:
    """Print the table as it grows, then the panel."""
    bench = Bench(options, out)
    wanted = [name for name in NAMES if name in (options.only or NAMES)]
    print(f"{options.epochs} epochs a recurrent network, {options.threads} thread(s).\n")
    print("| model | parameters | bytes | seconds | test perplexity |\n|---|---|---|---|---|")
    for name in wanted:
        row = bench.row(name)
        if name == wanted[0]:
            folder = bench.folder(name)
            size = len(unrolled.load(folder).encoder.vocabulary)
            print(*baselines(saved_reports(folder)["test"], size), sep="\n")
        print(row, flush=True)
    shown = [name for name in PANEL if name in wanted] or wanted[:2]
    panel(bench, shown)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path, nargs="?")
    parser.add_argument("--out", type=Path, help="keep the models here, and go on with them")
    parser.add_argument("--epochs", type=int, default=5, help="of each recurrent network")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--only", action="append", choices=NAMES)
    parser.add_argument("--small", action="store_true", help="tiny networks, to try the command")
    parser.add_argument("--prompt", default="the company said")
    parser.add_argument("--tokens", type=int, default=25)
    parser.add_argument("--count", type=int, default=6)
    options = parser.parse_args()
    options.small = {"model.hidden_size": 16} if options.small else {}
    if options.folder is None:
        print("side_by_side: name a folder with texts; nothing is done without.", file=sys.stderr)
        return
    with tempfile.TemporaryDirectory() as temporary:
        out = options.out or Path(temporary)
        out.mkdir(parents=True, exist_ok=True)
        run(options, out)


if __name__ == "__main__":
    main()
