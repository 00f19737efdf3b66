"""What word vectors of our own are good for: labelled data, tagging, and CBOW beside skip-gram.

    python benchmarks/embedding_transfer.py DATA [--study NAME]… [--vectors FOLDER] [--seeds 5]
        [--sizes 100 500 0] [--corpora trec sst] [--threads 1] [--lines N] [--epochs 8]

transfer    a classifier of questions (TREC, six kinds) and of reviews (SST, positive or negative)
            learns from the first 100, 500 and all examples (0) of a shuffle: its vectors begin by
            chance, with ours and stay, or with ours and change; each seed draws its own examples
tagging     named entities of CoNLL-2003 by recipes/conll2003.toml, without vectors and with ours
objectives  CBOW and skip-gram, three seeds: likeness and analogies

DATA holds the corpora as they are published: trec/, sst/, conll2003/, wikipedia_excerpt/,
word_similarity/. Without --vectors, skip-gram learns them first, from Wikipedia (--lines: its first
lines) parted into words as these corpora are, in small letters, every digit a 0. Dev data choose
the epoch, for all alike; the test data are asked once. Differences are between runs of one seed,
with the 95 % interval of Student's t. Markdown.
"""

import argparse
import random
import re
import tempfile
from collections.abc import Mapping, Sequence
from itertools import islice
from pathlib import Path
from statistics import mean, stdev
from typing import Any

from classification import Rows, phrases, trec
from embeddings import articles, quality, settings, trained
from scipy.stats import t as student

import unrolled
from unrolled.evaluate.report import saved_reports

KINDS: Mapping[str, dict[str, Any]] = {
    "chance": {},
    "ours, frozen": {"model.freeze_vectors": True},
    "ours, fine-tuned": {"model.freeze_vectors": False},
}
COMMON = {
    "tokens.splitter": "space",
    "tokens.lowercase": True,
    "model.cell": "gru",
    "model.hidden_size": 100,
    "model.pooling": "attention",
    "model.dropout": 0.5,
    "train.learning_rate": 0.002,
    "train.baselines": False,
}
EPOCHS = {100: 40, 500: 20}
EPOCHS_OF_ALL = 10
LEARNED = {  # how vectors are
    "tokens.splitter": "space",
    "tokens.min_count": 3,
    "model.embedding_size": 100,
}
WORDS = re.compile(
    r"(?:[a-z]\.){2,}|n't\b|'(?:s|re|ve|ll|d|m)\b|\d[\d.,:/-]*\d|\w+(?:-\w+)*?(?=n't\b)"
    r"|\w+(?:[-&]\w+)*|--|\S"
)
RECIPE = Path(__file__).parents[1] / "recipes" / "conll2003.toml"
OBJECTIVES = ("skip-gram", "cbow")
MEASURES = ("WordSim-353", "MEN", "analogies")


def sst(data: Path) -> dict[str, Rows]:
    """Whole sentences, positive or negative."""
    texts = {}
    for name in ("train", "dev", "test"):
        trees = (data / "sst" / f"{name}.txt").read_text(encoding="utf-8").split("\n")
        roots = [list(phrases(tree))[-1] for tree in trees if tree]
        texts[name] = [("positive" if n > 2 else "negative", text) for n, text in roots if n != 2]
    return texts


CORPORA = {"trec": trec, "sst": sst}
STUDIES = ("transfer", "tagging", "objectives")


def some_of(texts: dict[str, Rows], size: int, seed: int, folder: Path) -> dict[str, Path]:
    """The files of a run: `size` examples drawn by the seed (0: all), the same dev and test."""
    rows = list(texts["train"])
    random.Random(seed).shuffle(rows)
    files = {}
    for name, part in {**texts, "train": rows[: size or None]}.items():
        files[name] = folder / f"{name}.tsv"
        files[name].write_text("".join(f"{label}\t{text}\n" for label, text in part))
    return files


def accuracy(files: Mapping[str, Path], chosen: dict[str, Any], **options: Any) -> float:
    """Of one classifier on its test data."""
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "model"
        unrolled.train("classify", **files, out=out, settings=COMMON | chosen, **options)
        return float(saved_reports(out)["test"].scores[0].value)


def compared(
    texts: dict[str, Rows], size: int, vectors: Path, seeds: Sequence[int], threads: int
) -> dict[str, list[float]]:
    """The accuracies of each kind of beginning, seed by seed."""
    found: dict[str, list[float]] = {name: [] for name in KINDS}
    width = unrolled.WordVectors.load(vectors, limit=1).width
    for seed in seeds:
        with tempfile.TemporaryDirectory() as folder:
            files = some_of(texts, size, seed, Path(folder))
            for name, more in KINDS.items():
                given = {"model.vectors": str(vectors), **more} if more else {}
                chosen = {"model.embedding_size": width, **given}
                epochs = EPOCHS.get(size, EPOCHS_OF_ALL)
                run = {"epochs": epochs, "seed": seed, "threads": threads}
                found[name].append(accuracy(files, chosen, **run))
    return found


