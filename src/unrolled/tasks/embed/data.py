"""The text of word vectors: read once into a file of ids, however long it is."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, pairwise
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from unrolled.errors import DataError
from unrolled.ngrams.scratch import Scratch
from unrolled.tasks.embed.settings import EmbedTokens
from unrolled.text.corpus import read_utf8_blocks
from unrolled.text.numbered import NumberedWords
from unrolled.text.source import Fingerprint, Source, TrackedBlocks, one_ahead

ON_DISK = Scratch(memory=1)
WORDS_AT_ONCE = 1 << 22
IN_CACHE = 1 << 18  # numbers that are worked on at once while they are encoded
LONGEST = 1000  # words of a line; what is longer is cut

Ids = NDArray[np.int32]
Longs = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Words:
    """Words, the most frequent first, and how often each comes."""

    words: list[str]
    counts: Longs  # (V,)

    def __len__(self) -> int:
        return len(self.words)


@dataclass(frozen=True, eq=False)
class Corpus:
    """Known words as ids, line after line; what is not known is left out."""

    ids: Ids  # (N,)
    starts: Longs  # (lines + 1,)

    def runs(self, words: int) -> list[tuple[int, int]]:
        """First and last line of runs of lines of about so many words."""
        number = max(1, round(len(self.ids) / words))
        cuts = np.searchsorted(self.starts, np.linspace(0, len(self.ids), number + 1)[1:-1])
        bounds = np.unique([0, *cuts, len(self.starts) - 1]).tolist()
        return list(pairwise(bounds))

    def size(self, run: tuple[int, int]) -> int:
        """How many words a run of lines holds."""
        return int(self.starts[run[1]] - self.starts[run[0]])


@dataclass(frozen=True, eq=False)
class NumberedText:
    """A text that is read: words by number, in a file on disk, and all that was counted."""

    source: Path | str
    numbers: Ids  # (N,): places in `words`
    starts: Longs  # (lines + 1,)
    words: list[str]
    print_of: Fingerprint

    def fingerprint(self) -> Fingerprint:
        """By what to know the text again."""
        return self.print_of

    def vocabulary(self, tokens: EmbedTokens) -> Words:
        """The words to learn, the most frequent first, ties by spelling."""
        counts = self._counts()
        enough = np.flatnonzero(counts >= tokens.min_count).tolist()
        alphabetic = np.array(sorted(enough, key=self.words.__getitem__), dtype=np.int64)
        order = np.argsort(-counts[alphabetic], kind="stable")
        kept = alphabetic[order][: tokens.max_size].tolist()
        if len(kept) < 2:
            raise DataError(
                self.source,
                f"has {len(kept)} words that come {tokens.min_count} times or more, but there must "
                "be at least 2 to tell apart. Give more text, or lower tokens.min_count.",
            )
        return Words([self.words[k] for k in kept], counts[kept])

    def _counts(self) -> Longs:
        counts = np.zeros(len(self.words), dtype=np.int64)
        for _, block in _blocks(self.numbers, WORDS_AT_ONCE):
            counts += np.bincount(block, minlength=len(self.words))
        return counts

    def encoded(self, words: Sequence[str]) -> Corpus:
        """The text in ids of these words, in a file of their own."""
        places = {word: number for number, word in enumerate(words)}
        ids = np.array([places.get(word, -1) for word in self.words], dtype=np.int32)
        starts = np.zeros_like(self.starts)

        def pieces() -> Iterator[Ids]:
            done = last = 0
            for at, block in _blocks(self.numbers, IN_CACHE):
                found = ids[block]
                known = found >= 0
                before = np.zeros(len(block) + 1, dtype=np.int32)
                np.cumsum(known, out=before[1:])
                first, last = np.searchsorted(self.starts, [at, at + len(block)])
                starts[first:last] = done + before[self.starts[first:last] - at]
                done += int(before[-1])
                yield found[known]
            starts[last:] = done

        return Corpus(ON_DISK.joined(pieces(), np.int32), _cut_long(starts))


def read_text(source: Source, tokens: EmbedTokens) -> NumberedText:
    """The words of a file, of all files of a folder, or of standard input, numbered on the way."""
    reader = NumberedWords(tokens.splitter, lowercase=tokens.lowercase)
    sources = _files(source)
    blocks = TrackedBlocks(chain.from_iterable(map(_blocks_of, sources)))
    coming = one_ahead(blocks) if all(each.is_file for each in sources) else blocks
    lengths: list[Longs] = [np.zeros(1, np.int64)]

    def pieces() -> Iterator[Ids]:
        for numbers, words_of_lines in reader.pieces(coming):
            lengths.append(words_of_lines)
            yield numbers

    numbers = ON_DISK.joined(pieces(), np.int32)
    if not len(numbers):
        raise DataError(source.path, "holds no word, but there must be some to learn from.")
    starts = np.cumsum(np.concatenate(lengths))
    return NumberedText(source.path, numbers, starts, reader.words(), blocks.fingerprint())


def _files(source: Source) -> list[Source]:
    """The source itself, or the files of a folder in the order of their names."""
    path = Path(source.path)
    if not path.is_dir():
        return [source]
    files = sorted(file for file in path.iterdir() if file.is_file() and file.name[0] != ".")
    if not files:
        raise DataError(path, "is a folder without files, but there must be text to read.")
    return [Source(file, source.encoding) for file in files]


def _blocks_of(source: Source) -> Iterator[bytes]:
    return read_utf8_blocks(source.path, encoding=source.encoding)


def _cut_long(starts: Longs) -> Longs:
    """The starts with more where a line is long: a text may be one line."""
    more = [
        np.arange(starts[line] + LONGEST, starts[line + 1], LONGEST)
        for line in np.flatnonzero(np.diff(starts) > LONGEST)
    ]
    return np.sort(np.concatenate([starts, *more])) if more else starts


def _blocks(numbers: Ids, size: int) -> Iterator[tuple[int, Ids]]:
    """So many numbers at a time, and where they begin."""
    for start in range(0, len(numbers), size):
        yield start, numbers[start : start + size]
