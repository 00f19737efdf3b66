"""What a tagger is asked about: texts of any format, or words that stand one a line."""

from collections.abc import Iterator

from unrolled.config.data import TaggedWords
from unrolled.text.columns import text_wanted
from unrolled.text.conll import token_sentences
from unrolled.text.formats import HEAD, recognise
from unrolled.text.records import LineRecord, Record
from unrolled.text.sentences import split_sentences
from unrolled.text.source import ArrivingLines
from unrolled.text.texts import FORMATS as TEXT_FORMATS
from unrolled.text.texts import read_texts

WORDS = ("conllu", "columns")
FORMATS = (*WORDS, *TEXT_FORMATS)


def tagged_inputs(
    lines: ArrivingLines, data: TaggedWords, *, column: str, tokens: bool, sentences: bool
) -> Iterator[tuple[str | list[str], Record]]:
    """Texts, or the words of sentences, each with its record.

    tokens      a word a line, whatever the file looks like
    sentences   a text is parted into sentences, each of which is a record of its own
    """
    among = WORDS if tokens else FORMATS
    otherwise = "columns" if tokens else "text"
    head = lines.head(HEAD)
    layout = recognise(head, name=lines.name, among=among, otherwise=otherwise, wanted=data.format)
    if layout.format in WORDS:
        yield from token_sentences(lines, source=lines.name, column=column, data=data)
        return
    wanted = text_wanted(data.text_column, place=0)
    for text, record in read_texts(lines, layout, wanted, source=lines.name):
        if not sentences:
            yield text, record
        for sentence in split_sentences(text) if sentences else ():
            yield sentence.strip(), LineRecord(sentence.strip(), record.line)
