"""Word vectors: speed beside gensim and fastText, trees against softmax, maps against analogies.

    python benchmarks/embedding_studies.py DATA [--study NAME]… [--threads 2] [--out FIGURE.svg]

speed      an epoch of a part of the text beside gensim: skip-gram, CBOW, hierarchical softmax
subwords   an epoch with character n-grams beside fastText (PYTHONPATH names where it is installed)
outputs    microseconds a word as the vocabulary grows: negative sampling, trees, full softmax (on
           texts drawn by rank; the softmax is torch's, the others are compiled)
projected  analogies in the original space, after PCA to k dimensions, after t-SNE

DATA as in embeddings.py, whose settings these are. Markdown; every line with its probe.
"""

import argparse
import importlib.util
import time
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import torch
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
from unrolled.charts.lines import curves
from unrolled.config import settings_for
from unrolled.tasks.embed.data import Corpus, Words, read_text
from unrolled.tasks.embed.draws import chances_of, key_of
from unrolled.tasks.embed.model import EmbedModel
from unrolled.tasks.embed.settings import EmbedRun, EmbedTokens
from unrolled.tasks.embed.trees import paths_of
from unrolled.tasks.embed.update import Batch, EmbedUpdate
from unrolled.text.numbered import NumberedWords
from unrolled.text.source import Source

KINDS: dict[str, tuple[str, dict[str, Any], dict[str, Any]]] = {  # ours, gensim's
    "skip-gram": ("skip-gram", {}, {"sg": 1, "negative": NEGATIVES}),
    "CBOW": ("cbow", {}, {"sg": 0, "negative": NEGATIVES}),
    "skip-gram, hierarchical": (
        "skip-gram",
        {"model.output": "hierarchical"},
        {"sg": 1, "hs": 1, "negative": 0},
    ),
}
SOFTMAX = "full softmax"
OUTPUTS: dict[str, dict[str, Any]] = {
    "negative sampling": {},
    "Huffman tree": {"model.output": "hierarchical"},
    "balanced tree": {"model.output": "hierarchical", "model.tree": "balanced"},
    SOFTMAX: {"model.output": "softmax"},
}
VOCABULARIES = (1_000, 4_000, 16_000, 64_000, 256_000)
FULL_SOFTMAX_TO = 64_000
TEXT_WORDS, SOFTMAX_WORDS, LINE, ROUNDS = 400_000, 400, 50, 4  # the fastest round counts
DIMENSIONS = (50, 20, 10, 5, 2)
TSNE_WORDS = 2_000


def words_only(text: Path) -> Path:
    """The text as other tools read it: words in lower case, parted by spaces."""
    plain, reader = text.with_suffix(".words"), NumberedWords()
    with plain.open("w", encoding="utf-8") as out, text.open(encoding="utf-8") as lines:
        out.writelines(" ".join(line.split()) + "\n" for line in reader.read_as(list(lines)))
    return plain


def products(part: Path, chosen: dict[str, Any]) -> float:
    """Operations a word of the text takes, in the mean, of products of rows alone.

    A word that is kept meets the negatives of its block, and what it predicts or is predicted by:
    a product, and one for each of the two rows that it moves.
    """
    tokens = EmbedTokens(min_count=MIN_COUNT)
    words = read_text(Source(part), tokens).vocabulary(tokens)
    run = settings_for(EmbedRun, file=None, overrides=chosen)
    share = words.counts / words.counts.sum()
    kept = share * chances_of(words.counts, subsample=SUBSAMPLE, noise_power=0.75).keep
    pairs = 1.0 if run.model.objective == "cbow" else WINDOW + 1.0  # lines have ends: about
    if run.model.output == "hierarchical":
        ways = np.diff(paths_of("huffman", words.counts).starts)
        return float(6 * DIMENSION * pairs * (kept * ways).sum())
    return float(6 * DIMENSION * (pairs + run.train.shared_negatives) * kept.sum())


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
    print(
        "| | ours, M words/s | gensim | ratio | from text: ours | gensim | ratio "
        "| GFLOP/s reached | the machine's |"
    )
    print("|---|---|---|---|---|---|---|---|---|")
    for name, (objective, more, theirs) in KINDS.items():
        one, many = probe(threads)
        chosen = settings(objective, more)
        own = ours(part, chosen, words, threads)
        reached = own[0] * products(part, chosen) / 1e9
        other = gensims(plain, theirs, words, threads)
        cells = [
            f"{mine / 1e6:.2f} | {peer / 1e6:.2f} | {mine / peer:.1f}"
            for mine, peer in zip(own, other, strict=True)
        ]
        told = f"{' | '.join(cells)} | {reached:.0f} | {one:.0f} / {many:.0f}"
        print(f"| {name} | {told} |", flush=True)


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


