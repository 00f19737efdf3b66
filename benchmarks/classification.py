"""Classification on four public corpora: prepare them, train the recipes, print the table.

    python benchmarks/classification.py prepare DATA OUT
    python benchmarks/classification.py run OUT [--only trec] [--seeds 1 2 3] [--threads 1]

DATA holds the corpora as they are published: trec/, sst/, dna/ and names/. `prepare` turns them
into files of `label<TAB>text` under OUT; `run` trains recipes/NAME.toml on each and scores it once
on the test file, beside the baselines. docs/results.md has the figures.

trec    question type, the label before the colon; the last tenth of a shuffle is the dev text
sst     positive or negative; every phrase of the training trees that is not neutral, each once;
        dev and test are whole sentences
splice  exon-intron, intron-exon or neither, 60 letters of DNA; ten folds, stratified
names   the language of a surname, 18 of them; each name counts once a language
"""

import argparse
import json
import random
import re
import tempfile
import time
from collections import defaultdict
from collections.abc import Iterable, Iterator
from pathlib import Path

import numpy as np

RECIPES = Path(__file__).parents[1] / "recipes"
FOLDS = 10
SHUFFLE = 0  # the seed of every split
Rows = list[tuple[str, str]]  # label, text


# ------------------------------------------------------------------ the corpora


def trec(data: Path) -> dict[str, Rows]:
    """Questions and their coarse types."""

    def read(name: str) -> Rows:
        text = (data / "trec" / name).read_text(encoding="latin-1")
        lines = [line.split(" ", 1) for line in text.split("\n") if line]
        return [(label.split(":")[0], question.strip()) for label, question in lines]

    rows = shuffled(read("train_5500.label"))
    held_out = len(rows) // 10
    return {"train": rows[held_out:], "dev": rows[:held_out], "test": read("TREC_10.label")}


def sst(data: Path) -> dict[str, Rows]:
    """Phrases and sentences of film reviews; neutral ones are left out."""
    texts = {}
    for name in ("train", "dev", "test"):
        trees = (data / "sst" / f"{name}.txt").read_text(encoding="utf-8").split("\n")
        nodes = [list(phrases(tree)) for tree in trees if tree]
        kept = [node for tree in nodes for node in (tree if name == "train" else tree[-1:])]
        texts[name] = [("positive" if n > 2 else "negative", text) for n, text in kept if n != 2]
    return texts | {"train": unique(texts["train"])}


def phrases(tree: str) -> Iterator[tuple[int, str]]:
    """Label and text of every node of a bracketed tree, the root last."""
    words: list[str] = []
    opened: list[tuple[int, int]] = []  # label, and where in words the node begins
    for token in re.findall(r"\(\d|\)|[^\s()]+", tree):
        if token == ")":
            label, begin = opened.pop()
            yield label, " ".join(words[begin:])
        elif token[0] == "(":
            opened.append((int(token[1:]), len(words)))
        else:
            words.append(token)


def splice(data: Path) -> Rows:
    """Windows of DNA around a point that may be a splice junction."""
    lines = (data / "dna" / "splice.arff").read_text(encoding="ascii").splitlines()
    values = [line.split(",") for line in lines if line and line[0] not in "%@"]
    return shuffled([(row[-1].strip(), "".join(map(str.strip, row[1:-1]))) for row in values])


