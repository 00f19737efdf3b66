"""Which format a file is written in: told by its name, else by its first lines, here alone.

text       a text a line
csv        cells with a comma, semicolon, tab or bar between them, quoted as spreadsheets do
tsv        cells with a tab between them
jsonl      an object a line                    json      one array of objects
fasttext   __label__NAME text                  conllu    ten columns, a word a line
columns    a word a line, blank lines between sentences
trees      bracketed trees, one a line or over several
"""

import csv
import json
import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple, get_args

from unrolled.config.data import Format
from unrolled.errors import ConfigError, shown
from unrolled.text.conll import CONLLU_NOTE, DOCUMENT, is_conllu_like
from unrolled.text.names import TEXT_NAMES

FORMATS: tuple[str, ...] = get_args(Format)
TABLES = ("csv", "tsv")
ENDINGS = {
    ".csv": "csv",
    ".tsv": "tsv",
    ".tab": "tsv",
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
    ".json": "json",
    ".conllu": "conllu",
    ".conll": "columns",
    ".iob": "columns",
    ".bio": "columns",
    ".mrg": "trees",
    ".ptb": "trees",
    ".tree": "trees",
    ".trees": "trees",
}
PACKED = (".gz", ".xz")
SEPARATORS = (",", ";", "\t", "|")
LABEL_MARK = "__label__"
HEAD = 200  # lines that a file's format is told by
FEW = 5  # lines of words that tell columns from text
MAX_CELL = 1 << 28  # characters
QUOTED = re.compile(r'"(?:[^"]|"")*"')


class Layout(NamedTuple):
    """A format and, of a table, what parts its cells."""

    format: str
    separator: str = "\t"
    quoted: bool = False

    @property
    def is_table(self) -> bool:
        """Whether it has rows of cells."""
        return self.format in TABLES


def recognise(
    head: Sequence[str],
    *,
    name: Path | str,
    among: Collection[str] = FORMATS,
    otherwise: str = "text",
    wanted: str | None = None,
) -> Layout:
    """The layout of a file of this name and these first lines, of the formats `among`.

    `wanted` is what the user says it is; `otherwise` what it is if nothing tells.
    """
    if wanted is not None and wanted not in among:
        raise ConfigError(
            f"data.format is {shown(wanted)}, but here it must be one of "
            f"{', '.join(sorted(among))}."
        )
    found = wanted or ENDINGS.get(ending(name))
    if found == "json" and not wanted and not _first(head).startswith("["):
        found = "jsonl"
    if found not in among:
        found = next((f for f in _by_content(head) if f in among), None)
    found = found or otherwise
    if found == "csv":
        return Layout("csv", best_separator(head), quoted=True)
    return Layout(found, quoted=found == "tsv" and _is_quoted(head))


def ending(name: Path | str) -> str:
    """The last part of a name that says what is in the file, in lower case."""
    parts = [suffix.lower() for suffix in Path(name).suffixes]
    return next((part for part in reversed(parts) if part not in PACKED), "")


def _first(head: Iterable[str]) -> str:
    return next((line.strip() for line in head if line.strip()), "")


def _by_content(head: Sequence[str]) -> Iterator[str]:
    """The formats that the lines look like, the surest first."""
    from unrolled.text.brackets import is_tree_like  # stands on numpy, which --help does without

    first = _first(head)
    if first.startswith("{") and _parses(first):
        yield "jsonl"
    if first == "[" or re.match(r"\[\s*\{", first):
        yield "json"
    if first.startswith(LABEL_MARK):
        yield "fasttext"
    if is_tree_like(head):
        yield "trees"
    if is_conllu_like(head) or CONLLU_NOTE.match(first):
        yield "conllu"
    if _is_columns(head):
        yield "columns"
    for separator in SEPARATORS:
        cells = next(iter(_rows([first], separator)), [])
        if len(cells) > 1 and any(cell.strip().lower() in TEXT_NAMES for cell in cells):
            yield "tsv" if separator == "\t" else "csv"
    if "\t" in first and len({line.count("\t") for line in head if line.strip()}) == 1:
        yield "tsv"


def _parses(line: str) -> bool:
    try:
        return isinstance(json.loads(line), dict)
    except (ValueError, RecursionError):
        return False


def _is_columns(head: Sequence[str]) -> bool:
    """Whether words stand one a line: equally many cells in each, and sentences between blanks."""
    if _first(head).split()[:1] == [DOCUMENT]:
        return True
    full = [len(line.split()) for line in head if line.strip()]
    gaps = len(head) - len(full) - (not head[-1].strip() if head else 0)
    return len(full) >= FEW and gaps > 0 and len(set(full)) == 1 and full[0] > 1


def best_separator(head: Sequence[str]) -> str:
    """The separator by which the most rows have equally many cells, two or more."""
    shares = {separator: _regular(_rows(head, separator)) for separator in SEPARATORS}
    return max(SEPARATORS, key=lambda separator: shares[separator])


def _is_quoted(head: Sequence[str]) -> bool:
    """Whether cells between tabs are quoted: only so are rows regular, or quotes are doubled."""
    plain = [line.split("\t") for line in head if line.strip()]
    cells = [cell for row in plain for cell in row if cell.startswith('"')]
    if not cells or _regular(_rows(head, "\t")) < 1.0:
        return False
    doubled = any('""' in cell[1:-1] for cell in cells)
    return (doubled and all(map(QUOTED.fullmatch, cells))) or _regular(plain) < 1.0


def _rows(head: Sequence[str], separator: str) -> list[list[str]]:
    """The quoted rows of a file's first lines, but for one that may go on behind them."""
    csv.field_size_limit(MAX_CELL)
    reader = csv.reader((f"{line}\n" for line in head), delimiter=separator)
    try:
        rows = [row for row in reader if any(cell.strip() for cell in row)]
    except csv.Error:
        return []
    return rows[:-1] if len(head) >= HEAD else rows


def _regular(rows: Sequence[Sequence[str]]) -> float:
    """The share of rows that have the commonest number of cells, if that is two or more."""
    widths = Counter(map(len, rows))
    width, count = max(widths.items(), key=lambda item: (item[1], item[0]), default=(0, 0))
    return count / widths.total() if width > 1 else 0.0
