"""Labelled texts: read, split, and encoded for a model."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Self

import numpy as np
from numpy.typing import NDArray

from unrolled.config.data import LabelledTexts
from unrolled.errors import DataError
from unrolled.tasks.classify.reader import EncodedTexts, TextReader
from unrolled.text.holdout import draw_stratified
from unrolled.text.labelled import Example, read_labelled
from unrolled.text.labels import Labels, Targets
from unrolled.text.source import Fingerprint, Source


@dataclass(frozen=True, eq=False)
class Examples:
    """Labelled texts of a source."""

    examples: Sequence[Example]
    source: Path | str
    known_by: Fingerprint
    columns: tuple[str, str] | None = None  # of text and label in the file, where there are any

    @classmethod
    def read(cls, source: Source, data: LabelledTexts) -> Self:
        """All examples of a file."""
        lines = source.lines()
        examples, columns = read_labelled(lines, source=source.path, data=data)
        return cls(examples, source.path, lines.fingerprint(), columns)

    def fingerprint(self) -> Fingerprint:
        """By what to know the file again."""
        return self.known_by

    def split(self, share: float, seed: int) -> tuple[Self, Self]:
        """Draw a share of the examples, the same of each label."""
        labels = [example.labels[:1] for example in self.examples]
        held_out = draw_stratified(labels, share, seed)
        if not held_out:
            raise DataError(
                self.source,
                f"holds {len(self.examples)} examples, no two of one label, so none can be kept "
                "for development. Give more, or name --dev.",
            )
        drawn = set(held_out)
        kept = [e for number, e in enumerate(self.examples) if number not in drawn]
        dev = [self.examples[number] for number in held_out]
        return replace(self, examples=kept), replace(self, examples=dev)


@dataclass(frozen=True, eq=False)
class LabelledData:
    """Texts to train or evaluate on, encoded once, and their labels."""

    encoded: EncodedTexts
    targets: Targets
    unseen: tuple[str, ...] = ()  # labels that the training data do not have

    @classmethod
    def of(cls, labels: Labels, reader: TextReader, data: Examples) -> Self:
        """Made ready for a model of these labels; errors name the source."""
        targets = labels.targets(data.examples, source=data.source)
        texts = [example.text for example in data.examples]
        lines = [example.line for example in data.examples]
        encoded = reader.encode(texts, source=data.source, lines=lines)
        return cls(encoded, targets, labels.unseen(data.examples))

    @property
    def of_unseen(self) -> NDArray[np.bool_]:
        """Which texts have a label that the training data do not have: (N,)."""
        if self.targets.ndim == 2:
            first = self.targets.shape[1] - len(self.unseen)
            return np.asarray(self.targets[:, first:].any(axis=1))
        known = int(self.targets.max(initial=0)) + 1 - len(self.unseen)
        return (
            np.asarray(self.targets >= known) if self.unseen else np.zeros(len(self.encoded), bool)
        )
