"""Tagged sentences for the studies: made up, or read from a file of one's own.

In the made-up ones six words are noun or verb, and the same number of them is told by what stands
before as by what stands after:

    the light often shines     noun, told by the article before it
    to light the lamp          verb, told by “to” before it
    light often shines         noun, told by the verb after it
    light often the lamp       verb, told by the article after it
"""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from unrolled.errors import DataError
from unrolled.text.conll import TaggedSentence, read_tagged
from unrolled.text.corpus import read_lines
from unrolled.text.holdout import cut_last

EITHER = ("light", "run", "set", "back", "watch", "play")
NOUNS = ("lamp", "bill", "team", "door", "boat", "town")
VERBS = ("shines", "ends", "is", "was", "stays", "comes")
ADVERBS = ("often", "never", "now", "soon", "again", "here")
ARTICLES = ("the", "a", "this")
SHARE_TESTED = 0.2
FEWEST = 10  # sentences of a file


class Tagged(NamedTuple):
    """Sentences to learn from, others to be asked, and which of their words are of which group."""

    train: Sequence[TaggedSentence]
    test: Sequence[TaggedSentence]
    groups: dict[str, NDArray[np.bool_]]  # over all words of the test, in order


def made_up(sentences: int, *, seed: int) -> Tagged:
    """As many to learn from, and a quarter as many to be asked."""
    draw = np.random.default_rng(seed)
    made = [_sentence(draw) for _ in range(sentences + sentences // 4)]
    train, test = made[:sentences], made[sentences:]
    kinds = np.array([kind for _, kinds in test for kind in kinds])
    groups = {f"told by what is {kind}": kinds == kind for kind in ("before", "after")}
    return Tagged([s for s, _ in train], [s for s, _ in test], groups)


def _sentence(draw: np.random.Generator) -> tuple[TaggedSentence, list[str]]:
    """Two to four clauses, and for each word what tells its tag."""
    sentence, told = TaggedSentence(), list[str]()
    for number in range(int(draw.integers(2, 5))):
        words = [(",", "PUNCT", "")] if number else []
        for word, tag, how in [*words, *_clause(draw)]:
            sentence.add(word, tag, 0)
            told.append(how)
    return sentence, told


def _clause(draw: np.random.Generator) -> Iterator[tuple[str, str, str]]:
    before, noun = draw.random() < 0.5, draw.random() < 0.5
    if before:
        yield (_one(draw, ARTICLES), "DET", "") if noun else ("to", "PART", "")
    yield _one(draw, EITHER), "NOUN" if noun else "VERB", "before" if before else "after"
    for _ in range(int(draw.integers(3))):
        yield _one(draw, ADVERBS), "ADV", ""
    if noun:
        yield _one(draw, VERBS), "VERB", ""
    else:
        yield _one(draw, ARTICLES), "DET", ""
        yield _one(draw, NOUNS), "NOUN", ""


def _one(draw: np.random.Generator, words: Sequence[str]) -> str:
    return words[int(draw.integers(len(words)))]


def from_files(
    data: Path | str, test: Path | str | None, *, column: str = "upos", encoding: str = "utf-8"
) -> Tagged:
    """A user's tagged file; without another to be asked its last fifth is held back."""
    train: Sequence[TaggedSentence] = _read(data, column, encoding)
    if len(train) < FEWEST:
        problem = f"has {len(train)} sentences, but a study needs {FEWEST} or more."
        raise DataError(data, problem)
    if test is None:
        train, asked = cut_last(train, SHARE_TESTED)
    else:
        asked = _read(test, column, encoding)
    return Tagged(train, asked, _groups(train, asked))


def _read(path: Path | str, column: str, encoding: str) -> list[TaggedSentence]:
    return read_tagged(read_lines(path, encoding=encoding), source=path, column=column)


def _groups(
    train: Sequence[TaggedSentence], test: Sequence[TaggedSentence]
) -> dict[str, NDArray[np.bool_]]:
    tags: dict[str, set[str]] = defaultdict(set)
    for sentence in train:
        for word, tag in zip(sentence.words, sentence.tags, strict=True):
            tags[word].add(tag)
    known = np.array([len(tags.get(word, ())) for s in test for word in s.words])
    groups = {"of several tags": known > 1, "never seen": known == 0}
    return {name: members for name, members in groups.items() if members.any()}
