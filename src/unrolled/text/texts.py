"""Texts of a file of any format, with the records they stand in: what a model is asked about."""

from collections.abc import Collection, Iterable, Iterator, Mapping
from itertools import chain
from pathlib import Path
from reprlib import repr as short
from typing import Any

from unrolled.errors import DataError
from unrolled.text.columns import Columns, Wanted, find, named_columns, numbered_columns
from unrolled.text.formats import HEAD, LABEL_MARK, Layout, recognise
from unrolled.text.records import (
    LineRecord,
    ObjectRecord,
    Record,
    RowRecord,
    json_objects,
    table_rows,
)
from unrolled.text.source import ArrivingLines

FORMATS = ("text", "csv", "tsv", "jsonl", "json", "fasttext")
Texts = Iterator[tuple[str, Record]]


def arriving_texts(
    lines: ArrivingLines,
    wanted: Wanted,
    *,
    among: Collection[str] = FORMATS,
    written: str | None = None,
) -> Texts:
    """Each text of an input and its record, as they come; `written` is the format if it is said."""
    layout = recognise(lines.head(HEAD), name=lines.name, among=among, wanted=written)
    return read_texts(lines, layout, wanted, source=lines.name)


def read_texts(
    lines: Iterable[str], layout: Layout, wanted: Wanted, *, source: Path | str
) -> Texts:
    """Each text and its record, as they come; `wanted` says which column of a table it is."""
    if layout.is_table:
        return _from_table(lines, layout, wanted, source)
    if layout.format in ("json", "jsonl"):
        return _from_objects(lines, layout, wanted, source)
    marked = layout.format == "fasttext"
    return (
        (unmarked(line) if marked else line, LineRecord(line, number))
        for number, line in enumerate(lines, 1)
    )


def unmarked(line: str) -> str:
    """A line of fastText's format without its labels."""
    return " ".join(word for word in line.split() if not word.startswith(LABEL_MARK))


def _from_table(lines: Iterable[str], layout: Layout, wanted: Wanted, source: Path | str) -> Texts:
    rows = table_rows(lines, layout, source=source)
    first = next(rows, None)
    if first is None:
        return
    columns = named_columns(first[1], [wanted]) or _without_header(first, wanted, source)
    (place,), width = columns.places, len(first[1])
    for line, row in chain([] if columns.header else [first], rows):
        if len(row) != width:
            raise DataError(
                source,
                f"has {len(row)} column{'s' * (len(row) != 1)}, but the first row has {width}. "
                "Mend it, or take whole lines as texts with --format text.",
                line=line,
            )
        yield row[place].strip(), RowRecord(row, line, layout, columns.header)


def _without_header(first: tuple[int, list[str]], wanted: Wanted, source: Path | str) -> Columns:
    """Without a name it is the only column or, of two, the one that training data have it in."""
    line, row = first
    if len(row) < 3 and wanted.given is None:
        return Columns((min(wanted.place, len(row) - 1),), None)
    if len(row) == 1:
        return Columns((0,), None)
    return numbered_columns([row], [wanted], source=source, line=line)


def _from_objects(
    lines: Iterable[str], layout: Layout, wanted: Wanted, source: Path | str
) -> Texts:
    key = ""
    for line, value in json_objects(lines, layout, source=source):
        key = key or json_key(value, wanted) or wanted.usual[0]
        yield json_text(value, key, source, line).strip(), ObjectRecord(value, line)


def json_key(value: Mapping[str, Any], wanted: Wanted) -> str | None:
    """The key of an object that holds what is wanted."""
    names = list(value)
    place = find(names, wanted)
    return wanted.given if place is None else names[place]


def json_text(value: Mapping[str, Any], key: str, source: Path | str, line: int) -> str:
    """The text of an object."""
    text = value.get(key)
    if not isinstance(text, str):
        raise DataError(
            source,
            f'holds {short(dict(value))}, but must be an object whose "{key}" is a string, such '
            'as {"label": "spam", "text": "…"}. Another name is said with --text-column.',
            line=line,
        )
    return text
