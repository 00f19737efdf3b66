"""Tagged sentences: read, split, and encoded for a model."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Self

import numpy as np
from numpy.typing import NDArray

from unrolled.config.data import TaggedWords
from unrolled.errors import DataError
from unrolled.text.conll import TaggedSentence, read_tagged
from unrolled.text.holdout import cut_last
from unrolled.text.source import Fingerprint, Source
from unrolled.text.word_encoder import EncodedWords


@dataclass(frozen=True, eq=False)
class Sentences:
    """Tagged sentences of a source."""

    sentences: Sequence[TaggedSentence]
    source: Path | str
    known_by: Fingerprint
    encoding: str = "utf-8"

    @classmethod
    def read(cls, source: Source, *, column: str, data: TaggedWords) -> Self:
        """All sentences of a file; `column` says which tags a CoNLL-U file gives."""
        lines = source.lines()
        sentences = read_tagged(lines, source=source.path, column=column, data=data)
        return cls(sentences, source.path, lines.fingerprint(), source.encoding)

    def fingerprint(self) -> Fingerprint:
        """By what to know the file again."""
        return self.known_by

    def split(self, share: float, seed: int) -> tuple[Self, Self]:
        """Cut off the last sentences."""
        if len(self.sentences) < 2:
            raise DataError(
                self.source,
                "sentences are held out for development, but there is "
                f"{len(self.sentences) or 'none'} to learn from. Give 2 or more, or name --dev.",
            )
        kept, dev = cut_last(self.sentences, share)
        return replace(self, sentences=kept), replace(self, sentences=dev)


@dataclass(frozen=True, eq=False)
class TaggedData:
    """Sentences to evaluate on, encoded once."""

    sentences: Sequence[TaggedSentence]
    encoded: EncodedWords
    unknown: NDArray[np.bool_]  # (N,) words outside the vocabulary
    scheme: str | None  # of the spans of these sentences

    @property
    def gold(self) -> list[list[str]]:
        """The right tags."""
        return [sentence.tags for sentence in self.sentences]
