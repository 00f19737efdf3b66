"""The sentences nearest to a sentence, for every model that makes vectors of sentences.

Near is what has a large cosine; a vector of zeros is near to nothing.
"""

import heapq
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from unrolled.errors import ConfigError
from unrolled.evaluate.shown import visible
from unrolled.tasks.shared.finite import numbers
from unrolled.tasks.shared.similar_use import SimilarOptions
from unrolled.tasks.task import Blocks
from unrolled.text.columns import text_wanted
from unrolled.text.source import Source
from unrolled.text.texts import arriving_texts

Floats = NDArray[np.float32]
AT_ONCE = 512  # texts


class Encodes(Protocol):
    """A model that makes vectors of sentences."""

    def sentence_vectors(self, texts: Sequence[str]) -> Floats:
        """(N, F) of N texts."""
        ...


class Similar(NamedTuple):
    """A text, its cosine, and the record that it stands in."""

    similarity: float
    line: int
    text: str


class Neighbours(NamedTuple):
    """The answer for one text."""

    given: str
    found: Sequence[Similar]
    row: int
    remarks: Sequence[str] = ()

    def text(self) -> str:
        """A line each, the nearest first: cosine, line, text."""
        return "\n".join(f"{s:.4f}\t{line}\t{_shown(text)}" for s, line, text in self.found)

    def as_json(self) -> dict[str, Any]:
        """The same as plain values."""
        return {"text": self.given, "similar": [each._asdict() for each in self.found]}

    def chart(self) -> Any:
        """There is none."""
        raise ConfigError("there is no picture of near sentences. Leave --out out.")


def similar_answers(
    model: Encodes, blocks: Blocks, options: SimilarOptions, source: Path | str
) -> Iterator[Neighbours]:
    """What is near to each text."""
    if options.among is None:
        raise ConfigError("there is nothing to look among. Name a file of texts with --among.")
    row = 0
    for block in blocks:
        for given in block:
            row += 1
            file = Source(options.among, options.encoding).arriving()
            texts = arriving_texts(file, text_wanted(options.column))
            numbered = ((record.line, text) for text, record in texts if text.strip())
            yield Neighbours(given.text, nearest(model, given.text, numbered, options.nearest), row)


def nearest(
    model: Encodes, text: str, among: Iterable[tuple[int, str]], count: int
) -> list[Similar]:
    """The texts nearest to a text, each with its line; of equal ones the first comes first."""
    (wanted,) = _units(model.sentence_vectors([text]))

    def scored() -> Iterator[Similar]:
        waiting = iter(among)
        while block := list(islice(waiting, AT_ONCE)):
            units = _units(model.sentence_vectors([each for _, each in block]))
            for similarity, (line, each) in zip((units @ wanted).tolist(), block, strict=True):
                yield Similar(similarity, line, each)

    return heapq.nsmallest(count, scored(), key=lambda each: (-each.similarity, each.line))


def _units(vectors: Floats) -> NDArray[np.float64]:
    """Rows at length 1, but zeros stay zeros."""
    wide = vectors.astype(np.float64)
    lengths = np.linalg.norm(wide, axis=1, keepdims=True)
    return numbers(np.asarray(wide / np.where(lengths > 0, lengths, 1.0)), of="a text")


def _shown(text: str) -> str:
    one_line = " ".join(text.split())
    return one_line if one_line.isprintable() else visible(one_line)
