"""Labelled texts: one example a row, as columns or as JSON; see formats.py and columns.py.

label<TAB>text              any file that is none of the next
label,text                  .csv: quoted as spreadsheets do, so a text may hold line ends
{"label": …, "text": …}     .jsonl; or {"labels": […], "text": …}; or a .json array of such
__label__NAME text          fastText's, with as many labels as there are

Several labels of a text are parted by "|", or are a JSON list, which may be empty. White space
around a label is dropped, white space inside it is kept. Blank lines are passed over; an empty text
is an example like any other.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain, islice
from pathlib import Path
from reprlib import repr as short
from typing import Any, NamedTuple

from unrolled.config.data import LabelledTexts
from unrolled.errors import DataError
from unrolled.text.columns import (
    LOOKED_AT,
    Columns,
    common_width,
    is_unusual_header,
    label_wanted,
    named_columns,
    numbered_columns,
    text_wanted,
)
from unrolled.text.formats import HEAD, LABEL_MARK, Layout, recognise
from unrolled.text.names import LABEL_NAMES
from unrolled.text.records import json_objects, table_rows
from unrolled.text.texts import json_key, json_text, unmarked

BETWEEN = "|"  # parts the labels of one text
FORMATS = ("csv", "tsv", "jsonl", "json", "fasttext")
STANDARD = (("text", "label"), ("text", "labels"), ("2", "1"))  # what needs no saying
DEFAULT = LabelledTexts()
MOST_DIFFERENT = 0.5  # labels an example, beyond which something else was read
ENOUGH = 20  # examples to say so
FEW = 10  # rows by which columns cannot be told apart


class Example(NamedTuple):
    """A text and its labels."""

    labels: tuple[str, ...]
    text: str
    line: int  # where it stands in its file, from 1


class Labelled(NamedTuple):
    """The examples of a file, and the columns that they were read from."""

    examples: Sequence[Example]
    columns: tuple[str, str] | None  # of text and label; None: there are none

    def settled(self, data: LabelledTexts) -> LabelledTexts:
        """The settings by which later files are read alike."""
        if self.columns is None or self.columns in STANDARD:
            return data
        text, label = self.columns
        return data.model_copy(update={"text_column": text, "label_column": label})


def read_examples(
    lines: Iterable[str], *, source: Path | str, data: LabelledTexts = DEFAULT
) -> list[Example]:
    """The examples of a file's lines; its name, its content and the settings say how to read."""
    return list(read_labelled(lines, source=source, data=data).examples)


def read_labelled(
    lines: Iterable[str], *, source: Path | str, data: LabelledTexts = DEFAULT
) -> Labelled:
    """The same, with where they stood."""
    waiting = iter(lines)
    head = list(islice(waiting, HEAD))
    layout = recognise(head, name=source, among=FORMATS, otherwise="tsv", wanted=data.format)
    every = chain(head, waiting)
    if layout.is_table:
        found = _from_table(every, layout, source, data)
    elif layout.format == "fasttext":
        found = Labelled(list(_from_marks(every, source)), None)
    else:
        found = _from_objects(every, layout, source, data)
    if not found.examples:
        raise DataError(source, "holds no example, but there must be some: label, tab, text.")
    return found


def check_labels(found: Labelled, source: Path | str) -> None:
    """Refuse a file in which nearly every example has a label of its own."""
    labels = {example.labels for example in found.examples}
    if len(found.examples) < ENOUGH or len(labels) <= MOST_DIFFERENT * len(found.examples):
        return
    text, label = found.columns or ("the rest of the line", LABEL_MARK)
    first = found.examples[0]
    raise DataError(
        source,
        f"has {len(labels)} different labels in {len(found.examples)} rows, so these are hardly "
        f"labels. Read were labels from column {label} (first {short(BETWEEN.join(first.labels))}) "
        f"and texts from column {text} (first {short(first.text)}). Say which columns are meant "
        "with --label-column and --text-column, by name or by number from 1.",
    )


