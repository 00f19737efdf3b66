"""Plain text as data: its lines, of which the last ones can be kept for development."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Protocol, Self, TypeVar

from unrolled.errors import DataError
from unrolled.text.holdout import cut_last
from unrolled.text.source import Fingerprint, Source


class Splittable(Protocol):
    """Data of which some can be kept for development."""

    def split(self, share: float, seed: int) -> tuple[Self, Self]:
        """What to learn from, and what is kept."""
        ...


D = TypeVar("D", bound=Splittable)


def with_dev(data: Mapping[str, D], share: float, seed: int) -> dict[str, D]:
    """The data with a dev split: the one that was given, or some of the training data."""
    if "dev" in data:
        return dict(data)
    train, dev = data["train"].split(share, seed)
    return {**data, "train": train, "dev": dev}


@dataclass(frozen=True, eq=False)
class Lines:
    """The lines of a text, and where it came from."""

    lines: Sequence[str]
    source: Path | str
    known_by: Fingerprint

    @classmethod
    def read(cls, source: Source) -> Self:
        """All lines of a source."""
        passing = source.lines()
        lines = list(passing)
        return cls(lines, source.path, passing.fingerprint())

    def fingerprint(self) -> Fingerprint:
        """By what to know the text again."""
        return self.known_by

    def split(self, share: float, seed: int) -> tuple[Self, Self]:
        """Cut off the last lines."""
        kept, held_out = cut_lines(self.lines, share, source=self.source)
        dev = replace(self, lines=held_out, source=f"{self.source} (its last lines)")
        return replace(self, lines=kept), dev


def cut_lines(
    lines: Sequence[str], share: float, *, source: Path | str
) -> tuple[Sequence[str], Sequence[str]]:
    """Cut off the last share of the lines; a single line is cut within, at a space if it can be."""
    if len(lines) > 1:
        return cut_last(lines, share)
    text = lines[0] if lines else ""
    place = round(len(text) * (1.0 - share))
    place = text.rfind(" ", 0, place + 1) if " " in text[:place] else place
    head, tail = text[:place].rstrip(), text[place:].strip()
    if not head or not tail:
        raise DataError(
            source, "holds too little text to keep some for development. Give more, or name --dev."
        )
    return [head], [tail]
