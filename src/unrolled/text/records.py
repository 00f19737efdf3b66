"""Records of a file as they stood, so that answers can be written beside them.

A line of text takes further columns behind a tab, a row of a table further cells, an object
further keys. What is wrong is named with file and line.
"""

import csv
import io
import json
import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from reprlib import repr as short
from typing import Any, NamedTuple, Protocol

from unrolled.errors import DataError
from unrolled.text.corpus import SURROGATE
from unrolled.text.formats import MAX_CELL, Layout

NO_SPACE = re.compile(r"\S")
DECODER = json.JSONDecoder()
Values = Mapping[str, Any]  # what an answer adds: texts, numbers, lists of either


class Record(Protocol):
    """One input as it stood in its file."""

    @property
    def line(self) -> int:
        """Where it begins, from 1."""
        ...

    def heading(self, names: Sequence[str]) -> str:
        """What stands above all records once columns of these names are added; "": nothing."""
        ...

    def beside(self, values: Values) -> str:
        """The record with values added."""
        ...

    def as_json(self) -> Any:
        """The record as plain values."""
        ...


class LineRecord(NamedTuple):
    """A line of text."""

    text: str
    line: int

    def heading(self, names: Sequence[str]) -> str:
        return ""

    def beside(self, values: Values) -> str:
        return "\t".join([self.text, *map(shown, values.values())])

    def as_json(self) -> Any:
        return self.text


class RowRecord(NamedTuple):
    """A row of a table."""

    cells: Sequence[str]
    line: int
    layout: Layout
    header: Sequence[str] | None = None

    def heading(self, names: Sequence[str]) -> str:
        return "" if self.header is None else joined([*self.header, *names], self.layout)

    def beside(self, values: Values) -> str:
        return joined([*self.cells, *map(shown, values.values())], self.layout)

    def as_json(self) -> Any:
        if self.header is None:
            return list(self.cells)
        return dict(zip(self.header, self.cells, strict=False))


class ObjectRecord(NamedTuple):
    """An object of a JSON file."""

    value: Mapping[str, Any]
    line: int

    def heading(self, names: Sequence[str]) -> str:
        return ""

    def beside(self, values: Values) -> str:
        return json.dumps({**self.value, **_without_infinity(values)}, ensure_ascii=False)

    def as_json(self) -> Any:
        return dict(self.value)


def shown(value: Any) -> str:
    """A value as a cell."""
    if isinstance(value, list | tuple):
        return " ".join(map(shown, value))
    return f"{value:.4f}" if isinstance(value, float) else str(value)


def joined(cells: Sequence[str], layout: Layout) -> str:
    """A row as its table has it; a tab or a line end inside plain cells becomes a space."""
    if not layout.quoted:
        return layout.separator.join(
            " ".join(cell.splitlines()).replace("\t", " ") for cell in cells
        )
    line = io.StringIO()
    csv.writer(line, delimiter=layout.separator).writerow(cells)  # quotes what ends a line, too
    return line.getvalue().removesuffix("\r\n")


def _without_infinity(values: Values) -> dict[str, Any]:
    return {
        name: None if isinstance(value, float) and not math.isfinite(value) else value
        for name, value in values.items()
    }


def table_rows(
    lines: Iterable[str], layout: Layout, *, source: Path | str
) -> Iterator[tuple[int, list[str]]]:
    """The rows of a table that are not blank, each with the line that it begins in."""
    if not layout.quoted:
        for number, line in enumerate(lines, 1):
            if line.strip():
                yield number, line.split(layout.separator)
        return
    csv.field_size_limit(MAX_CELL)
    reader = csv.reader((f"{line}\n" for line in lines), delimiter=layout.separator, strict=True)
    begin = 1  # where a row begins: reader.line_num is where it ends
    try:
        for row in reader:
            if any(cell.strip() for cell in row):
                yield begin, row
            begin = reader.line_num + 1
    except csv.Error as error:
        raise DataError(
            source,
            f"the row that begins here is not valid CSV ({error}); check its quotes, or write "
            "label, tab and text on each line and name the file .tsv.",
            line=begin,
        ) from error


def json_objects(
    lines: Iterable[str], layout: Layout, *, source: Path | str
) -> Iterator[tuple[int, dict[str, Any]]]:
    """The objects of a file of one a line, or of one array, each with its line."""
    written = _array(lines, source) if layout.format == "json" else _by_line(lines)
    for line, text in written:
        try:
            value = json.loads(text)
        except (ValueError, RecursionError) as error:
            raise DataError(source, f"is not valid JSON: {error}.", line=line) from error
        if not isinstance(value, dict):
            raise DataError(
                source, f"holds {short(value)}, but must be an object: {{…}}.", line=line
            )
        if "\\u" in text and SURROGATE.search(json.dumps(value, ensure_ascii=False)):
            raise DataError(
                source,
                r"holds half of a character (a lone surrogate such as \ud800), so it is no text. "
                "Write the character whole.",
                line=line,
            )
        yield line, value


def _by_line(lines: Iterable[str]) -> Iterator[tuple[int, str]]:
    return ((number, line) for number, line in enumerate(lines, 1) if line.strip())


def _array(lines: Iterable[str], source: Path | str) -> Iterator[tuple[int, str]]:
    """The items of an array as they are written, each with its line."""
    text = _Position("\n".join(lines), source)
    text.take("[")
    if text.skip() == "]":
        text.take("]")
    else:
        yield text.item()
        while text.take(",]") == ",":
            yield text.item()
    if text.skip():
        raise text.error("there is more behind the end of the array")


class _Position:
    """A place in a JSON text, and its line."""

    def __init__(self, text: str, source: Path | str) -> None:
        self.text, self.source, self.place, self.line = text, source, 0, 1

    def error(self, problem: object) -> DataError:
        return DataError(self.source, f"is not valid JSON: {problem}.", line=self.line)

    def step(self, to: int) -> None:
        self.line += self.text.count("\n", self.place, to)
        self.place = to

    def skip(self) -> str:
        """The next character that is no white space; "" at the end."""
        found = NO_SPACE.search(self.text, self.place)
        self.step(found.start() if found else len(self.text))
        return found[0] if found else ""

    def take(self, expected: str) -> str:
        """Step over the next character, which must be one of these."""
        found = self.skip()
        if not found or found not in expected:
            raise self.error(f"{' or '.join(expected)} is missing here")
        self.step(self.place + 1)
        return found

    def item(self) -> tuple[int, str]:
        """The value that begins here, as it is written."""
        self.skip()
        begin, line = self.place, self.line
        try:
            _, end = DECODER.raw_decode(self.text, begin)
        except (ValueError, RecursionError) as error:
            raise self.error(error) from error
        self.step(end)
        return line, self.text[begin:end]
