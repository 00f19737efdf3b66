"""What a text gives to learn from, for people to see: windows, and words drawn against them.

Skip-gram predicts each neighbour from the word, CBOW the word from the mean of its neighbours; with
negative sampling, both rather than words drawn by count^¾ (Mikolov et al. 2013, arXiv:1310.4546).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any, NamedTuple

import numpy as np

from unrolled.errors import DataError, not_one_of
from unrolled.evaluate.shown import columns, visible
from unrolled.nn.embed_kernels import Step
from unrolled.tasks.embed.blocks import Block, blocks, kept_words
from unrolled.tasks.embed.data import read_text
from unrolled.tasks.embed.draws import chances_of, key_of
from unrolled.tasks.embed.settings import EmbedTokens, EmbedTrain
from unrolled.text.source import Source

OBJECTIVES = ("skip-gram", "cbow")
EVERY_WORD = EmbedTokens(min_count=1)


class Windows(NamedTuple):
    """How they are laid."""

    objective: str
    window: int
    negatives: int
    seed: int


class Example(NamedTuple):
    """A word of the text, those near it, and those drawn."""

    word: str
    neighbours: list[str]
    noise: list[str]


@dataclass(frozen=True)
class Examples:
    """In the order of the text."""

    rows: Sequence[Example]
    objective: str

    def text(self) -> str:
        """A line a word."""
        lines = [self._cells(row) for row in self.rows]
        head = ["word", "predicts", "rather than"]
        return columns([head if self.objective == "skip-gram" else ["mean of", *head[1:]], *lines])

    def _cells(self, row: Example) -> list[str]:
        word, near, noise = (" ".join(map(visible, some)) for some in ([row.word], *row[1:]))
        return [word, near, noise] if self.objective == "skip-gram" else [near, word, noise]

    def as_json(self) -> Any:
        """Plain values."""
        return {"objective": self.objective, "examples": [row._asdict() for row in self.rows]}

    def chart(self) -> Any:
        """A row a word of the text, a column a word of those that it meets."""
        from unrolled.charts.examples import training_examples

        words = list(dict.fromkeys(word for row in self.rows for word in (*row[1], *row[2])))
        place = {word: k for k, word in enumerate(words)}
        near, noise = (np.zeros((len(self.rows), len(words)), np.int64) for _ in range(2))
        for k, row in enumerate(self.rows):
            np.add.at(near[k], [place[word] for word in row.neighbours], 1)
            np.add.at(noise[k], [place[word] for word in row.noise], 1)
        said = "predicts its neighbours" if self.objective == "skip-gram" else "is predicted"
        names = [row.word for row in self.rows]
        return training_examples(names, words, near, noise, title=f"Every word {said}")


def examples_of(path: str, windows: Windows, *, most: int) -> Examples:
    """The first so many words that have a neighbour, with theirs."""
    if windows.objective not in OBJECTIVES:
        raise not_one_of("--objective", windows.objective, OBJECTIVES)
    text = read_text(Source(path), EVERY_WORD)
    words = text.vocabulary(EVERY_WORD)
    corpus = text.encoded(words.words)
    power = EmbedTrain().noise_power
    chances = chances_of(words.counts, subsample=0.0, noise_power=power)
    step = Step(
        window=windows.window,
        words=1,
        shared=windows.negatives,
        negatives=windows.negatives,
        cbow=windows.objective == "cbow",
        rate=0.0,
        key=key_of(windows.seed, 0),
    )
    lines = (0, len(corpus.starts) - 1)
    kept = kept_words(corpus.ids, corpus.starts, lines, chances, step.key)
    some = (block for block in blocks(kept, chances, step) if len(block.pair_neighbour))
    found = [_example(words.words, block) for block in islice(some, most)]
    if not found:
        raise DataError(path, "has no two words in a line; no word has a neighbour.")
    return Examples(found, windows.objective)


def _example(words: Sequence[str], block: Block) -> Example:
    near, noise = (
        [words[k] for k in ids.tolist()] for ids in (block.pair_neighbour, block.negatives)
    )
    return Example(words[int(block.words[0])], near, noise)
