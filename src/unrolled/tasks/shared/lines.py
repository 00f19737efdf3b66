"""Plain text as data: its lines, of which the last ones can be kept for development."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain, islice
from pathlib import Path
from typing import Protocol, Self, TypeVar

from unrolled.config.data import TextData
from unrolled.errors import DataError
from unrolled.text.columns import text_wanted
from unrolled.text.formats import HEAD, recognise
from unrolled.text.holdout import cut_last
from unrolled.text.source import ArrivingLines, Fingerprint, Source
from unrolled.text.texts import FORMATS as TEXT_FORMATS
from unrolled.text.texts import Texts, arriving_texts, read_texts

PLAIN = TextData()


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


def in_training(data: Mapping[str, D], texts: Callable[[D], Iterable[str]]) -> dict[str, float]:
    """How many texts of the dev and test data stand in the training data too, where some do."""
    seen = set(texts(data["train"])) if len(data) > 1 else set()
    found = {
        f"{name}_texts_in_training_data": float(sum(text in seen for text in texts(split)))
        for name, split in data.items()
        if name != "train"
    }
    return {name: count for name, count in found.items() if count}


@dataclass(frozen=True, eq=False)
class Lines:
    """The lines of a text, and where it came from."""

    lines: Sequence[str]
    source: Path | str
    known_by: Fingerprint

    @classmethod
    def read(cls, source: Source, data: TextData = PLAIN) -> Self:
        """All lines of a source, or the texts of its records."""
        passing = source.lines()
        lines = list(texts_of(passing, data, source=source.path))
        return cls(lines, source.path, passing.fingerprint())

    def fingerprint(self) -> Fingerprint:
        """By what to know the text again."""
        return self.known_by

    def split(self, share: float, seed: int) -> tuple[Self, Self]:
        """Cut off the last lines."""
        kept, held_out = cut_lines(self.lines, share, source=self.source)
        dev = replace(self, lines=held_out, source=f"{self.source} (its last lines)")
        return replace(self, lines=kept), dev


def texts_of(lines: Iterable[str], data: TextData, *, source: Path | str) -> Iterator[str]:
    """Lines as they are or, where the settings name a format or a column, the texts of records."""
    if data == PLAIN:
        yield from lines
        return
    waiting = iter(lines)
    head = list(islice(waiting, HEAD))
    layout = recognise(head, name=source, among=TEXT_FORMATS, wanted=data.format)
    found = read_texts(chain(head, waiting), layout, text_wanted(data.text_column), source=source)
    for text, _ in found:
        yield text.replace("\n", " ")


def text_records(lines: ArrivingLines, data: TextData) -> Texts:
    """The same for lines that are scored, with the records they stand in."""
    among = ("text",) if data == PLAIN else TEXT_FORMATS
    return arriving_texts(lines, text_wanted(data.text_column), among=among, written=data.format)


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
