"""How files of records are read: kept with the model, so that every later command reads alike."""

from typing import Literal

from pydantic import Field

from unrolled.config.sections import Section, TextRun

Format = Literal["text", "csv", "tsv", "jsonl", "json", "fasttext", "conllu", "columns", "trees"]
FORMAT = "How files are written; left out, their names and contents tell."


def column(what: str) -> str | None:
    """A setting for the name of a column, or its number from 1."""
    about = f"The column of {what}: its name, or its number from 1."
    field: str | None = Field(
        None, min_length=1, max_length=1000, coerce_numbers_to_str=True, description=about
    )
    return field


class TextData(Section):
    """Where the texts of a file stand."""

    format: Format | None = Field(None, description=FORMAT)
    text_column: str | None = column("texts")


class LabelledTexts(TextData):
    """Where texts and labels stand."""

    label_column: str | None = column("labels")


class TaggedWords(TextData):
    """Where words and tags stand, one word a line; texts, where a table of them is tagged."""

    word_column: str | None = column("words, in a file of a word a line")
    tag_column: str | None = column("tags, in a file of a word a line")


class PairedTexts(Section):
    """Where the two sides of a pair stand."""

    format: Format | None = Field(None, description=FORMAT)
    source_column: str | None = column("sources")
    target_column: str | None = column("targets")


class PlainTextRun(TextRun):
    """Settings of a run that reads plain text."""

    data: TextData = TextData()