def outputs(options: Any) -> None:
    """The claim that a tree costs the logarithm of the vocabulary, a softmax the whole of it."""
    found: dict[str, list[tuple[int, float]]] = {name: [] for name in OUTPUTS}
    print(f"| vocabulary | decisions, Huffman | {' | '.join(f'{name}, µs' for name in OUTPUTS)} |")
    print(f"|---|---|{'---|' * len(OUTPUTS)}")
    torch.set_num_threads(options.threads)
    for V in VOCABULARIES:
        for name, more in OUTPUTS.items():
            if name != SOFTMAX or V <= FULL_SOFTMAX_TO:
                words = SOFTMAX_WORDS if name == SOFTMAX else TEXT_WORDS
                found[name].append((V, microseconds(V, settings("skip-gram", more), words)))
        cells = [f"{points[-1][1]:.2f}" if points[-1][0] == V else "–" for points in found.values()]
        print(f"| {V:,} | {decisions(V):.1f} | {' | '.join(cells)} |", flush=True)
    if options.out:
        draw(found, options.out)


def microseconds(V: int, chosen: dict[str, Any], words: int) -> float:
    """Of learning a word, in a text of words that come as often as 1 / rank (Zipf)."""
    run = settings_for(EmbedRun, file=None, overrides=chosen)
    ids = np.random.default_rng(V).choice(V, words, p=shares(V)).astype(np.int32)
    corpus = Corpus(ids, np.arange(0, words + 1, LINE))
    network = EmbedModel.network_of(run, Words([str(k) for k in range(V)], counts_of(V)), DIMENSION)
    chances = chances_of(counts_of(V), subsample=0.0, noise_power=0.75)
    update: Any = EmbedUpdate(run, network, corpus, chances)
    update.begin()
    best = float("inf")
    for lines in corpus.runs(max(LINE, words // ROUNDS)):
        begun = time.perf_counter()
        update.step(Batch(lines, key_of(1, 0)), run.train.learning_rate)
        best = min(best, (time.perf_counter() - begun) / corpus.size(lines))
    return 1e6 * best


def shares(V: int) -> Any:
    weights = 1.0 / np.arange(1, V + 1)
    return weights / weights.sum()


def counts_of(V: int) -> Any:
    return np.maximum(1, shares(V) * 100 * V).astype(np.int64)


def decisions(V: int) -> float:
    """How many are on the way to a word of such a text, in the mean."""
    ways = np.diff(paths_of("huffman", counts_of(V)).starts)
    return float(np.average(ways, weights=counts_of(V)))


def draw(found: dict[str, list[tuple[int, float]]], path: Path) -> None:
    """On both axes a step is a doubling: what grows with the vocabulary climbs a step a step."""
    lines = {name: np.log2(np.array(points)).T for name, points in found.items()}
    curves(
        {name: (x, y) for name, (x, y) in lines.items()},
        x="words of the vocabulary, log₂",
        y="microseconds a word, log₂",
        title="What an output layer costs",
    ).save(str(path))


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
    parser.add_argument("--out", type=Path, help="the figure of `outputs`")
    parser.add_argument("--vectors", type=Path, help="a model folder, for `projected`")
    options = parser.parse_args()
    wanted = options.study or names
    if "projected" in wanted and options.vectors:
        projected(options.data, options)
    if "outputs" in wanted:
        outputs(options)
    if not {"speed", "subwords"} & {*wanted}:
        return
    with TemporaryDirectory() as temporary:
        _, part, _ = prepared(options.data, Path(temporary))
        for name, study in (("speed", speed), ("subwords", subwords)):
            if name in wanted:
                study(part, options)


if __name__ == "__main__":
    main()
