"""What a tagger says of a sentence: a tag a word, and the spans that the tags mark."""

from typing import Any, NamedTuple

from unrolled.errors import ConfigError
from unrolled.text.conll import write_columns
from unrolled.text.schemes import Span, spans

MAX_WORDS = 20_000  # of a sentence that is tagged in one piece: bounds memory
IN_PIECES = "Too long to be tagged at once, and tagged in pieces"


class TaggedWords(NamedTuple):
    """A sentence's words and their tags."""

    words: list[str]
    tags: list[str]

    @property
    def spans(self) -> list[Span]:
        """Labelled spans, where the tags mark any."""
        return spans(self.tags)

    @property
    def in_pieces(self) -> bool:
        """Whether the sentence was too long to be tagged at once."""
        return len(self.words) > MAX_WORDS


class TaggedAnswer(NamedTuple):
    """The answer for one sentence."""

    tagged: TaggedWords
    row: int
    marks_spans: bool

    @property
    def remarks(self) -> tuple[str, ...]:
        """Whether it was cut for tagging."""
        return (IN_PIECES,) if self.tagged.in_pieces else ()

    def text(self) -> str:
        """Words and tags in columns, a blank line behind them."""
        return write_columns(*self.tagged).removesuffix("\n")

    def as_json(self) -> dict[str, Any]:
        """Words and tags; where tags mark spans, also their places, labels and words."""
        words, tags = self.tagged
        value: dict[str, Any] = {"words": words, "tags": tags}
        if self.marks_spans:
            value["spans"] = [
                {**span._asdict(), "text": " ".join(words[span.start : span.end])}
                for span in self.tagged.spans
            ]
        return value

    def beside(self) -> dict[str, Any]:
        """The tags."""
        return {"predicted_tags": self.tagged.tags}

    def chart(self) -> Any:
        """There is none."""
        raise ConfigError("there is no picture of tags. Leave --out out.")
