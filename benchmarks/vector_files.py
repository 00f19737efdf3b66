"""A million word vectors: how long opening, asking and reading them takes, beside gensim.

    python benchmarks/vector_files.py [--words 1000000] [--width 100] [--repeats 5] [--threads 2]

Vectors of chance are written once as our own folder, as word2vec's and as fastText's binary file.
Opening the folder is parted into what checking costs (SHA-256 and finiteness, by themselves) and
the rest. A look-up is the ten nearest words of one word. Times are medians, in milliseconds.
Markdown.
"""

import argparse
import importlib.util
import json
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import torch

import unrolled
from unrolled.store.files import read_folder, write_file, write_folder
from unrolled.store.names import WEIGHTS
from unrolled.store.tensors import tensor_bytes
from unrolled.text.vector_writer import WRITERS

LIMIT = 10_000
BUCKETS = 200_000


def table(words: int, width: int) -> unrolled.WordVectors:
    vectors = np.random.default_rng(1).normal(size=(words, width)).astype(np.float32)
    return unrolled.WordVectors([f"word{k}" for k in range(words)], vectors)


def written(made: unrolled.WordVectors, folder: Path) -> tuple[Path, Path]:
    """As a folder of `train embed`, and as word2vec's binary."""
    counts = list(range(len(made), 0, -1))
    files = {
        WEIGHTS: tensor_bytes({"input": torch.from_numpy(made.vectors)}),
        "words.json": json.dumps({"words": made.words, "counts": counts}).encode(),
    }
    write_folder(folder / "own", files)
    write_file(folder / "word2vec.bin", WRITERS["binary"](made))
    return folder / "own", folder / "word2vec.bin"


def timed(repeats: int, work: Callable[[], Any]) -> float:
    """Milliseconds, the median."""
    seconds = []
    for _ in range(repeats):
        begun = time.perf_counter()
        work()
        seconds.append(time.perf_counter() - begun)
    return 1000 * median(seconds)


def checking(folder: Path) -> None:
    """What opening a folder must do whatever else it does: hash each file, look at each number."""
    read_folder(folder, required=(WEIGHTS, "words.json"))
    vectors = np.memmap(folder / WEIGHTS, np.float32, "r", offset=128)
    for begin in range(0, len(vectors), 1 << 20):
        np.isfinite(vectors[begin : begin + (1 << 20)].sum())


def look_ups(vectors: unrolled.WordVectors) -> Iterator[Callable[[], Any]]:
    chance = np.random.default_rng(2)
    while True:
        word = vectors.words[int(chance.integers(len(vectors)))]
        yield lambda word=word: vectors.neighbours(word, 10)


def rows(options: Any, folder: Path) -> Iterator[tuple[str, float]]:
    made = table(options.words, options.width)
    own, binary = written(made, folder)
    repeats, load = options.repeats, unrolled.WordVectors.load
    checks = timed(repeats, lambda: checking(own))
    opened = timed(repeats, lambda: load(own))
    yield "our folder, opened", opened
    yield "of these, hash and finiteness", checks
    yield "the rest", opened - checks
    yield f"our folder, its first {LIMIT:,} words", timed(repeats, lambda: load(own, limit=LIMIT))
    vectors = load(own)
    asked = look_ups(vectors)
    yield "the first look-up (words are numbered, lengths measured)", timed(1, next(asked))
    yield "a look-up", timed(10 * repeats, lambda: next(asked)())
    euclidean = lambda: vectors.neighbours("word7", 10, measure="euclidean")  # noqa: E731
    yield "a look-up, Euclidean", timed(repeats, euclidean)
    yield "an analogy", timed(repeats, lambda: vectors.analogy("word1", "word2", "word3"))
    yield (
        "one matrix product, a column",
        timed(10 * repeats, lambda: made.vectors @ made.vectors[7]),
    )
    yield "word2vec's binary file", timed(1, lambda: load(binary))
    yield f"the same, its first {LIMIT:,} words", timed(repeats, lambda: load(binary, limit=LIMIT))
    yield from fasttexts(folder, made, repeats)
    if importlib.util.find_spec("gensim"):
        yield from gensims(binary, repeats)


def fasttexts(
    folder: Path, made: unrolled.WordVectors, repeats: int
) -> Iterator[tuple[str, float]]:
    from unrolled.text.subwords import Subwords
    from unrolled.text.word_parts import WordParts

    grams = np.random.default_rng(3).normal(size=(BUCKETS, made.width)).astype(np.float32)
    parts = WordParts(Subwords(3, 6, BUCKETS), np.arange(BUCKETS), grams)
    some = unrolled.WordVectors(made.words[:100_000], made.vectors[:100_000], parts)
    path = folder / "fasttext.bin"
    write_file(path, WRITERS["fasttext"](some))
    load = unrolled.WordVectors.load
    yield (
        f"fastText's binary file, 100,000 words, {BUCKETS:,} n-grams",
        timed(1, lambda: load(path)),
    )
    yield f"the same, its first {LIMIT:,} words", timed(repeats, lambda: load(path, limit=LIMIT))


def gensims(binary: Path, repeats: int) -> Iterator[tuple[str, float]]:
    from gensim.models import KeyedVectors

    def load() -> Any:
        return KeyedVectors.load_word2vec_format(str(binary), binary=True)

    yield "gensim: word2vec's binary file", timed(1, load)
    vectors = load()
    vectors.save(str(binary.with_suffix(".kv")))
    own = str(binary.with_suffix(".kv"))
    yield (
        "gensim: its own file, mapped, unchecked",
        timed(repeats, lambda: KeyedVectors.load(own, mmap="r")),
    )
    yield "gensim: the first look-up", timed(1, lambda: vectors.most_similar("word7"))
    yield "gensim: a look-up", timed(10 * repeats, lambda: vectors.most_similar("word8"))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--words", type=int, default=1_000_000)
    parser.add_argument("--width", type=int, default=100)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--threads", type=int, default=2)
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    print(f"| {options.words:,} words of {options.width} numbers | ms |\n|---|---|")
    with TemporaryDirectory() as folder:
        for name, milliseconds in rows(options, Path(folder)):
            print(f"| {name} | {milliseconds:,.1f} |", flush=True)


if __name__ == "__main__":
    main()
