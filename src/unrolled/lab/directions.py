"""`unrolled lab directions`: one direction against two, on tagging.

“Two directions improve results vastly” is a claim: here taggers that read forwards, forwards with
twice the units, and both ways learn the same sentences. What tells a tag may stand after its word,
and only who reads backwards, too, has seen it. (A language model of two directions would read what
it is to predict: that one is refused.)
"""

import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from unrolled.evaluate.shown import columns
from unrolled.lab.tagged_text import Tagged
from unrolled.store.files import write_file
from unrolled.tasks.run import train
from unrolled.text.conll import TaggedSentence, write_columns

KINDS: Mapping[str, Mapping[str, Any]] = {
    "forwards": {"model.bidirectional": False},
    "forwards, twice the units": {"model.bidirectional": False},
    "both directions": {"model.bidirectional": True},
}
SETTINGS = {
    "model.embedding_size": 50,
    "model.characters": "suffix",
    "model.decoder": "softmax",
    "model.dropout": 0.2,
    "train.learning_rate": 0.005,
    "train.baselines": False,
    "train.threads": 1,
}


@dataclass(frozen=True)
class Directions:
    """Shares of right tags, a row a seed, of each tagger in each group of words."""

    words: int
    found: Mapping[str, Mapping[str, list[float]]]  # tagger, group, seed

    def text(self) -> str:
        """A line a tagger: the mean over the seeds, the lowest and the highest."""
        groups = list(next(iter(self.found.values())))
        seeds = len(next(iter(self.found.values()))[groups[0]])
        head = [f"right of {self.words:,} words, {seeds} seeds", *groups]
        rows = [
            [name, *(_with_range(shares[group]) for group in groups)]
            for name, shares in self.found.items()
        ]
        return columns([head, *rows])

    def as_json(self) -> dict[str, Any]:
        """Every value."""
        right = {name: dict(shares) for name, shares in self.found.items()}
        return {"words": self.words, "right": right}

    def chart(self) -> Any:
        """A panel a group, a bar a tagger, its seeds from lowest to highest."""
        from unrolled.charts import grouped_shares

        return grouped_shares(
            {name: dict(shares) for name, shares in self.found.items()},
            x_title="right tags",
            title="One direction and two, tagging",
        )


def _with_range(values: Sequence[float]) -> str:
    return f"{np.mean(values):.1%} ({min(values):.1%} – {max(values):.1%})"


def directions(
    data: Tagged,
    *,
    hidden: int = 32,
    epochs: int = 4,
    seeds: Sequence[int] = (1, 2, 3),
    tell: Any = lambda _: None,
) -> Directions:
    """Each kind of tagger, a seed at a time."""
    found: dict[str, dict[str, list[float]]] = {name: {} for name in KINDS}
    with tempfile.TemporaryDirectory() as folder:
        text = Path(folder) / "train.txt"
        rows = (write_columns(sentence.words, sentence.tags) for sentence in data.train)
        write_file(text, "".join(rows).encode())
        for name, kind in KINDS.items():
            units = 2 * hidden if "twice" in name else hidden
            settings = {**SETTINGS, **kind, "model.hidden_size": units, "train.epochs": epochs}
            for seed in seeds:
                out = Path(folder) / f"{name}-{seed}"
                model = train("tag", train=text, out=out, seed=seed, settings=settings)
                right = right_words(model, data.test)
                for group, members in {"all words": np.ones_like(right), **data.groups}.items():
                    found[name].setdefault(group, []).append(float(right[members].mean()))
                tell(f"directions: {name}, seed {seed}")
    return Directions(sum(len(sentence.words) for sentence in data.test), found)


def right_words(model: Any, sentences: Sequence[TaggedSentence]) -> NDArray[np.bool_]:
    """Of every word, in order: is its tag the right one?"""
    said = model.predict([sentence.words for sentence in sentences])
    gold = [tag for sentence in sentences for tag in sentence.tags]
    right: NDArray[np.bool_] = np.array([tag for tags in said for tag in tags]) == np.array(gold)
    return right
