"""What `unrolled predict` prints for a tagger: words and tags in columns, as it reads.

--json prints one JSON object a sentence, each on its line, so that results stream as input does.
"""

from collections.abc import Iterable
from json import dumps
from pathlib import Path
from typing import TYPE_CHECKING, Any

from unrolled.app.output import note

if TYPE_CHECKING:
    from unrolled.models.tag import TaggedWords, TagModel

LINES_AT_ONCE = 256


def predict_tags(
    model: "TagModel",
    lines: Iterable[str],
    *,
    json: bool = False,
    tokens: bool = False,
    source: Path | str = "<input>",
    at_once: int = LINES_AT_ONCE,
) -> None:
    """Tag each line, or (`tokens`) each run of lines with one word a line; print as it goes.

    at_once 1 answers each sentence as soon as it is there.
    """
    from unrolled.text.conll import token_sentences, write_columns

    sentences: Iterable[Any] = token_sentences(lines, source=source) if tokens else lines
    in_pieces = 0
    for sentence in model.tag(sentences, at_once=at_once):
        if json:
            value = as_json(sentence, spans=model.tags.scheme is not None)
            print(dumps(value, ensure_ascii=False), flush=True)
        else:
            print(write_columns(sentence.words, sentence.tags), end="", flush=True)
        in_pieces += sentence.in_pieces
    if in_pieces:
        note(f"Sentences too long to be tagged at once, and tagged in pieces: {in_pieces}.")


def as_json(sentence: "TaggedWords", *, spans: bool) -> dict[str, Any]:
    """Words and tags; where tags mark spans, also their places, labels and words."""
    value: dict[str, Any] = {"words": sentence.words, "tags": sentence.tags}
    if spans:
        value["spans"] = [
            {**span._asdict(), "text": " ".join(sentence.words[span.start : span.end])}
            for span in sentence.spans
        ]
    return value
