"""Word vectors: how fast they are learned and how good they are, beside gensim if it is there.

    python benchmarks/embeddings.py DATA [--epochs 5] [--threads 2] [--seeds 3] [--only cbow]…

DATA holds wikipedia_excerpt/ and word_similarity/. Text is read in lower case, words of letters,
five times or more; dimension 100, window 5, five negatives, subsampling 1e-3. Words a second
are those of training (ids to vectors), then of all (text file to saved folder). Analogies are asked
among the 30,000 most frequent words. Beside every run stands a probe, the arithmetic rate of one
thread and of all: two virtual cores may be one real one, so compare within one phase. Markdown.
"""

import argparse
import importlib.util
import json
import lzma
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch

import unrolled
from unrolled.tasks.embed.questions import judge

DIMENSION, WINDOW, NEGATIVES, SUBSAMPLE, MIN_COUNT = 100, 5, 5, 1e-3, 5
ANALOGY_WORDS = 30_000
OBJECTIVES = ("skip-gram", "cbow")
GENSIM_RATES = {"skip-gram": (0.025, 0.04), "cbow": (0.025, 0.05)}
FILES = ("EN-WS-353-ALL.txt", "EN-MEN-TR-3k.txt", "questions-words.txt")
GROWTH = {
    "model.embedding_size": (50, 100, 200, 300),
    "model.window": (2, 5, 10),
    "train.negatives": (2, 5, 15),
    "tokens.max_size": (1_000, 10_000, 80_000),
}
SHORT = 2_000_000  # words of a run that only a speed is taken of


class Row(NamedTuple):
    """A line of the table."""

    name: str
    training: float  # words a second
    whole: float
    quality: list[float]
    probe: tuple[float, float]

    def __str__(self) -> str:
        told = " | ".join(f"{value:.3f}" for value in self.quality)
        one, many = self.probe
        return (
            f"| {self.name} | {self.training / 1e6:.2f} | {self.whole / 1e6:.2f} | {told} "
            f"| {one:.0f} / {many:.0f} |"
        )


def probe(threads: int) -> tuple[float, float]:
    """GFLOP/s of a product of matrices, on one thread and on all."""
    before, rates = torch.get_num_threads(), []
    for number in (1, threads):
        torch.set_num_threads(number)
        a = torch.randn(512, 512)
        begun, done = time.perf_counter(), 0
        while time.perf_counter() - begun < 0.5:
            a @ a
            done += 1
        rates.append(2 * 512**3 * done / (time.perf_counter() - begun) / 1e9)
    torch.set_num_threads(before)
    return rates[0], rates[1]


def articles(packed: Path) -> Iterator[str]:
    with lzma.open(packed, "rt", encoding="utf-8") as lines:
        for line in lines:
            if not line.startswith(("<doc", "</doc")) and line.strip():
                yield line


def quality(vectors: unrolled.WordVectors, folder: Path) -> list[float]:
    """Spearman on WS-353 and MEN, and the share of analogies that are right."""
    frequent = unrolled.WordVectors(vectors.words[:ANALOGY_WORDS], vectors.vectors[:ANALOGY_WORDS])
    found = []
    for name in FILES:
        row = judge(frequent if "questions" in name else vectors, folder / name)[-1]
        found.append(row.found.value if row.found else float("nan"))
    return found


def settings(objective: str, more: dict[str, Any] | None = None) -> dict[str, Any]:
    return {
        "model.objective": objective,
        "model.embedding_size": DIMENSION,
        "model.window": WINDOW,
        "train.negatives": NEGATIVES,
        "train.subsample": SUBSAMPLE,
        "tokens.min_count": MIN_COUNT,
        **(more or {}),
    }


def trained(text: Path, chosen: dict[str, Any], *, epochs: int, threads: int, seed: int) -> Any:
    """The vectors, words a second of training, seconds of everything."""
    with tempfile.TemporaryDirectory() as folder:
        out, begun = Path(folder) / "model", time.perf_counter()
        common = {"epochs": epochs, "threads": threads, "seed": seed}
        model = unrolled.train("embed", train=text, out=out, settings=chosen, **common)
        seconds = time.perf_counter() - begun
        last = (out / "times.jsonl").read_text().splitlines()[-1]
    return model.vectors, json.loads(last)["words_per_second"], seconds


