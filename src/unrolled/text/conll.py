"""Read and write tagged sentences: CoNLL-U, and CoNLL columns.

    CoNLL-U   ten columns with tabs between them; `#` lines are remarks, ids like 3-4 (a token of
              several words) and 8.1 (an empty node) are passed over: no word is read twice
    columns   one word a line, the word first and its tag last, tabs or spaces between the columns;
              `-DOCSTART-` lines are passed over

A blank line ends a sentence. Whatever is wrong is named with file and line.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from pathlib import Path

from unrolled.errors import DataError
from unrolled.text.schemes import broken_sentences, first_break

COLUMNS = {"upos": 3, "xpos": 4, "feats": 5}  # of CoNLL-U, by their places
FORM = 1
CONLLU_WIDTH = 10
EMPTY = "_"
DOCUMENT = "-DOCSTART-"
WORD_ID = re.compile(r"[1-9][0-9]*")
OTHER_ID = re.compile(r"[1-9][0-9]*-[1-9][0-9]*|[0-9]+\.[1-9][0-9]*")

Numbered = tuple[int, str]  # a line and its number


@dataclass
class TaggedSentence:
    """Words, their tags, and the line that each stands in."""

    words: list[str] = field(default_factory=list)
    tags: list[str] = field(default_factory=list)
    lines: list[int] = field(default_factory=list)

    def add(self, word: str, tag: str, line: int) -> None:
        self.words.append(word)
        self.tags.append(tag)
        self.lines.append(line)


def read_tagged(
    lines: Iterable[str], *, source: Path | str, column: str = "upos"
) -> list[TaggedSentence]:
    """The sentences of a file in either format; `column` says which tags a CoNLL-U file gives."""
    blocks = list(sentence_blocks(lines))
    first = next((line for block in blocks for _, line in block if not line.startswith("#")), "")
    if is_conllu(first) or ".conllu" in Path(source).suffixes:
        read = [conllu_sentence(block, source=source, column=column) for block in blocks]
        _check_column(read, source, column)
    else:
        separator, width = ("\t" if "\t" in first else None), None
        read = []
        for block in blocks:
            sentence, width = _column_sentence(block, separator, width, source)
            read.append(sentence)
    sentences = [sentence for sentence in read if sentence.words]
    if not sentences:
        raise DataError(source, "holds no tagged sentence: one word and its tag a line.")
    return sentences


def sentence_blocks(lines: Iterable[str]) -> Iterator[list[Numbered]]:
    """Runs of lines between blank ones, with their numbers."""
    numbered = enumerate(lines, start=1)
    for blank, block in groupby(numbered, key=lambda pair: not pair[1].strip()):
        if not blank:
            yield list(block)


def is_conllu(line: str) -> bool:
    """Whether a line has the form of a CoNLL-U token: ten columns, an id first."""
    cells = line.split("\t")
    return len(cells) == CONLLU_WIDTH and bool(
        WORD_ID.fullmatch(cells[0]) or OTHER_ID.fullmatch(cells[0])
    )


def conllu_sentence(
    block: Sequence[Numbered], *, source: Path | str, column: str = "upos"
) -> TaggedSentence:
    """The words of one block of CoNLL-U, without tokens of several words and empty nodes."""
    sentence = TaggedSentence()
    for number, line in block:
        if line.startswith("#"):
            continue
        cells = line.split("\t")
        if len(cells) != CONLLU_WIDTH:
            raise DataError(
                source,
                f"has {len(cells)} columns, but a line of CoNLL-U has {CONLLU_WIDTH} with tabs "
                "between them.",
                line=number,
            )
        if OTHER_ID.fullmatch(cells[0]):
            continue
        expected = len(sentence.words) + 1
        if cells[0] != str(expected):
            raise DataError(
                source,
                f"has the id {cells[0]!r}, but {expected} is the next one of this sentence. A "
                "blank line must stand between two sentences.",
                line=number,
            )
        sentence.add(cells[FORM], cells[COLUMNS[column]], number)
    return sentence


def _check_column(sentences: Sequence[TaggedSentence], source: Path | str, column: str) -> None:
    tags = {tag for sentence in sentences for tag in sentence.tags}
    if tags == {EMPTY}:
        raise DataError(
            source,
            f"has {EMPTY} in column {column} of every word, but tags are needed there; "
            f"tokens.column may be one of {', '.join(COLUMNS)}.",
        )


def _column_sentence(
    block: Sequence[Numbered], separator: str | None, width: int | None, source: Path | str
) -> tuple[TaggedSentence, int | None]:
    sentence = TaggedSentence()
    for number, line in block:
        cells = columns_of(line, separator)
        if cells[0] == DOCUMENT:
            continue
        width = width or max(2, len(cells))
        if len(cells) != width or not cells[0].strip() or not cells[-1].strip():
            raise _wrong_columns(line, cells, width, separator, source, number)
        sentence.add(cells[0], cells[-1], number)
    return sentence, width


def columns_of(line: str, separator: str | None) -> list[str]:
    """The cells of a line: between tabs, or (None) between runs of white space."""
    cells = line.split(separator)
    return cells if separator is None else [cell.strip() for cell in cells]


def _wrong_columns(
    line: str,
    cells: Sequence[str],
    width: int,
    separator: str | None,
    source: Path | str,
    number: int,
) -> DataError:
    between = "white space" if separator is None else "tabs"
    count = f"{len(cells)} column{'s' * (len(cells) > 1)}"
    seen = count if len(cells) != width else "an empty word or tag"
    return DataError(
        source,
        f"{line[:60]!r} has {seen}, but there must be {width} with {between} between them: the "
        "word first, its tag last. Words or tags with spaces in them need tabs between columns.",
        line=number,
    )


def check_scheme(
    sentences: Sequence[TaggedSentence], scheme: str, *, source: Path | str, most: float = 0.0
) -> int:
    """How many sentences break a scheme of spans; refused if it is more than a share `most`."""
    broken = broken_sentences([sentence.tags for sentence in sentences], scheme)
    if len(broken) > most * len(sentences):
        raise _broken(sentences[broken[0]], scheme, source)
    return len(broken)


def _broken(sentence: TaggedSentence, scheme: str, source: Path | str) -> DataError:
    place = first_break(sentence.tags, scheme)
    assert place is not None
    before = sentence.tags[place - 1] if place else "the beginning of the sentence"
    here = sentence.tags[place] if place < len(sentence.tags) else "the end of the sentence"
    return DataError(
        source,
        f"{here} after {before} breaks the scheme {scheme.upper()}. Mend the tags, or name their "
        "scheme with tokens.scheme (iob1, iob2, iobes; none takes tags as they are).",
        line=sentence.lines[min(place, len(sentence.lines) - 1)],
    )


def token_sentences(lines: Iterable[str], *, source: Path | str = "<input>") -> Iterator[list[str]]:
    """The words of sentences whose tags are unknown, as they come: one word a line.

    Of a CoNLL-U file they are its words, of other columns the first.
    """
    for block in sentence_blocks(lines):
        real = [line for _, line in block if not line.startswith("#")]
        if real and is_conllu(real[0]):
            yield conllu_sentence(block, source=source).words
        else:
            yield [columns_of(line, "\t" if "\t" in line else None)[0] for _, line in block]


def write_columns(words: Iterable[str], tags: Iterable[str]) -> str:
    """A sentence in columns, a tab between word and tag, and the blank line after it."""
    return "".join(f"{word}\t{tag}\n" for word, tag in zip(words, tags, strict=True)) + "\n"