def interval(differences: Sequence[float]) -> str:
    """The mean in points, and the 95 % interval of the mean."""
    centre = 100 * mean(differences)
    if len(differences) < 2:
        return f"{centre:+.1f}"
    half = 100 * stdev(differences) / len(differences) ** 0.5
    half *= float(student.ppf(0.975, len(differences) - 1))
    return f"{centre:+.1f} [{centre - half:+.1f}, {centre + half:+.1f}]"


def transfer(options: Any, vectors: Path) -> None:
    print(f"| corpus | examples | {' | '.join(KINDS)} | frozen − chance | fine-tuned − chance |")
    print("|---|---|---|---|---|---|---|")
    seeds = range(1, options.seeds + 1)
    for corpus in options.corpora:
        texts = CORPORA[corpus](options.data)
        for size in options.sizes:
            found = compared(texts, size, vectors, seeds, options.threads)
            means = [f"{100 * mean(values):.1f}" for values in found.values()]
            chance, *given = found.values()
            gains = [
                interval([b - a for a, b in zip(chance, values, strict=True)]) for values in given
            ]
            told = f"{size or len(texts['train']):,}"
            print(f"| {corpus} | {told} | {' | '.join([*means, *gains])} |", flush=True)


def tagging(options: Any, vectors: Path) -> None:
    files = {
        part: options.data / "conll2003" / name
        for part, name in (("train", "eng.train.xz"), ("dev", "eng.testa"), ("test", "eng.testb"))
    }
    print("| CoNLL-2003, span F1 | seed | dev | test |\n|---|---|---|---|")
    for told, more in (("chance", {}), ("ours, fine-tuned", {"model.vectors": str(vectors)})):
        for seed in range(1, options.seeds + 1):
            with tempfile.TemporaryDirectory() as folder:
                out = Path(folder) / "model"
                run = {"seed": seed, "threads": options.threads, "settings": more}
                unrolled.train("tag", **files, config=RECIPE, out=out, **run)
                found = saved_reports(out)
                dev, test = (found[part].scores[0].value for part in ("dev", "test"))
            print(f"| {told} | {seed} | {100 * dev:.2f} | {100 * test:.2f} |", flush=True)


def objectives(options: Any, text: Path) -> None:
    print(f"| objective, 3 seeds | {' | '.join(MEASURES)} |\n|---|---|---|---|")
    found = {
        name: [
            quality(
                trained(text, settings(name), epochs=5, threads=options.threads, seed=seed)[0],
                options.data / "word_similarity",
            )
            for seed in (1, 2, 3)
        ]
        for name in OBJECTIVES
    }
    for name, runs in found.items():
        cells = (f"{mean(c):.3f} ± {stdev(c):.3f}" for c in zip(*runs, strict=True))
        print(f"| {name} | {' | '.join(cells)} |", flush=True)
    first, second = (list(zip(*runs, strict=True)) for runs in found.values())
    gaps = [
        interval([a - b for a, b in zip(*both, strict=True)])
        for both in zip(first, second, strict=True)
    ]
    print(f"| skip-gram − CBOW, points | {' | '.join(gaps)} |")


def wikipedia(data: Path, out: Path, lines: int | None, *, parted: bool) -> Path:
    packed = data / "wikipedia_excerpt" / "enwiki_2013_excerpt.txt.xz"
    with out.open("w", encoding="utf-8") as file:
        file.writelines(map(as_treebank if parted else str, islice(articles(packed), lines)))
    return out


def as_treebank(line: str) -> str:
    """Words and marks apart as in treebanks, in small letters, every digit a 0."""
    text = line.lower().translate(str.maketrans("’“”–", '\'""-'))
    return re.sub(r"\d", "0", " ".join(WORDS.findall(text))) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("data", type=Path)
    parser.add_argument("--study", action="append", choices=STUDIES)
    parser.add_argument("--vectors", type=Path)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--sizes", type=int, nargs="+", default=[100, 500, 0])
    parser.add_argument("--corpora", nargs="+", choices=CORPORA, default=[*CORPORA])
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--lines", type=int, help="of Wikipedia")
    parser.add_argument("--epochs", type=int, default=8, help="of the vectors")
    options = parser.parse_args()
    wanted = options.study or STUDIES
    with tempfile.TemporaryDirectory() as folder:
        text, vectors = Path(folder) / "text", options.vectors or Path(folder) / "vectors"
        if {"transfer", "tagging"} & {*wanted} and not options.vectors:
            wikipedia(options.data, text, options.lines, parted=True)
            common = {"epochs": options.epochs, "threads": options.threads, "seed": 1}
            unrolled.train("embed", train=text, out=vectors, settings=LEARNED, **common)
        if "transfer" in wanted:
            transfer(options, vectors)
        if "tagging" in wanted:
            tagging(options, vectors)
        if "objectives" in wanted:
            objectives(options, wikipedia(options.data, text, options.lines, parted=False))


if __name__ == "__main__":
    main()