def names(data: Path) -> dict[str, Rows]:
    """Surnames; a tenth of each language for dev and a tenth for test, at least one each."""
    split: dict[str, Rows] = {"train": [], "dev": [], "test": []}
    for file in sorted((data / "names").glob("*.txt")):
        lines = file.read_text(encoding="utf-8").split("\n")
        rows = unique(shuffled((file.stem, line.strip()) for line in lines if line.strip()))
        tenth = max(1, len(rows) // 10)
        split["dev"] += rows[:tenth]
        split["test"] += rows[tenth : 2 * tenth]
        split["train"] += rows[2 * tenth :]
    return split


def shuffled(rows: Iterable[tuple[str, str]]) -> Rows:
    """In an order that depends on the rows alone."""
    ordered = sorted(rows)
    random.Random(SHUFFLE).shuffle(ordered)
    return ordered


def unique(rows: Rows) -> Rows:
    """Each row once, where it first stands."""
    return list(dict.fromkeys(rows))


def folds(rows: Rows) -> list[dict[str, Rows]]:
    """Stratified: the rows of each class are dealt out in turn; the fold after is the dev text."""
    by_class = defaultdict(list)
    for row in rows:
        by_class[row[0]].append(row)
    dealt: list[Rows] = [[] for _ in range(FOLDS)]
    for number, row in enumerate(row for label in sorted(by_class) for row in by_class[label]):
        dealt[number % FOLDS].append(row)
    return [
        {
            "test": dealt[k],
            "dev": dealt[(k + 1) % FOLDS],
            "train": [r for i in range(2, FOLDS) for r in dealt[(k + i) % FOLDS]],
        }
        for k in range(FOLDS)
    ]


def prepare(data: Path, out: Path) -> None:
    """Write OUT/NAME/{train,dev,test}.tsv; for splice OUT/splice/FOLD/…"""
    corpora = {"trec": trec(data), "sst": sst(data), "names": names(data)}
    corpora |= {f"splice/{k}": fold for k, fold in enumerate(folds(splice(data)))}
    for name, texts in corpora.items():
        folder = out / name
        folder.mkdir(parents=True, exist_ok=True)
        for part, rows in texts.items():
            lines = "".join(f"{label}\t{text}\n" for label, text in rows)
            (folder / f"{part}.tsv").write_text(lines, encoding="utf-8")
        print(name, {part: len(rows) for part, rows in texts.items()})


# ------------------------------------------------------------------ the runs


MEASURES = {"names": "balanced_accuracy"}  # of the others: accuracy
RECIPE_OF = {"splice": "dna-splice"}
DEV, TEST = "dev", "test"


def folders(corpora: Path, name: str) -> list[Path]:
    """Where the files of a corpus are: one folder, or one a fold."""
    inner = sorted(path for path in (corpora / name).iterdir() if path.is_dir())
    return inner or [corpora / name]


def one_run(name: str, folder: Path, seed: int, threads: int) -> dict[str, object]:
    """Train on a folder's files; every score of the model and the baselines on dev and test."""
    from unrolled.evaluate.report import saved_reports
    from unrolled.tasks.run import train

    begin = time.process_time()  # of all cores: a busy machine does not count
    with tempfile.TemporaryDirectory() as out:
        train(
            "classify",
            **{part: folder / f"{part}.tsv" for part in ("train", DEV, TEST)},
            out=Path(out) / "model",
            config=RECIPES / f"{RECIPE_OF.get(name, name)}.toml",
            seed=seed,
            threads=threads,
        )
        reports = saved_reports(Path(out) / "model")
    minutes = (time.process_time() - begin) / 60.0
    values: dict[str, object] = {"corpus": name, "folder": folder.name, "seed": seed}
    for text, report in reports.items():
        for who, scores in {"model": report.scores, **report.baselines}.items():
            values[f"{text} {who}"] = {score.name: score.value for score in scores}
    return values | {"minutes": minutes}


def summary(name: str, runs: list[dict[str, object]]) -> str:
    """A row of the table: mean and spread over seeds; folds of one seed are averaged first."""
    measure = MEASURES.get(name, "accuracy")
    seeds = sorted({run["seed"] for run in runs})

    def cell(who: str, measure: str = measure) -> str:
        per_seed = [
            np.mean([run[f"{TEST} {who}"][measure] for run in runs if run["seed"] == seed])
            for seed in seeds
        ]
        spread = f" ± {100 * np.std(per_seed, ddof=1):.1f}" if len(seeds) > 1 else ""
        return f"{100 * np.mean(per_seed):.1f}{spread}"

    minutes = np.mean([run["minutes"] for run in runs])
    cells = [cell(who) for who in ("model", "majority", "mean_embedding", "linear")]
    cells += [cell("model", "ece"), f"{minutes:.1f}"]
    return f"| {name} | {measure} | {len(seeds)} | " + " | ".join(cells) + " |"


def run(corpora: Path, names: list[str], seeds: list[int], threads: int) -> None:
    """Every corpus with every seed; each run as a JSON line, then the table."""
    rows = []
    for name in names:
        runs = []
        for seed in seeds:
            for folder in folders(corpora, name):
                runs.append(one_run(name, folder, seed, threads))
                print(json.dumps(runs[-1]), flush=True)
        rows.append(summary(name, runs))
    print("\n| corpus | test measure, % | seeds | model | majority | mean of embeddings "
          "| linear n-grams | ece of the model, % | core minutes a run |")  # fmt: skip
    print("|---" * 9 + "|", *rows, sep="\n")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    commands = parser.add_subparsers(dest="command")
    first = commands.add_parser("prepare")
    first.add_argument("data", type=Path)
    first.add_argument("out", type=Path)
    second = commands.add_parser("run")
    second.add_argument("corpora", type=Path)
    second.add_argument("--only", nargs="+", default=["trec", "sst", "splice", "names"])
    second.add_argument("--seeds", nargs="+", type=int, default=[1, 2, 3])
    second.add_argument("--threads", type=int, default=0)
    options = parser.parse_args()
    if options.command == "prepare":
        prepare(options.data, options.out)
    elif options.command == "run":
        run(options.corpora, options.only, options.seeds, options.threads)
    else:
        print("needs the corpora: see the head of this file")


if __name__ == "__main__":
    main()
