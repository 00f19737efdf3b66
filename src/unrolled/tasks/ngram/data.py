"""The text of an n-gram model: read once, numbered and counted on the way, never held whole."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from unrolled.config.data import TextData
from unrolled.errors import DataError
from unrolled.ngrams.scratch import Scratch
from unrolled.tasks.ngram.settings import NgramRun
from unrolled.tasks.shared.lines import PLAIN, cut_lines, texts_of
from unrolled.text.holdout import kept_from
from unrolled.text.source import Fingerprint, Source, TrackedLines
from unrolled.text.tokens import END, SPECIALS, TextEncoder, Vocabulary, WordTokeniser
from unrolled.text.word_index import WordIndex
from unrolled.text.words import in_chunks

LINE_END = -1  # among numbers of words that have no ids yet
NUMBERS_AT_ONCE = 1 << 22


@dataclass
class StreamedText:
    """The lines of a source, read when they are asked for, once."""

    source: Source
    data: TextData = PLAIN
    tracked: TrackedLines = field(init=False)

    def __post_init__(self) -> None:
        self.tracked, self._is_read = self.source.lines(), False

    @property
    def path(self) -> Path | str:
        """Where the lines come from."""
        return self.source.path

    def __iter__(self) -> Iterator[str]:
        self._is_read = True
        return texts_of(self.tracked, self.data, source=self.path)

    def fingerprint(self) -> Fingerprint:
        """Of the lines; they are read for it if nothing has read them."""
        if not self._is_read:
            for _ in self:
                pass
        return self.tracked.fingerprint()


def cut_stream(text: StreamedText, share: float) -> tuple[Iterable[str], Iterable[str]]:
    """The lines to count, and those that are kept back, to be read after them."""
    again = StreamedText(text.source, text.data)
    size = sum(1 for _ in again) if text.source.is_file else 0
    if size < 2:  # cannot be read twice, or must be cut within a line
        return cut_lines(list(text), share, source=text.path)
    lines = iter(text)
    return islice(lines, kept_from(size, share)), lines


def encoded_text(
    lines: Iterable[str], settings: NgramRun, scratch: Scratch, *, source: Path | str
) -> tuple[TextEncoder, NDArray[np.int32]]:
    """The vocabulary of lines, and their ids (N,), each line closed by END.

    Words are numbered as they come and the numbers changed into ids when all are counted; for other
    levels the lines are held in memory.
    """
    if settings.tokens.level == "word":
        encoder, ids = _numbered_words(lines, settings, scratch)
    else:
        lines = list(lines)
        encoder = TextEncoder.learn(lines, settings.tokens)
        ids = encoder.encode_lines(lines).ids
    if len(ids) == encoder.vocabulary.counts[END]:
        raise DataError(source, "holds no text, but there must be some to learn from.")
    if len(encoder.vocabulary) == len(SPECIALS):
        raise DataError(
            source,
            f"gives an empty vocabulary, since no token comes {settings.tokens.min_count} times. "
            "Lower tokens.min_count.",
        )
    return encoder, ids


def _numbered_words(
    lines: Iterable[str], settings: NgramRun, scratch: Scratch
) -> tuple[TextEncoder, NDArray[np.int32]]:
    tokens, index = settings.tokens, WordIndex()
    tokeniser = WordTokeniser(tokens.splitter)
    plain = tokens.splitter == "space"

    def pieces() -> Iterator[NDArray[np.int32]]:
        for chunk in in_chunks(lines):
            chunk = [line.lower() for line in chunk] if tokens.lowercase else chunk
            chunk = chunk if plain else [" ".join(tokeniser.split(line)) for line in chunk]
            numbers, lengths = index.read(chunk)
            yield np.insert(numbers, np.cumsum(lengths), LINE_END)

    numbers = scratch.joined(pieces(), np.int32)
    words = index.words()
    counts = _counted(numbers, len(words))
    vocabulary = Vocabulary.build(
        dict(zip(words, counts[:-1].tolist(), strict=True)),
        ends=int(counts[-1]),
        min_count=tokens.min_count,
        max_size=tokens.max_size,
    )
    ids = np.append(vocabulary.encode(words), np.int32(END))  # LINE_END is the last
    for start in range(0, len(numbers), NUMBERS_AT_ONCE):
        block = numbers[start : start + NUMBERS_AT_ONCE]
        block[:] = ids[block]
    encoder = TextEncoder(
        tokeniser,
        vocabulary,
        level="word",
        splitter=tokens.splitter,
        lowercase=tokens.lowercase,
    )
    return encoder, numbers


def _counted(numbers: NDArray[np.int32], size: int) -> NDArray[np.int64]:
    """How often each number comes (size + 1,), LINE_END last."""
    counts = np.zeros(size + 1, dtype=np.int64)
    for start in range(0, len(numbers), NUMBERS_AT_ONCE):
        block = np.bincount(numbers[start : start + NUMBERS_AT_ONCE] + 1, minlength=size + 1)
        counts += np.roll(block, -1)
    return counts
