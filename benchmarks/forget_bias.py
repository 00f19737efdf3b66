"""What the forget gates of an LSTM begin with: drawn as torch draws them, 1 or 2.

    python benchmarks/forget_bias.py DATA [--only ptb ewt sst] [--seeds 1 2 3]

DATA holds ptb/, ud_english_ewt/ and corpora made by `benchmarks/classification.py prepare` in
sst-tsv/. Small models, few epochs, one thread; what is shown is the score on the dev data.
docs/lab.md has the figures.
"""

import argparse
import json
import tempfile
import time
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import unrolled
from unrolled.text.corpus import read_lines

BIASES = (None, 1.0, 2.0)
PTB_LINES = 10_000  # a quarter of the text


class Corpus(NamedTuple):
    """A task on a corpus."""

    task: str
    train: str
    dev: str
    score: str
    settings: dict[str, Any]


CORPORA = {
    "ptb": Corpus(
        "lm",
        "ptb/ptb.train.txt.gz",
        "ptb/ptb.valid.txt",
        "perplexity",
        {"model.hidden_size": 128, "model.dropout": 0.2, "train.epochs": 2},
    ),
    "ewt": Corpus(
        "tag",
        "ud_english_ewt/en_ewt-ud-train.conllu.xz",
        "ud_english_ewt/en_ewt-ud-dev.conllu",
        "accuracy",
        {
            "tokens.column": "upos",
            "model.hidden_size": 100,
            "model.characters": "suffix",
            "train.epochs": 3,
        },
    ),
    "sst": Corpus(
        "classify",
        "sst-tsv/train.tsv",
        "sst-tsv/dev.tsv",
        "accuracy",
        {
            "tokens.splitter": "space",
            "tokens.lowercase": True,
            "model.hidden_size": 100,
            "train.epochs": 2,
        },
    ),
}


def score(corpus: Corpus, data: Path, out: Path, *, bias: float | None, seed: int) -> float:
    """The dev score of one run."""
    train = data / corpus.train
    if corpus.task == "lm":
        train = out.with_suffix(".txt")
        lines = islice(read_lines(data / corpus.train), PTB_LINES)
        train.write_text("\n".join(lines) + "\n", encoding="utf-8")
    settings = {**corpus.settings, "seed": seed, "train.baselines": False, "train.threads": 1}
    if bias is not None:
        settings["model.forget_bias"] = bias
    unrolled.train(corpus.task, train=train, dev=data / corpus.dev, out=out, settings=settings)
    scores = json.loads((out / "metrics.json").read_text())["dev"]["scores"]
    return float(next(found["value"] for found in scores if found["name"] == corpus.score))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("data", type=Path)
    parser.add_argument("--only", nargs="+", choices=CORPORA, default=list(CORPORA))
    parser.add_argument("--seeds", nargs="+", type=int, default=[1, 2, 3])
    options = parser.parse_args()
    print("| corpus | forget bias | each seed | mean | seconds |\n|---|---|---|---|---|")
    for name in options.only:
        for bias in BIASES:
            begin, found = time.perf_counter(), []
            for seed in options.seeds:
                with tempfile.TemporaryDirectory() as folder:
                    out = Path(folder) / "model"
                    found.append(score(CORPORA[name], options.data, out, bias=bias, seed=seed))
            each = " ".join(f"{value:.4g}" for value in found)
            spent = time.perf_counter() - begin
            print(
                f"| {name} | {'torch’s' if bias is None else bias} | {each} "
                f"| {np.mean(found):.4g} | {spent:.0f} |",
                flush=True,
            )


if __name__ == "__main__":
    main()
