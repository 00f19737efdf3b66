"""GloVe: pairs a second and quality, beside the published loop on the same co-occurrences.

    python benchmarks/glove.py DATA [--whole] [--quality] [--epochs 15] [--threads 2] [--window 5]

DATA as in embeddings.py; two million words of it, or with --whole all. The loop is glove_loop.cpp,
built as the authors' Makefile builds theirs (stanfordnlp/GloVe), and once more for arithmetic that
knows neither NaN nor order, against which that Makefile warns. Pairs are counted once; ours are
then sorted, which counts, spread over the epochs; the loop's are shuffled, which does not. Without
--quality two epochs are run and the others taken to be like them. Markdown.
"""

import argparse
import subprocess
import tempfile
import time
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from embeddings import DIMENSION, MIN_COUNT, prepared, probe, quality

import unrolled
from unrolled.nn.glove_kernels import UNIT, GloveState
from unrolled.tasks.embed.data import Corpus, Words, read_text
from unrolled.tasks.embed.glove_job import GloveUpdate
from unrolled.tasks.embed.model import EmbedModel
from unrolled.tasks.embed.pairs import CLASSES, Counted, count_pairs, tiled
from unrolled.tasks.embed.settings import EmbedModelSettings, EmbedRun, EmbedTokens
from unrolled.text.source import Source

FLAGS = ("-std=c++17", "-O3", "-march=native", "-funroll-loops", "-pthread")
LOOPS = {"the published loop": FLAGS, "the same, -ffast-math": (*FLAGS, "-ffast-math")}
LOOP = Path(__file__).with_name("glove_loop.cpp")
RECORD = np.dtype([("row", np.int32), ("column", np.int32), ("count", np.float64)])


class Found(NamedTuple):
    """What a trainer has taken for an epoch, and before the first, and what came out."""

    sorting: float
    epoch: float  # seconds, the mean
    loss: float  # of a pair in the last epoch
    vectors: unrolled.WordVectors

    def rate(self, pairs: int, epochs: int) -> float:
        """Pairs a second of so many epochs."""
        return pairs * epochs / (self.sorting + epochs * self.epoch)


def ours(words: Words, counted: Counted, run: EmbedRun, epochs: int) -> Found:
    torch.manual_seed(1)
    model = EmbedModel.create(run, words)
    state = GloveState.create(len(words), DIMENSION)
    begun = time.perf_counter()
    pairs = tiled(counted, state.words[0].nbytes)
    update: Any = GloveUpdate(model.network, pairs, state)
    sorted_at = time.perf_counter()
    for epoch in range(epochs):
        order = np.random.default_rng((1, epoch)).permutation(CLASSES).tolist()
        steps = [update.step(pairs.stratum(shift), run.train.learning_rate) for shift in order]
    seconds = (time.perf_counter() - sorted_at) / epochs
    update.end()
    loss = sum(step.total for step in steps) / len(counted)
    return Found(sorted_at - begun, seconds, loss, model.vectors)


def the_loop(
    flags: Sequence[str], words: Words, counted: Counted, run: EmbedRun, epochs: int, folder: Path
) -> Found:
    program, pairs, out = folder / "glove_loop", folder / "pairs", folder / "vectors"
    subprocess.run(["c++", *flags, str(LOOP), "-o", str(program)], check=True)
    shuffled(counted).tofile(pairs)
    train, threads = run.train, torch.get_num_threads()
    numbers = (len(words), DIMENSION, threads, epochs, train.learning_rate, train.x_max)
    command = [program, pairs, out, *numbers, train.weight_power, 1]
    told = subprocess.run(map(str, command), check=True, capture_output=True, text=True).stdout
    seconds, losses = np.array([line.split() for line in told.splitlines()], np.float64).T
    rows = np.fromfile(out, np.float32).reshape(len(words), DIMENSION)
    vectors = unrolled.WordVectors(words.words, rows)
    return Found(0.0, float(seconds.mean()), float(losses[-1]), vectors)


def shuffled(counted: Counted) -> Any:
    """The pairs as the loop reads them, in an order of chance."""
    order = np.random.default_rng(1).permutation(len(counted))
    keys, totals = counted.pairs[order].T
    records = np.empty(len(counted), RECORD)
    records["row"], records["column"] = keys >> 32, keys & 0xFFFFFFFF
    records["count"] = totals / UNIT
    return records


def text_of(path: Path) -> tuple[Words, Corpus]:
    tokens = EmbedTokens(min_count=MIN_COUNT)
    text = read_text(Source(path), tokens)
    words = text.vocabulary(tokens)
    return words, text.encoded(words.words)


def compared(path: Path, options: Any, folder: Path) -> None:
    model = EmbedModelSettings(objective="glove", embedding_size=DIMENSION, window=options.window)
    run, (words, corpus) = EmbedRun(model=model), text_of(path)
    torch.set_num_threads(options.threads)
    begun = time.perf_counter()
    counted = count_pairs(corpus, len(words), options.window)
    seconds, number = time.perf_counter() - begun, len(counted)
    print(
        f"{len(corpus.ids):,} words, {len(words):,} different; {number:,} pairs in {seconds:.1f} s"
    )
    print("\n| | sorting, s | epoch, s | M pairs/s | loss | WS-353 | MEN | analogies | GFLOP/s |")
    print("|---|---|---|---|---|---|---|---|---|")
    epochs = options.epochs if options.quality else 2
    trainers = {"unrolled": partial(ours, words, counted, run, epochs)} | {
        name: partial(the_loop, flags, words, counted, run, epochs, folder)
        for name, flags in LOOPS.items()
    }
    rates = []
    for name, trainer in trainers.items():
        one, many = probe(options.threads)
        found = trainer()
        rates.append(found.rate(number, options.epochs))
        scores = quality(found.vectors, options.data / "word_similarity") if options.quality else []
        told = " | ".join(f"{score:.3f}" for score in scores) or "– | – | –"
        print(
            f"| {name} | {found.sorting:.2f} | {found.epoch:.2f} | {rates[-1] / 1e6:.2f} "
            f"| {found.loss:.4f} | {told} | {one:.0f} / {many:.0f} |",
            flush=True,
        )
    for name, rate in zip(LOOPS, rates[1:], strict=True):
        print(f"\n{options.epochs} epochs, sorting counted: {rates[0] / rate:.1f} times {name}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("data", type=Path)
    parser.add_argument("--whole", action="store_true", help="the whole text")
    parser.add_argument("--quality", action="store_true", help="run all epochs, judge the vectors")
    parser.add_argument("--epochs", type=int, default=15)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--window", type=int, default=5)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        text, part, _ = prepared(options.data, folder)
        compared(text if options.whole else part, options, folder)


if __name__ == "__main__":
    main()
