"""Labelled texts: one example a line, as columns or as JSON.

label<TAB>text              any file that is neither of the next two
label,text                  .csv: quoted as spreadsheets do, so a text may hold line ends
{"label": …, "text": …}     .jsonl; or {"labels": […], "text": …}

A first row that names a column `text` and a column `label` or `labels` is a header: the columns may
then stand in any order, with others beside them. Several labels of a text are parted by "|", or are
a JSON list, which may be empty. White space around a label is dropped, white space inside it is
kept. Blank lines are passed over; an empty text is an example like any other.
"""

import csv
import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from reprlib import repr as short
from typing import Any, NamedTuple

from unrolled.errors import DataError

LABEL_NAMES = ("label", "labels")
TEXT_NAME = "text"
BETWEEN = "|"  # parts the labels of one text
PACKED = (".gz", ".xz")
Row = tuple[int, list[str]]  # line number, columns


class Example(NamedTuple):
    """A text and its labels."""

    labels: tuple[str, ...]
    text: str
    line: int  # where it stands in its file, from 1


def read_examples(lines: Iterable[str], *, source: Path | str) -> list[Example]:
    """The examples of a file's lines; its name says how they are written."""
    reader = READERS.get(_extension(source), _read_columns)
    examples = list(reader(lines, source))
    if not examples:
        raise DataError(source, "holds no example, but there must be some: label, tab, text.")
    return examples


def _extension(source: Path | str) -> str:
    parts = [suffix.lower() for suffix in Path(source).suffixes]
    return next((part for part in reversed(parts) if part not in PACKED), "")


def _read_columns(lines: Iterable[str], source: Path | str) -> Iterator[Example]:
    rows = ((n, line.split("\t")) for n, line in enumerate(lines, 1) if line.strip())
    return _from_rows(rows, source, between="a tab")


def _read_csv(lines: Iterable[str], source: Path | str) -> Iterator[Example]:
    reader = csv.reader((f"{line}\n" for line in lines), strict=True)

    def rows() -> Iterator[Row]:
        line = 1  # where a row begins: reader.line_num is where it ends
        try:
            for row in reader:
                if any(cell.strip() for cell in row):
                    yield line, row
                line = reader.line_num + 1
        except csv.Error as error:
            raise DataError(
                source,
                f"the row that begins here is not valid CSV ({error}); check its quotes, or write "
                "label, tab and text on each line and name the file .tsv.",
                line=line,
            ) from error

    return _from_rows(rows(), source, between="a comma")


def _from_rows(rows: Iterator[Row], source: Path | str, *, between: str) -> Iterator[Example]:
    label_place, text_place, columns = 0, 1, 2
    for number, (line, row) in enumerate(rows):
        if number == 0 and (places := _header(row)):
            (label_place, text_place), columns = places, len(row)
            continue
        if len(row) != columns:
            wanted = f"{columns}: the label, {between}, the text" if columns == 2 else f"{columns}"
            raise DataError(
                source,
                f"has {_columns(len(row))}, but must have {wanted}. Mend the line, or begin the "
                "file with a header that names the columns label and text.",
                line=line,
            )
        labels = _split_labels(row[label_place], source, line)
        yield Example(labels, row[text_place].strip(), line)


def _header(row: Sequence[str]) -> tuple[int, int] | None:
    """The places of label and text, if this row names them."""
    names = [cell.strip().lower() for cell in row]
    label = next((name for name in LABEL_NAMES if name in names), None)
    return (names.index(label), names.index(TEXT_NAME)) if label and TEXT_NAME in names else None


def _columns(count: int) -> str:
    return f"{count} column" if count == 1 else f"{count} columns"


def _split_labels(cell: str, source: Path | str, line: int) -> tuple[str, ...]:
    labels = [label.strip() for label in cell.split(BETWEEN)]
    if not all(labels):
        raise DataError(
            source,
            f"the label is {short(cell)}, but there must be one before the text, or several with "
            f'"{BETWEEN}" between them.',
            line=line,
        )
    return tuple(dict.fromkeys(labels))


def _read_json(lines: Iterable[str], source: Path | str) -> Iterator[Example]:
    for number, line in enumerate(lines, 1):
        if line.strip():
            value = _parsed(line, source, number)
            yield Example(_json_labels(value, source, number), value["text"].strip(), number)


def _parsed(text: str, source: Path | str, line: int) -> dict[str, Any]:
    try:
        value = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise DataError(source, f"is not valid JSON: {error}.", line=line) from error
    if not isinstance(value, dict) or not isinstance(value.get("text"), str):
        raise DataError(
            source,
            f'holds {short(value)}, but must be an object whose "text" is a string, such as '
            '{"label": "spam", "text": "…"}.',
            line=line,
        )
    return value


def _json_labels(value: dict[str, Any], source: Path | str, line: int) -> tuple[str, ...]:
    single = "label" in value
    found = [value["label"]] if single else value.get("labels")
    if single == ("labels" in value) or not isinstance(found, list):
        raise DataError(
            source,
            'must have either a "label" or a list of "labels", but has '
            f"{short({name: value[name] for name in LABEL_NAMES if name in value})}.",
            line=line,
        )
    names = [str(label).strip() if type(label) in (str, int) else "" for label in found]
    if not all(names):
        raise DataError(
            source,
            f"the label is {short(found[names.index('')])}, but must be a string that is not "
            "empty, or a whole number.",
            line=line,
        )
    return tuple(dict.fromkeys(names))


READERS: dict[str, Callable[[Iterable[str], Path | str], Iterator[Example]]] = {
    ".csv": _read_csv,
    ".jsonl": _read_json,
    ".ndjson": _read_json,
}