def _from_table(
    lines: Iterable[str], layout: Layout, source: Path | str, data: LabelledTexts
) -> Labelled:
    rows = list(table_rows(lines, layout, source=source))
    if not rows:
        return Labelled([], None)
    columns = _columns(rows, source, data)
    width = (
        len(columns.header) if columns.header else common_width([c for _, c in rows[:LOOKED_AT]])
    )
    text, label = columns.places
    examples = []
    for line, row in rows[columns.header is not None :]:
        if len(row) != width:
            raise _wrong_width(len(row), width, layout.separator, source=source, line=line)
        labels = _split_labels(row[label], source, line)
        examples.append(Example(labels, row[text].strip(), line))
    found = columns.names()
    return Labelled(examples, (found[0], found[1]))


def _columns(
    rows: Sequence[tuple[int, list[str]]], source: Path | str, data: LabelledTexts
) -> Columns:
    """Where text and label stand."""
    wanted = (text_wanted(data.text_column), label_wanted(data.label_column))
    line, first = rows[0]
    if found := named_columns(first, wanted):
        return found
    cells = [row for _, row in rows[:LOOKED_AT]]
    if common_width(cells) < 2:
        raise DataError(
            source,
            "has 1 column, but must have 2: the label, a tab, the text. Mend the line, or say how "
            "the file is written with --format.",
            line=line,
        )
    if common_width(cells) > 2 and len(cells) < FEW and not any(want.given for want in wanted):
        raise _wrong_width(common_width(cells), 2, source=source, line=line)
    found = numbered_columns(cells, wanted, source=source, line=line)
    if found.places[0] == found.places[1]:
        raise DataError(
            source, f"column {found.names()[0]} is named for both texts and labels.", line=line
        )
    if is_unusual_header(cells, found.places):
        return Columns(found.places, [cell.strip() for cell in first])
    return found


def _wrong_width(
    found: int, width: int, separator: str = "\t", *, source: Path | str, line: int
) -> DataError:
    between = {"\t": "a tab", ",": "a comma"}.get(separator, repr(separator))
    wanted = f"{width}: the label, {between}, the text" if width == 2 else f"{width}"
    return DataError(
        source,
        f"has {found} column{'s' * (found != 1)}, but must have {wanted}. Mend the line, or begin "
        "the file with a header that names the columns label and text.",
        line=line,
    )


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


def _from_marks(lines: Iterable[str], source: Path | str) -> Iterator[Example]:
    """Lines as fastText reads them: marked labels, then the text."""
    for number, line in enumerate(lines, 1):
        words = line.split()
        labels = [word.removeprefix(LABEL_MARK) for word in words if word.startswith(LABEL_MARK)]
        if words and not all([*labels, labels]):
            raise DataError(
                source, f"must begin with a label, such as {LABEL_MARK}spam.", line=number
            )
        if words:
            yield Example(tuple(dict.fromkeys(labels)), unmarked(line), number)


def _from_objects(
    lines: Iterable[str], layout: Layout, source: Path | str, data: LabelledTexts
) -> Labelled:
    text = label = ""
    examples = []
    for line, value in json_objects(lines, layout, source=source):
        text = text or json_key(value, text_wanted(data.text_column)) or "text"
        label = label or json_key(value, label_wanted(data.label_column)) or ""
        words = json_text(value, text, source, line)
        labels = _json_labels(value, label, source, line)
        examples.append(Example(labels, words.strip(), line))
    return Labelled(examples, (text, label))


def _json_labels(
    value: Mapping[str, Any], label: str, source: Path | str, line: int
) -> tuple[str, ...]:
    own = value.get(label, value.get("labels") if label == "label" else value.get("label"))
    both = label in LABEL_NAMES[:2] and "label" in value and "labels" in value
    if own is None or both or (label == "labels" and label in value and not isinstance(own, list)):
        raise DataError(
            source,
            'must have either a "label" or a list of "labels", but has '
            f"{short({name: value[name] for name in LABEL_NAMES[:2] if name in value})}. "
            "Another name is said with --label-column.",
            line=line,
        )
    found = own if isinstance(own, list) else [own]
    names = [str(each).strip() if type(each) in (str, int) else "" for each in found]
    if not all(names):
        raise DataError(
            source,
            f"the label is {short(found[names.index('')])}, but must be a string that is not "
            "empty, or a whole number.",
            line=line,
        )
    return tuple(dict.fromkeys(names))