def ours(name: str, text: Path, folder: Path, words: int, options: Any) -> None:
    found = []
    for seed in range(1, options.seeds + 1):
        probed = probe(options.threads)
        vectors, speed, seconds = trained(
            text, settings(name), epochs=options.epochs, threads=options.threads, seed=seed
        )
        found.append((speed, words * options.epochs / seconds, quality(vectors, folder)))
    speeds, wholes, scores = zip(*found, strict=True)
    mean = np.mean(scores, axis=0).tolist()
    told = f"unrolled {name}, mean of {len(found)} seeds"
    print(Row(told, max(speeds), max(wholes), mean, probed), flush=True)


def theirs(name: str, text: Path, folder: Path, words: int, options: Any) -> None:
    from gensim.models import Word2Vec
    from gensim.models.word2vec import LineSentence

    from unrolled.text.numbered import NumberedWords

    plain = text.with_suffix(".words")
    reader = NumberedWords()
    with plain.open("w", encoding="utf-8") as out, text.open(encoding="utf-8") as lines:
        out.writelines(" ".join(line.split()) + "\n" for line in reader.read_as(list(lines)))
    for rate in GENSIM_RATES[name]:
        probed, begun = probe(options.threads), time.perf_counter()
        model = Word2Vec(
            vector_size=DIMENSION,
            window=WINDOW,
            negative=NEGATIVES,
            sample=SUBSAMPLE,
            min_count=MIN_COUNT,
            sg=int(name == "skip-gram"),
            alpha=rate,
            workers=options.threads,
            seed=1,
        )
        model.build_vocab(LineSentence(str(plain)))
        learning = time.perf_counter()
        model.train(
            LineSentence(str(plain)), total_examples=model.corpus_count, epochs=options.epochs
        )
        done = time.perf_counter()
        vectors = unrolled.WordVectors(model.wv.index_to_key, model.wv.vectors)
        speeds = [words * options.epochs / (done - start) for start in (learning, begun)]
        told = f"gensim {name}, rate {rate}"
        print(Row(told, *speeds, quality(vectors, folder), probed), flush=True)


def growth(text: Path, options: Any) -> None:
    """How speed follows dimension, window, negatives, vocabulary, threads: an epoch of a part."""
    print("\n| setting | value | M words/s | probe GFLOP/s, 1 / all threads |\n|---|---|---|---|")

    def line(name: str, value: Any, chosen: dict[str, Any], threads: int) -> None:
        one, many = probe(threads)
        speed = trained(text, chosen, epochs=1, threads=threads, seed=1)[1]
        print(f"| {name} | {value:,} | {speed / 1e6:.2f} | {one:.0f} / {many:.0f} |", flush=True)

    for name, values in GROWTH.items():
        for value in values:
            line(name, value, settings("skip-gram", {name: value}), options.threads)
    for threads in range(1, options.threads + 1):
        line("threads", threads, settings("skip-gram"), threads)


def prepared(data: Path, folder: Path) -> tuple[Path, Path, int]:
    """The text, a part of it, and how many words it has."""
    text, part = folder / "text.txt", folder / "part.txt"
    words = 0
    packed = data / "wikipedia_excerpt" / "enwiki_2013_excerpt.txt.xz"
    with text.open("w", encoding="utf-8") as out, part.open("w", encoding="utf-8") as some:
        for line in articles(packed):
            out.write(line)
            if words < SHORT:
                some.write(line)
            words += len(line.split())
    return text, part, words


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("data", type=Path)
    parser.add_argument("--epochs", type=int, default=5)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--only", action="append", choices=OBJECTIVES)
    options = parser.parse_args()
    folder = options.data / "word_similarity"
    with tempfile.TemporaryDirectory() as temporary:
        text, part, words = prepared(options.data, Path(temporary))
        print(f"{words:,} words, {options.epochs} epochs, {options.threads} threads\n")
        print("| trainer | M words/s | from text | WS-353 | MEN | analogies | GFLOP/s |")
        print("|---|---|---|---|---|---|---|")
        runs: list[Callable[..., None]] = [ours]
        if importlib.util.find_spec("gensim"):
            runs.append(theirs)
        else:
            print("gensim is not installed: left out", file=sys.stderr)
        for name in options.only or OBJECTIVES:
            for run in runs:
                run(name, text, folder, words, options)
        growth(part, options)


if __name__ == "__main__":
    main()
