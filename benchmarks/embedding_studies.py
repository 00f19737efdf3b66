"""Word vectors: speed beside gensim and fastText, trees against softmax, maps against analogies.

    python benchmarks/embedding_studies.py DATA [--study NAME]… [--threads 2] [--out FIGURE.svg]

speed      an epoch of a part of the text beside gensim: skip-gram, CBOW, hierarchical softmax
subwords   an epoch with character n-grams beside fastText (PYTHONPATH names where it is installed)
outputs    seconds of an epoch as the vocabulary grows: negative sampling, tree, full softmax
projected  analogies in the original space, after PCA to k dimensions, after t-SNE

DATA as in embeddings.py, whose settings these are. Markdown; every line with its probe.
"""

import argparse
import importlib.util
import json
import time
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
from embeddings import (
    DIMENSION,
    MIN_COUNT,
    NEGATIVES,
    SUBSAMPLE,
    WINDOW,
    prepared,
    probe,
    quality,
    settings,
    trained,
)

import unrolled
from unrolled.text.numbered import NumberedWords

KINDS: dict[str, tuple[str, dict[str, Any], dict[str, Any]]] = {  # ours, gensim's
    "skip-gram": ("skip-gram", {}, {"sg": 1, "negative": NEGATIVES}),
    "CBOW": ("cbow", {}, {"sg": 0, "negative": NEGATIVES}),
    "skip-gram, hierarchical": (
        "skip-gram",
        {"model.output": "hierarchical"},
        {"sg": 1, "hs": 1, "negative": 0},
    ),
}
VOCABULARIES = (500, 1_000, 2_000, 5_000, 10_000, 20_000)
FULL_SOFTMAX_TO = 2_000
DIMENSIONS = (50, 20, 10, 5, 2)
TSNE_WORDS = 2_000


def words_only(text: Path) -> Path:
    """The text as other tools read it: words in lower case, parted by spaces."""
    plain, reader = text.with_suffix(".words"), NumberedWords()
    with plain.open("w", encoding="utf-8") as out, text.open(encoding="utf-8") as lines:
        out.writelines(" ".join(line.split()) + "\n" for line in reader.read_as(list(lines)))
    return plain


def ours(text: Path, chosen: dict[str, Any], words: int, threads: int) -> tuple[float, float]:
    """Words a second: of training, and from the text to the saved folder."""
    _, speed, seconds = trained(text, chosen, epochs=1, threads=threads, seed=1)
    return speed, words / seconds


def gensims(plain: Path, options: dict[str, Any], words: int, threads: int) -> tuple[float, float]:
    from gensim.models import Word2Vec
    from gensim.models.word2vec import LineSentence

    begun = time.perf_counter()
    model = Word2Vec(
        vector_size=DIMENSION,
        window=WINDOW,
        sample=SUBSAMPLE,
        min_count=MIN_COUNT,
        workers=threads,
        **options,
    )
    model.build_vocab(LineSentence(str(plain)))
    learning = time.perf_counter()
    model.train(LineSentence(str(plain)), total_examples=model.corpus_count, epochs=1)
    learned = time.perf_counter()
    model.wv.save(str(plain.with_suffix(".kv")))
    return words / (learned - learning), words / (time.perf_counter() - begun)


def speed(part: Path, options: Any) -> None:
    plain, threads = words_only(part), options.threads
    words = sum(len(line.split()) for line in plain.open())
    print("| | ours, M words/s | gensim | ratio | from text: ours | gensim | ratio | GFLOP/s |")
    print("|---|---|---|---|---|---|---|---|")
    for name, (objective, more, theirs) in KINDS.items():
        one, many = probe(threads)
        own = ours(part, settings(objective, more), words, threads)
        other = gensims(plain, theirs, words, threads)
        cells = [
            f"{mine / 1e6:.2f} | {peer / 1e6:.2f} | {mine / peer:.1f}"
            for mine, peer in zip(own, other, strict=True)
        ]
        print(f"| {name} | {' | '.join(cells)} | {one:.0f} / {many:.0f} |", flush=True)


def subwords(part: Path, options: Any) -> None:
    plain, threads = words_only(part), options.threads
    words = sum(len(line.split()) for line in plain.open())
    print("| sub-words | ours, M words/s | from text | fastText, from text | ratio | GFLOP/s |")
    print("|---|---|---|---|---|---|")
    for objective, theirs in (("skip-gram", "skipgram"), ("cbow", "cbow")):
        one, many = probe(threads)
        training, whole = ours(part, settings(objective, {"model.subwords": True}), words, threads)
        peer = fasttexts(plain, theirs, words, threads)
        print(
            f"| {objective} | {training / 1e6:.2f} | {whole / 1e6:.2f} | {peer / 1e6:.3f} "
            f"| {whole / peer:.1f} | {one:.0f} / {many:.0f} |",
            flush=True,
        )


