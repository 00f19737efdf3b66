"""Text to ids and back, by characters, words or byte pairs.

text ── Tokeniser ──▶ tokens ── Vocabulary ──▶ ids        TextEncoder is both in one
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol, TypeVar

import numpy as np
from numpy.typing import ArrayLike

from unrolled.config.sections import TokenSettings
from unrolled.errors import not_one_of
from unrolled.text.bpe import BpeTokeniser as BpeTokeniser
from unrolled.text.ragged import Ragged
from unrolled.text.vocabulary import END as END
from unrolled.text.vocabulary import PAD as PAD
from unrolled.text.vocabulary import SPECIALS as SPECIALS
from unrolled.text.vocabulary import START as START
from unrolled.text.vocabulary import UNK as UNK
from unrolled.text.vocabulary import Vocabulary as Vocabulary
from unrolled.text.vocabulary import one_hot as one_hot
from unrolled.text.words import CharTokeniser as CharTokeniser
from unrolled.text.words import Ids, IdsOfLines, Lengths, in_chunks
from unrolled.text.words import WordTokeniser as WordTokeniser

Parsed = TypeVar("Parsed")

LEVELS = ("char", "word", "bpe")
BPE_SIZE = 8_000  # byte pair tokens, unless max_size says otherwise
VOCABULARY_FILE, BPE_FILE = "vocab.json", "tokenizer.json"


class Tokeniser(Protocol):
    """Cuts a text into tokens and puts it together again."""

    def split(self, text: str) -> list[str]: ...
    def join(self, tokens: Sequence[str]) -> str: ...


class LineTokeniser(Tokeniser, Protocol):
    """A tokeniser that also works on many lines at once."""

    def vocabulary(
        self, lines: Sequence[str], *, min_count: int, max_size: int | None
    ) -> Vocabulary: ...
    def reader(self, vocabulary: Vocabulary) -> IdsOfLines: ...


@dataclass(frozen=True, eq=False)
class EncodedLines:
    """Lines as ids, one after the other, each closed by END."""

    rows: Ragged  # one after the other
    characters: int  # of the lines as they were given, and one for each line's end

    def __len__(self) -> int:
        return len(self.rows)

    @property
    def ids(self) -> Ids:
        """(N,)"""
        return self.rows.values

    @property
    def starts(self) -> Lengths:
        """Where in ids each line begins: (lines,)."""
        return self.rows.starts

    @property
    def lengths(self) -> Lengths:
        """How many ids each line has, its END counted: (lines,)."""
        return self.rows.lengths

    @property
    def unknown(self) -> int:
        """How many ids are UNK."""
        return int(np.count_nonzero(self.ids == UNK))


class TextEncoder:
    """A tokeniser and its vocabulary: what a model needs to read and write text."""

    def __init__(
        self,
        tokeniser: LineTokeniser,
        vocabulary: Vocabulary,
        *,
        level: str,
        splitter: str = "space",
        lowercase: bool = False,
    ) -> None:
        self.tokeniser, self.vocabulary = tokeniser, vocabulary
        self.level, self.splitter, self.lowercase = level, splitter, lowercase
        self._ids_of = tokeniser.reader(vocabulary)

    @classmethod
    def build(
        cls,
        lines: Iterable[str],
        *,
        level: str,
        splitter: str = "space",
        lowercase: bool = False,
        min_count: int = 1,
        max_size: int | None = None,
    ) -> "TextEncoder":
        """Learn from lines, which are kept in memory if they are not a sequence.

        At level "bpe", `max_size` is how many tokens to learn and `min_count` how often a pair must
        occur to become one.
        """
        text = lines if isinstance(lines, Sequence) else list(lines)
        if lowercase:
            text = [line.lower() for line in text]
        tokeniser: LineTokeniser
        if level == "bpe":
            size = BPE_SIZE if max_size is None else max_size
            tokeniser = BpeTokeniser.train(text, size, min_count=min_count)
        else:
            tokeniser = _ready_tokeniser(level, splitter)
        vocabulary = tokeniser.vocabulary(text, min_count=min_count, max_size=max_size)
        return cls(tokeniser, vocabulary, level=level, splitter=splitter, lowercase=lowercase)

    def split(self, text: str) -> list[str]:
        """The tokens of a text, whether they are in the vocabulary or not."""
        return self.tokeniser.split(text.lower() if self.lowercase else text)

    @classmethod
    def learn(cls, lines: Iterable[str], settings: TokenSettings) -> "TextEncoder":
        """What the settings ask for, learned from lines."""
        return cls.build(
            lines,
            level=settings.level,
            splitter=settings.splitter,
            lowercase=settings.lowercase,
            min_count=settings.min_count,
            max_size=settings.max_size,
        )

    def encode(self, text: str) -> Ids:
        """The ids (N,) of a text, no special token added."""
        return self._ids_of([text.lower() if self.lowercase else text])[0]

    def encode_lines(self, lines: Iterable[str]) -> EncodedLines:
        """The ids of many lines, END after each."""
        ids, lengths, characters = [np.zeros(0, np.int32)], [np.zeros(0, np.int64)], 0
        for chunk in in_chunks(lines):
            characters += sum(map(len, chunk)) + len(chunk)
            read = [line.lower() for line in chunk] if self.lowercase else chunk
            chunk_ids, chunk_lengths = self._ids_of(read)
            ids.append(np.insert(chunk_ids, np.cumsum(chunk_lengths), np.int32(END)))
            lengths.append(chunk_lengths + 1)
        rows = Ragged.joined(np.concatenate(ids), np.concatenate(lengths))
        return EncodedLines(rows, characters)

    def decode(self, ids: ArrayLike) -> str:
        """The text of ids (N,): END is a line's end, PAD and START are nothing."""
        lines: list[list[str]] = [[]]
        for token in self.vocabulary.decode(ids):
            if token == SPECIALS[END]:
                lines.append([])
            elif token not in (SPECIALS[PAD], SPECIALS[START]):
                lines[-1].append(token)
        return "\n".join(map(self.tokeniser.join, lines))

    def shown(self, ids: ArrayLike) -> list[str]:
        """Each of ids (N,) as people read it: of byte pairs their text, a space before a word."""
        tokens = self.vocabulary.decode(ids)
        if self.level != "bpe":
            return tokens
        return [t if t in SPECIALS else self.tokeniser.join([t]) for t in tokens]

    def files(self) -> dict[str, bytes]:
        """What `from_files` needs, by file name."""
        files = {VOCABULARY_FILE: self.vocabulary.to_json().encode()}
        if isinstance(self.tokeniser, BpeTokeniser):
            files[BPE_FILE] = self.tokeniser.to_json().encode()
        return files

    @classmethod
    def from_files(
        cls, files: Mapping[str, bytes], *, level: str, splitter: str, lowercase: bool
    ) -> "TextEncoder":
        """What `files` gave; ValueError with the file and the reason if anything is wrong."""
        vocabulary = _parsed(files, VOCABULARY_FILE, Vocabulary.from_json)
        tokeniser: LineTokeniser
        if level == "bpe":
            tokeniser = _parsed(files, BPE_FILE, BpeTokeniser.from_json)
        else:
            tokeniser = _ready_tokeniser(level, splitter)
        return cls(tokeniser, vocabulary, level=level, splitter=splitter, lowercase=lowercase)


def _ready_tokeniser(level: str, splitter: str) -> LineTokeniser:
    """A tokeniser that has nothing to learn."""
    if level not in LEVELS:
        raise not_one_of("tokens.level", level, LEVELS)
    return CharTokeniser() if level == "char" else WordTokeniser(splitter)


def _parsed(files: Mapping[str, bytes], name: str, parse: Callable[[str], Parsed]) -> Parsed:
    if name not in files:
        raise ValueError(f"{name} is missing")
    try:
        return parse(files[name].decode())
    except ValueError as error:
        raise ValueError(f"{name}: {error}") from error
