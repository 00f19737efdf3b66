"""Which columns of a table, or keys of objects, hold the text and the label.

They are what the settings name; else what a header usually calls them; else, without a header, the
label first and the text second, unless a longer column has more different values than the last.
"""

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from unrolled.errors import DataError, shown
from unrolled.text.names import LABEL_NAMES, TEXT_NAMES

Rows = Sequence[Sequence[str]]
LOOKED_AT = 1000  # rows by which columns are told apart
ENOUGH = 10  # rows to tell a header of unusual names by


class Wanted(NamedTuple):
    """A column that is looked for."""

    what: str  # texts, labels
    option: str  # the option that names it
    given: str | None  # its name, or its number from 1
    usual: Sequence[str]
    place: int = 0  # where it stands, from 0, in a table of two columns that has no header


class Columns(NamedTuple):
    """Where things stand in the rows of a table."""

    places: tuple[int, ...]  # from 0, of each wanted
    header: Sequence[str] | None

    def names(self) -> tuple[str, ...]:
        """What each column is called: by its name, or by its number from 1."""
        header = self.header
        return tuple(str(place + 1) if header is None else header[place] for place in self.places)


def text_wanted(given: str | None, *, place: int = 1) -> Wanted:
    """The column of texts; labels stand before them."""
    return Wanted("texts", "--text-column", given, TEXT_NAMES, place)


def label_wanted(given: str | None) -> Wanted:
    """The column of labels."""
    return Wanted("labels", "--label-column", given, LABEL_NAMES)


def named_columns(row: Sequence[str], wanted: Sequence[Wanted]) -> Columns | None:
    """The columns that a first row names, if it names all that are wanted."""
    names = [cell.strip() for cell in row]
    places = [find(names, want) for want in wanted]
    found = tuple(place for place in places if place is not None)
    if len(found) < len(wanted) or len(set(found)) < len(found):
        return None
    return Columns(found, names)


def find(names: Sequence[str], want: Wanted) -> int | None:
    """The place of a wanted column among names."""
    lower = [name.lower() for name in names]
    number = _number(want)
    if want.given is not None and number is None:
        for candidates, given in ((names, want.given), (lower, want.given.lower())):
            if given in candidates:
                return candidates.index(given)
    usual = [name for name in want.usual if name in lower]
    if number is not None:  # a header of any names: only some usual one shows that it is a header
        return number if usual and number < len(names) else None
    return lower.index(usual[0]) if usual and want.given is None else None


def _number(want: Wanted) -> int | None:
    """The place that a number names."""
    given = want.given
    is_number = given is not None and given.isascii() and given.isdigit() and len(given) < 6
    return int(given) - 1 if is_number and given and int(given) > 0 else None


def numbered_columns(
    rows: Rows, wanted: Sequence[Wanted], *, source: Path | str, line: int
) -> Columns:
    """The columns of a table without a header; `rows` are its first ones."""
    width = common_width(rows)
    guessed = _guessed(rows, width) if len(wanted) > 1 else [None]
    places = []
    for want, guess in zip(wanted, guessed, strict=True):
        number = guess if want.given is None else _number(want)
        if number is None or number >= width:
            raise DataError(
                source,
                f"{_missing(want)}, but there are {_seen(rows[0], width)}. Name the one that holds "
                f"the {want.what} with {want.option}, or its number from 1.",
                line=line,
            )
        places.append(number)
    return Columns(tuple(places), None)


def _missing(want: Wanted) -> str:
    if want.given is None:
        return f"no column is named as one of {want.what} is"
    return f"there is no column {shown(want.given)} for the {want.what}"


def _seen(row: Sequence[str], width: int) -> str:
    cells = ", ".join(repr(cell.strip()[:30]) for cell in row[:10])
    return f"{width}: {cells}" + (" …" if width > 10 else "")


def common_width(rows: Rows) -> int:
    """How many cells most rows have."""
    widths = Counter(map(len, rows))
    return max(widths, key=lambda width: (widths[width], width == len(rows[0]), width))


def _guessed(rows: Rows, width: int) -> tuple[int, int]:
    """The places of text and label in a table of two columns or more."""
    regular = [row for row in rows if len(row) == width]
    different = [len({row[place] for row in regular}) for place in range(width)]
    long = [sum(len(row[place]) for row in regular) for place in range(width)]
    if width == 2:
        label_last = 1 < different[1] < different[0] and long[1] < long[0]
        return (0, 1) if label_last else (1, 0)
    text = max(range(width), key=lambda place: long[place])
    others = [place for place in range(width) if place != text and different[place] > 1]
    label = min(others, key=lambda place: different[place], default=0 if text else 1)
    return text, label


def is_unusual_header(rows: Rows, places: Sequence[int]) -> bool:
    """Whether a first row names columns by words of its own: its label stands nowhere else, while
    every other label stands twice or more, and no cell of it is longer than a name.
    """
    label = places[1]
    first, *others = (row for row in rows if len(row) > max(places))
    labels = Counter(row[label].strip() for row in others)
    return (
        len(others) >= ENOUGH
        and first[label].strip() not in labels
        and min(labels.values()) > 1
        and len(labels) * 2 < len(others)
        and all(cell.strip() and len(cell.split()) < 3 for cell in first)
    )