def fasttexts(plain: Path, model: str, words: int, threads: int) -> float:
    if not importlib.util.find_spec("fasttext"):
        return float("nan")
    import fasttext

    begun = time.perf_counter()
    fasttext.train_unsupervised(
        str(plain),
        model=model,
        dim=DIMENSION,
        ws=WINDOW,
        neg=NEGATIVES,
        epoch=1,
        minCount=MIN_COUNT,
        t=SUBSAMPLE,
        thread=threads,
        verbose=0,
    )
    return words / (time.perf_counter() - begun)


def outputs(part: Path, options: Any) -> None:
    text = part.with_suffix(".short")
    with part.open(encoding="utf-8") as lines:
        text.write_text("".join(line for line, _ in zip(lines, range(options.lines), strict=False)))
    rows: list[dict[str, Any]] = []
    print("| vocabulary | negative, s | hierarchical, s | softmax, s |\n|---|---|---|---|")
    for size in VOCABULARIES:
        cells = []
        for output in ("negative", "hierarchical", "softmax"):
            if output == "softmax" and size > FULL_SOFTMAX_TO:
                cells.append("–")
                continue
            more = {"model.output": output, "tokens.max_size": size, "tokens.min_count": 1}
            model_seconds = epoch_seconds(text, settings("skip-gram", more), options.threads)
            rows.append({"vocabulary": size, "output": output, "seconds": model_seconds})
            cells.append(f"{model_seconds:.3f}")
        print(f"| {size:,} | {' | '.join(cells)} |", flush=True)
    if options.out:
        draw(rows, options.out)


def epoch_seconds(text: Path, chosen: dict[str, Any], threads: int) -> float:
    with TemporaryDirectory() as folder:
        out = Path(folder) / "model"
        common = {"epochs": 1, "threads": threads, "seed": 1}
        unrolled.train("embed", train=text, out=out, settings=chosen, **common)
        return float(json.loads((out / "times.jsonl").read_text().splitlines()[-1])["seconds"])


def draw(rows: list[dict[str, Any]], path: Path) -> None:
    import altair as alt

    chart = alt.Chart(alt.InlineData(rows)).mark_line(point=True)
    scale = alt.Scale(type="log")
    chart.encode(
        x=alt.X("vocabulary:Q", scale=scale, title="words of the vocabulary"),
        y=alt.Y("seconds:Q", scale=scale, title="seconds an epoch"),
        color=alt.Color("output:N", title="output layer"),
    ).properties(width=420, height=280).save(str(path))


def projected(data: Path, options: Any) -> None:
    """E46: a linear map keeps differences up to the variance it drops, t-SNE does not."""
    from sklearn.decomposition import PCA
    from sklearn.manifold import TSNE

    table = unrolled.WordVectors.load(options.vectors, limit=30_000)
    print("| space | analogies, 30,000 words | analogies, 2,000 words |\n|---|---|---|")

    def told(name: str, change: Callable[[Any], Any], *, small_only: bool = False) -> None:
        cells = []
        for words in (30_000, TSNE_WORDS):
            if small_only and words > TSNE_WORDS:
                cells.append("–")
                continue
            units = table.vectors[:words]
            units = units / np.linalg.norm(units, axis=1, keepdims=True)
            made = unrolled.WordVectors(table.words[:words], np.float32(change(units)))
            cells.append(f"{100 * quality(made, data / 'word_similarity')[2]:.1f} %")
        print(f"| {name} | {' | '.join(cells)} |", flush=True)

    told("original", lambda x: x)
    for k in DIMENSIONS:
        told(f"PCA, {k} dimensions", lambda x, k=k: PCA(k, random_state=1).fit_transform(x))
    tsne = TSNE(2, random_state=1, init="pca", max_iter=500)
    told("t-SNE, 2 dimensions", tsne.fit_transform, small_only=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("data", type=Path)
    names = ("speed", "subwords", "outputs", "projected")
    parser.add_argument("--study", action="append", choices=names)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--lines", type=int, default=400, help="of the text, for `outputs`")
    parser.add_argument("--out", type=Path, help="the figure of `outputs`")
    parser.add_argument("--vectors", type=Path, help="a model folder, for `projected`")
    options = parser.parse_args()
    wanted = options.study or names
    if "projected" in wanted and options.vectors:
        projected(options.data, options)
    with TemporaryDirectory() as temporary:
        _, part, _ = prepared(options.data, Path(temporary))
        for name, study in (("speed", speed), ("subwords", subwords), ("outputs", outputs)):
            if name in wanted:
                study(part, options)


if __name__ == "__main__":
    main()
