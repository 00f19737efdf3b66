"""The text of an n-gram model: read once, numbered and counted on the way, never held whole."""

import hashlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from unrolled.config.ngram import NgramRun
from unrolled.errors import DataError
from unrolled.models.ngram_scratch import Scratch
from unrolled.text.corpus import read_lines
from unrolled.text.tokens import END, SPECIALS, TextEncoder, Vocabulary, WordTokeniser
from unrolled.text.word_index import WordIndex
from unrolled.text.words import in_chunks
from unrolled.training.language import build_encoder, hold_out

LINE_END = -1  # among numbers of words that have no ids yet
NUMBERS_AT_ONCE = 1 << 22


@dataclass
class Text:
    """The lines of a source as they pass, and by what to know them again."""

    path: Path | str
    encoding: str

    def __post_init__(self) -> None:
        self._digest, self._lines = hashlib.sha256(), 0

    def __iter__(self) -> Iterator[str]:
        for chunk in in_chunks(read_lines(self.path, encoding=self.encoding)):
            self._digest.update("\n".join([*chunk, ""]).encode("utf-8", "surrogatepass"))
            self._lines += len(chunk)
            yield from chunk

    @property
    def fingerprint(self) -> dict[str, int | str]:
        """Of the lines that were read."""
        return {"lines": self._lines, "sha256": self._digest.hexdigest()}


def apart(text: Text, share: float) -> tuple[Iterable[str], Iterable[str]]:
    """The lines to count, and those that are kept back, to be read after them."""
    size = 0 if str(text.path) == "-" else sum(1 for _ in Text(text.path, text.encoding))
    if size < 2:  # cannot be read twice, or must be cut within a line
        return hold_out(list(text), share, source=text.path)
    lines = iter(text)
    return islice(lines, min(size - 1, max(1, round(size * (1.0 - share))))), lines


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
        encoder = build_encoder(settings, lines)
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
