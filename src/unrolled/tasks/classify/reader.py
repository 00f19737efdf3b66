"""Texts as a classifier reads them: tokens, their characters if it wants them, and batches.

A text is its tokens alone; an empty one is a single token, its end, so that nothing is left out.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from unrolled.errors import DataError
from unrolled.tasks.classify.settings import ClassifyRun
from unrolled.text.buckets import Buckets, Places
from unrolled.text.labels import Targets
from unrolled.text.ragged import Ragged
from unrolled.text.tokens import END, SPECIALS, UNK, TextEncoder, Vocabulary
from unrolled.text.word_batch import WordBatch, WordBatches
from unrolled.text.word_encoder import EncodedWords, WordEncoder
from unrolled.text.words import JOINER, Ids, Lengths, WordTokeniser

MAX_TOKENS = 20_000  # of one text


@dataclass(frozen=True, eq=False)
class EncodedTexts:
    """Texts as ids, one after the other; where characters are read, `spelled` holds the same."""

    rows: Ragged  # each of 1 token or more
    spelled: EncodedWords | None = None
    cut: NDArray[np.bool_] | None = None  # (texts,) those of which only the beginning is here

    def __len__(self) -> int:
        return len(self.rows)

    @property
    def ids(self) -> Ids:
        """(N,), and between texts what belongs to none."""
        return self.rows.values

    @property
    def lengths(self) -> Lengths:
        """Tokens of each text: (texts,)."""
        return self.rows.lengths

    @property
    def tokens(self) -> int:
        """How many tokens there are."""
        return int(self.lengths.sum())

    @property
    def unknown(self) -> int:
        """How many of them are outside the vocabulary."""
        return int(np.count_nonzero(self.ids == UNK))


class TextReader(Protocol):
    """A tokeniser and its vocabularies."""

    @property
    def vocabulary(self) -> Vocabulary:
        """Of tokens."""
        ...

    @property
    def character_count(self) -> int:
        """How many characters of words are told apart; 0 where none is read."""
        ...

    def encode(
        self,
        texts: Sequence[str],
        *,
        source: Path | str = "<texts>",
        lines: Sequence[int] | None = None,
        cut: bool = False,
    ) -> EncodedTexts:
        """The ids of texts; one beyond all measure is refused by its source and line, or cut."""
        ...

    def shown(self, text: str) -> list[str]:
        """The tokens of a text, for people to read: as many as it has ids."""
        ...

    def files(self) -> dict[str, bytes]:
        """What `reader_from_files` needs, by file name."""
        ...


class PlainReader:
    """Characters, words or byte pairs."""

    character_count = 0

    def __init__(self, encoder: TextEncoder) -> None:
        self.encoder = encoder

    @property
    def vocabulary(self) -> Vocabulary:
        return self.encoder.vocabulary

    def encode(
        self,
        texts: Sequence[str],
        *,
        source: Path | str = "<texts>",
        lines: Sequence[int] | None = None,
        cut: bool = False,
    ) -> EncodedTexts:
        encoded = self.encoder.encode_lines(texts)
        lengths = np.maximum(encoded.lengths - 1, 1)  # the end is left out, but of an empty text
        if not cut:
            _check_lengths(lengths, source, lines)
        shorter = np.minimum(lengths, MAX_TOKENS)
        return EncodedTexts(Ragged(encoded.ids, encoded.starts, shorter), cut=lengths > MAX_TOKENS)

    def shown(self, text: str) -> list[str]:
        tokeniser = self.encoder.tokeniser
        tokens = tokeniser.split(text.lower() if self.encoder.lowercase else text)
        if self.encoder.level == "bpe":
            tokens = [tokeniser.join([token]) for token in tokens]
        return _readable(tokens)

    def files(self) -> dict[str, bytes]:
        return self.encoder.files()


class SpellingReader:
    """Words with their characters."""

    def __init__(self, encoder: WordEncoder, splitter: str) -> None:
        self.encoder, self._tokeniser = encoder, WordTokeniser(splitter)

    @property
    def vocabulary(self) -> Vocabulary:
        return self.encoder.words

    @property
    def character_count(self) -> int:
        return len(self.encoder.characters)

    def encode(
        self,
        texts: Sequence[str],
        *,
        source: Path | str = "<texts>",
        lines: Sequence[int] | None = None,
        cut: bool = False,
    ) -> EncodedTexts:
        words = [self._tokeniser.split(text) or [SPECIALS[END]] for text in texts]
        lengths = np.array([len(each) for each in words], dtype=np.int64)
        if not cut:
            _check_lengths(lengths, source, lines)
        encoded = self.encoder.encode([each[:MAX_TOKENS] for each in words])
        rows = Ragged.joined(encoded.words, encoded.lengths)
        return EncodedTexts(rows, encoded, cut=lengths > MAX_TOKENS)

    def shown(self, text: str) -> list[str]:
        return _readable(self._tokeniser.split(text))

    def files(self) -> dict[str, bytes]:
        return self.encoder.files()


def build_reader(settings: ClassifyRun, texts: Sequence[str]) -> TextReader:
    """Learn the vocabulary of training texts."""
    tokens = settings.tokens
    if settings.model.characters != "none":
        words = WordEncoder.build(
            map(WordTokeniser(tokens.splitter).split, texts),
            lowercase=tokens.lowercase,
            min_count=tokens.min_count,
            max_size=tokens.max_size,
        )
        return SpellingReader(words, tokens.splitter)
    return PlainReader(TextEncoder.learn(texts, tokens))


def reader_from_files(settings: ClassifyRun, files: Mapping[str, bytes]) -> TextReader:
    """What `files` gave; ValueError with the file and the reason if anything is wrong."""
    tokens = settings.tokens
    if settings.model.characters != "none":
        words = WordEncoder.from_files(files, lowercase=tokens.lowercase, zero_digits=False)
        return SpellingReader(words, tokens.splitter)
    encoder = TextEncoder.from_files(
        files, level=tokens.level, splitter=tokens.splitter, lowercase=tokens.lowercase
    )
    return PlainReader(encoder)


class TextBatches(Buckets[WordBatch]):
    """Texts of similar length in each batch, at most `batch_tokens` places."""

    def __init__(self, encoded: EncodedTexts, *, batch_tokens: int) -> None:
        super().__init__(encoded.lengths, batch_tokens=batch_tokens)
        self.encoded = encoded
        self._spelled = (
            WordBatches(encoded.spelled, batch_tokens=batch_tokens) if encoded.spelled else None
        )

    def build(self, rows: Places) -> WordBatch:
        if self._spelled is not None:
            return self._spelled.build(rows)
        words, lengths = self.encoded.rows.padded(rows), torch.from_numpy(self.lengths[rows])
        nothing = torch.zeros(0, 1, dtype=torch.long)
        index = torch.zeros(words.shape, dtype=torch.long)
        return WordBatch(torch.from_numpy(words), lengths, nothing, nothing[:, 0], index)


@dataclass(frozen=True)
class LabelledBatch:
    """Texts and what to say of them."""

    texts: WordBatch
    targets: Tensor  # (B,) which label, or (B, K) of 0 and 1


class LabelledBatches(Buckets[LabelledBatch]):
    """The same with their labels."""

    def __init__(self, encoded: EncodedTexts, targets: Targets, *, batch_tokens: int) -> None:
        super().__init__(encoded.lengths, batch_tokens=batch_tokens)
        self._texts, self._targets = TextBatches(encoded, batch_tokens=batch_tokens), targets

    def build(self, rows: Places) -> LabelledBatch:
        return LabelledBatch(self._texts.build(rows), torch.from_numpy(self._targets[rows]))


def _readable(tokens: Sequence[str]) -> list[str]:
    """Tokens without the mark that no white space precedes them; the end of an empty text."""
    plain = [token[1:] if token[:1] == JOINER and len(token) > 1 else token for token in tokens]
    return plain or [SPECIALS[END]]


def _check_lengths(lengths: Lengths, source: Path | str, lines: Sequence[int] | None) -> None:
    if len(lengths) and lengths.max() > MAX_TOKENS:
        longest = int(lengths.argmax())
        raise DataError(
            source,
            f"the text has {lengths[longest]} tokens, but may have at most {MAX_TOKENS}. Cut it "
            "into parts.",
            line=lines[longest] if lines else longest + 1,
        )
