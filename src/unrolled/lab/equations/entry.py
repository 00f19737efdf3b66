"""One equation, claim or erratum of the notes: what it says, and what shows it.

A theme is a book of entries; an entry stands right above the few lines that check it:

    @book.equation("F4", "000 eq 25–36", "∂ŷ_k/∂q_l = ŷ_k (δ_kl − ŷ_l)", tex=…, code=…)
    def softmax_jacobian() -> Off: …

A check measures how far the two sides are apart. An erratum measures both forms: the corrected one
must agree, the printed one must not.
"""

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

FAR = 1e-3  # a printed form that is nearer than this would not be wrong
TIGHT = 1e-9  # by arithmetic alone
DIFFERENCES = 1e-6  # by finite differences

KINDS = {"M": "mathematics", "S": "shape or index", "T": "text", "C": "claim"}
NOTES = {
    "000": "Recurrent Neural Networks (M. Ş. Bilici)",
    "001": "Recurrent networks, slides of CS60020 (S. Bhattacharya)",
    "002": "CS224n notes, part V",
    "003": "Sequence Models (Ji Yang after A. Ng)",
    "004": "RNNs and Language Models, slides (M. T. Pilehvar)",
}


class Off(NamedTuple):
    """How far each form is from the truth: 0 is exactly right."""

    correct: float
    printed: float | None = None
    seen: str = ""  # the numbers, in words


Check = Callable[[], Off]


@dataclass(frozen=True)
class Entry:
    """What a note says, and where; for an erratum, what it should say."""

    id: str
    place: str  # "000 eq 25–36; 002 eq 7"
    says: str  # as it is right
    tex: str = ""
    code: str = ""  # what of the package computes it
    how: str = ""  # the kind of check
    within: float = TIGHT
    kind: str = ""  # of an erratum
    printed: str = ""
    printed_tex: str = ""
    rows: tuple[str, ...] = ()  # other rows that it shows
    check: Check | None = None

    @property
    def notes(self) -> tuple[str, ...]:
        """The notes it is from."""
        return tuple(note for note in NOTES if note in self.place)

    def result(self) -> "Result":
        """Run the check."""
        begun = time.perf_counter()
        off = self.check() if self.check else None
        return Result(self, off, time.perf_counter() - begun)


class Result(NamedTuple):
    """What a check found."""

    entry: Entry
    off: Off | None
    seconds: float

    @property
    def holds(self) -> bool:
        """Whether the right form is right and, where one is printed that is wrong, that is wrong.

        A NaN holds nothing.
        """
        if self.off is None:
            return True
        wrong = self.off.printed is None or self.off.printed > FAR
        return self.off.correct <= self.entry.within and wrong

    @property
    def verdict(self) -> str:
        """In a word."""
        if self.off is None:
            return "stated"
        return "holds" if self.holds else "FAILS"


@dataclass
class Book:
    """The entries of a theme, in the order of the notes."""

    title: str
    entries: list[Entry] = field(default_factory=list)

    def __iter__(self) -> Iterator[Entry]:
        return iter(self.entries)

    def equation(
        self,
        id: str,
        place: str,
        says: str,
        *,
        tex: str,
        code: str,
        how: str = "identity",
        within: float = TIGHT,
        rows: tuple[str, ...] = (),
    ) -> Callable[[Check], Check]:
        """The decorated function checks the equation."""

        def kept(check: Check) -> Check:
            entry = Entry(id, place, says, tex, code, how, within, rows=rows, check=check)
            self.entries.append(entry)
            return check

        return kept

    def erratum(
        self,
        id: str,
        place: str,
        kind: str,
        *,
        printed: str,
        says: str,
        printed_tex: str = "",
        tex: str = "",
        code: str = "",
        within: float = TIGHT,
    ) -> Callable[[Check], Check]:
        """The decorated function measures the printed form and the corrected one."""

        def kept(check: Check) -> Check:
            how = "as printed against corrected"
            entry = Entry(id, place, says, tex, code, how, within, kind, printed, printed_tex)
            self.entries.append(Entry(**{**entry.__dict__, "check": check}))
            return check

        return kept

    def remark(self, id: str, place: str, kind: str, *, printed: str, says: str) -> None:
        """An erratum of words, which no number shows."""
        self.entries.append(Entry(id, place, says, kind=kind, printed=printed))
