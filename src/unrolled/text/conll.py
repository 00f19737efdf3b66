"""Read and write tagged sentences: CoNLL-U, and CoNLL columns.

    CoNLL-U   ten columns with tabs between them; `#` lines are remarks, ids like 3-4 (a token of
              several words) and 8.1 (an empty node) are passed over: no word is read twice
    columns   one word a line, the word first and its tag last, tabs or spaces between the columns;
              `-DOCSTART-` lines are passed over

A blank line ends a sentence. Whatever is wrong is named with file and line.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from unrolled.config.data import TaggedWords
from unrolled.errors import ConfigError, DataError, shown
from unrolled.text.schemes import broken_sentences, first_break

COLUMNS = {"upos": 3, "xpos": 4, "feats": 5}  # of CoNLL-U, by their places
CONLLU_NAMES = (
    *("id", "form", "lemma", "upos", "xpos", "feats", "head", "deprel", "deps", "misc"),
)
CONLLU_WIDTH = len(CONLLU_NAMES)
CONLLU_NOTE = re.compile(r"#\s*(sent_id|text|newdoc|newpar|global\.columns)\b")
EMPTY = "_"
DOCUMENT = "-DOCSTART-"
WORD_ID = re.compile(r"[1-9][0-9]*")
OTHER_ID = re.compile(r"[1-9][0-9]*-[1-9][0-9]*|[0-9]+\.[1-9][0-9]*")

ANY_ID = re.compile(f"{WORD_ID.pattern}|{OTHER_ID.pattern}")
LOOKED_AT = 100  # sentences by which columns are told apart
DEFAULT = TaggedWords()

Numbered = tuple[int, str]  # a line and its number
Block = Sequence[Numbered]


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
    lines: Iterable[str],
    *,
    source: Path | str,
    column: str = "upos",
    data: TaggedWords = DEFAULT,
) -> list[TaggedSentence]:
    """The sentences of a file in either format; `column` says which tags a CoNLL-U file gives."""
    blocks = list(sentence_blocks(lines))
    places = find_places(blocks[:LOOKED_AT], source=source, column=column, data=data)
    read = [tagged_sentence(block, places, source=source) for block in blocks]
    sentences = [sentence for sentence in read if sentence.words]
    if not sentences:
        raise DataError(source, "holds no tagged sentence: one word and its tag a line.")
    if places.is_conllu:
        _check_column(sentences, source, data.tag_column or column)
    return sentences


def sentence_blocks(lines: Iterable[str]) -> Iterator[list[Numbered]]:
    """Runs of lines between blank ones, with their numbers; each as soon as its end has come."""
    block: list[Numbered] = []
    for number, line in enumerate(lines, start=1):
        if line.strip():
            block.append((number, line))
        elif block:
            yield block
            block = []
    if block:
        yield block


class Places(NamedTuple):
    """Where word and tag stand in a line, from 0; the tag of −1 is the last column."""

    is_conllu: bool
    word: int
    tag: int | None  # None: there is none to be read
    separator: str | None  # None: runs of white space
    width: int

    def between(self, line: str) -> str | None:
        """What parts the cells of a line; where no tag is read, each line may have its own."""
        own = "\t" if "\t" in line else None
        return own if self.tag is None else self.separator


def find_places(
    blocks: Sequence[Block],
    *,
    source: Path | str,
    column: str = "upos",
    data: TaggedWords = DEFAULT,
    tagged: bool = True,
) -> Places:
    """Where word and tag stand, by the settings and by the first blocks of a file."""
    wanted = {"word": data.word_column, "tag": data.tag_column or column if tagged else None}
    if is_conllu_file(blocks, source, data.format):
        word = _place(wanted["word"] or "form", CONLLU_NAMES, CONLLU_WIDTH, "word")
        tag = _place(wanted["tag"], CONLLU_NAMES, CONLLU_WIDTH, "tag") if tagged else None
        return Places(True, word, tag, "\t", CONLLU_WIDTH)
    first = _first_line(blocks)
    separator = "\t" if "\t" in first else None
    width = max(1 + tagged, len(columns_of(first, separator)))
    indexed = width > 1 + tagged and _has_index(blocks, separator)
    word = _place(wanted["word"] or str(1 + indexed), (), width, "word")
    tag = _place(data.tag_column or str(width), (), width, "tag") if tagged else None
    return Places(False, word, tag, separator, width)


def is_conllu_file(blocks: Sequence[Block], source: Path | str, wanted: str | None) -> bool:
    """Whether a file is CoNLL-U: as it is said to be, by its name or by its first lines."""
    if wanted is not None:
        return wanted == "conllu"
    is_named = ".conllu" in (suffix.lower() for suffix in Path(source).suffixes)
    return is_named or is_conllu_like([line for _, line in (blocks[0] if blocks else ())])


def is_conllu_like(head: Sequence[str]) -> bool:
    """Whether lines are those of CoNLL-U, or were meant to be: spaces may stand for the tabs."""
    noted, first = False, ""
    for line in head:
        noted = noted or line.startswith("#")
        if line.strip() and not line.startswith("#"):
            first = line
            break
    cells = first.split("\t") if "\t" in first else first.split()
    return bool(cells and ANY_ID.fullmatch(cells[0])) and (len(cells) == CONLLU_WIDTH or noted)


def _first_line(blocks: Sequence[Block]) -> str:
    lines = (line for block in blocks for _, line in block)
    return next((line for line in lines if line.split()[0] != DOCUMENT), "")


def _has_index(blocks: Sequence[Block], separator: str | None) -> bool:
    """Whether the first column counts the words of each sentence: 1, 2, 3 …"""
    first = [[columns_of(line, separator)[0] for _, line in block] for block in blocks]
    counted = [[str(n) for n in range(1, len(cells) + 1)] for cells in first]
    return first == counted and max(map(len, first), default=0) > 1


def _place(given: str | None, names: Sequence[str], width: int, what: str) -> int:
    """The place of a column, from 0, that is named or numbered from 1."""
    text = (given or "").lower()
    if text in names:
        return names.index(text)
    if text.isascii() and text.isdigit() and len(text) < 6 and 1 <= int(text) <= width:
        return int(text) - 1
    allowed = f"a number from 1 to {width}" + (f", or one of {', '.join(names)}" if names else "")
    raise ConfigError(f"data.{what}_column is {shown(given)}, but must be {allowed}.")


def tagged_sentence(block: Block, places: Places, *, source: Path | str) -> TaggedSentence:
    """The words of one block and, where the places have one, their tags."""
    sentence = TaggedSentence()
    for number, line in block:
        cells = _word_cells(line, places, len(sentence.words), source, number)
        if cells is None:
            continue
        word, tag = cells[places.word], "" if places.tag is None else cells[places.tag]
        if not word.strip() or (places.tag is not None and not tag.strip()):
            raise _wrong_columns(line, cells, places, source, number)
        sentence.add(word, tag, number)
    return sentence


def _word_cells(
    line: str, places: Places, words: int, source: Path | str, number: int
) -> list[str] | None:
    """The cells of a line that holds a word; `words` stand before it in the sentence."""
    if not places.is_conllu:
        cells = columns_of(line, places.between(line))
        if cells[0] == DOCUMENT:
            return None
        if len(cells) != places.width and (places.tag is not None or len(cells) <= places.word):
            raise _wrong_columns(line, cells, places, source, number)
        return cells
    if line.startswith("#"):
        return None
    cells = line.split("\t")
    if len(cells) != CONLLU_WIDTH:
        spaces = " Here spaces stand for tabs." if len(line.split()) >= CONLLU_WIDTH else ""
        raise DataError(
            source,
            f"has {len(cells)} column{'s' * (len(cells) > 1)}, but a line of CoNLL-U has "
            f"{CONLLU_WIDTH} with tabs between them.{spaces}",
            line=number,
        )
    if OTHER_ID.fullmatch(cells[0]):
        return None
    if cells[0] != str(words + 1):
        raise DataError(
            source,
            f"has the id {shown(cells[0])}, but {words + 1} is the next one of this sentence. A "
            "blank line must stand between two sentences.",
            line=number,
        )
    return cells


def _check_column(sentences: Sequence[TaggedSentence], source: Path | str, column: str) -> None:
    tags = {tag for sentence in sentences for tag in sentence.tags}
    if tags == {EMPTY}:
        raise DataError(
            source,
            f"has {EMPTY} in column {column} of every word, but tags are needed there; "
            f"tokens.column may be one of {', '.join(COLUMNS)}.",
        )


def columns_of(line: str, separator: str | None) -> list[str]:
    """The cells of a line: between tabs, or (None) between runs of white space."""
    cells = line.split(separator)
    return cells if separator is None else [cell.strip() for cell in cells]


def _wrong_columns(
    line: str, cells: Sequence[str], places: Places, source: Path | str, number: int
) -> DataError:
    between = "white space" if places.separator is None else "tabs"
    count = f"{len(cells)} column{'s' * (len(cells) > 1)}"
    seen = count if len(cells) != places.width else "an empty word or tag"
    tag = (places.tag or 0) + 1
    is_usual = places.word == 0 and tag == places.width and not places.is_conllu
    where = "the word first, its tag last" if is_usual else f"word in column {places.word + 1}"
    where += "" if is_usual or places.tag is None else f", tag in column {tag}"
    return DataError(
        source,
        f"{line[:60]!r} has {seen}, but must have {places.width} columns with {between} between "
        f"them: {where}. Words or tags with spaces in them need tabs between columns.",
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


class SentenceRecord(NamedTuple):
    """The lines of a sentence, a word a line, with remarks and what else stands between them."""

    block: Block
    places: Places
    column: int  # of CoNLL-U, where tags belong

    @property
    def line(self) -> int:
        """Where it begins."""
        return self.block[0][0]

    def heading(self, names: Sequence[str]) -> str:
        return ""

    def beside(self, values: Mapping[str, Any]) -> str:
        """The lines with a tag each, in their column or behind them, and a blank line."""
        tags = iter(next(iter(values.values())))
        return "\n".join([*(self._tagged(line, tags) for _, line in self.block), ""])

    def _tagged(self, line: str, tags: Iterator[str]) -> str:
        places = self.places
        separator = places.between(line)
        cells = line.split("\t") if places.is_conllu else columns_of(line, separator)
        if not places.is_conllu:
            return line if cells[0] == DOCUMENT else f"{line}{separator or ' '}{next(tags)}"
        if line.startswith("#") or OTHER_ID.fullmatch(cells[0]):
            return line
        cells[self.column] = next(tags)
        return "\t".join(cells)

    def as_json(self) -> Any:
        return [line for _, line in self.block]


def token_sentences(
    lines: Iterable[str],
    *,
    source: Path | str = "<input>",
    column: str = "upos",
    data: TaggedWords = DEFAULT,
) -> Iterator[tuple[list[str], SentenceRecord]]:
    """The words of sentences whose tags are unknown, as they come: one word a line.

    Of a CoNLL-U file they are its words; of columns the first, or the second behind an index.
    """
    places = None
    for block in sentence_blocks(lines):
        if places is None:
            places = find_places([block], source=source, data=data, tagged=False)
            target = _place(data.tag_column or column, CONLLU_NAMES, CONLLU_WIDTH, "tag")
        if words := tagged_sentence(block, places, source=source).words:
            yield words, SentenceRecord(block, places, target if places.is_conllu else 0)


def write_columns(words: Iterable[str], tags: Iterable[str]) -> str:
    """A sentence in columns, a tab between word and tag, and the blank line after it."""
    return "".join(f"{word}\t{tag}\n" for word, tag in zip(words, tags, strict=True)) + "\n"
