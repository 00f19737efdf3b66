"""What language models answer: scores of lines, suggestions, written texts."""

import math
from collections.abc import Iterable, Iterator
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from unrolled.errors import ConfigError, DataError, shown
from unrolled.evaluate.shown import visible
from unrolled.text.tokens import EncodedLines, TextEncoder


class LineScore(NamedTuple):
    """How likely a model finds a line."""

    text: str
    log_probability: float  # natural
    tokens: int  # predictions, the line's end among them
    unknown: int  # of these, tokens outside the vocabulary

    @property
    def perplexity(self) -> float:
        """exp of the mean nats over the line's tokens; infinite if one of them has no chance."""
        nats = -self.log_probability / self.tokens
        return math.exp(min(nats, 709.0)) if math.isfinite(nats) else math.inf


class ScoreAnswer(NamedTuple):
    """A line's score; row 0 is all lines as if they were one."""

    score: LineScore
    row: int
    remarks: tuple[str, ...] = ()

    def text(self) -> str:
        """Tabs between the columns, the line last."""
        score = self.score
        numbers = (f"{score.log_probability:.4f}", f"{score.perplexity:.4f}")
        return "\t".join([*numbers, f"{score.tokens}", f"{score.unknown}", score.text])

    def as_json(self) -> dict[str, Any]:
        return {**self.score._asdict(), "perplexity": self.score.perplexity}

    def beside(self) -> dict[str, Any]:
        """The columns but the line itself."""
        _, log_probability, tokens, unknown = self.score
        return {
            "log_probability": log_probability,
            "perplexity": self.score.perplexity,
            "tokens": tokens,
            "unknown": unknown,
        }

    def chart(self) -> Any:
        raise no_picture("scores")


class Suggestion(NamedTuple):
    """A token that may come next."""

    token: str
    probability: float

    @property
    def row(self) -> int:
        """The only input."""
        return 1

    @property
    def remarks(self) -> tuple[str, ...]:
        """None."""
        return ()

    def text(self) -> str:
        return f"{self.probability:.4f}\t{visible(self.token)}"

    def as_json(self) -> dict[str, Any]:
        return self._asdict()

    def chart(self) -> Any:
        raise no_picture("suggestions")


class Written(NamedTuple):
    """A text that continues a prompt."""

    written: str
    number: int  # among the texts of one prompt, from 0
    remarks: tuple[str, ...] = ()

    @property
    def row(self) -> int:
        """The only input."""
        return 1

    def text(self) -> str:
        """The text, with a line before all but the first."""
        return f"---\n{self.written}" if self.number else self.written

    def as_json(self) -> str:
        return self.written

    def chart(self) -> Any:
        raise no_picture("written texts")


def answer_lines(
    scores: Iterable[tuple[LineScore, str]], *, rank: bool, source: Path | str
) -> Iterator[ScoreAnswer]:
    """Each line's score, then that of all; a line that is impossible has a remark that says why."""
    answers = (
        ScoreAnswer(score, row, (reason,) if reason else ())
        for row, (score, reason) in enumerate(scores, 1)
    )
    ordered = iter(sorted(answers, key=lambda a: -a.score.log_probability)) if rank else answers
    count, log_probability, tokens, unknown = 0, 0.0, 0, 0
    for answer in ordered:
        yield answer
        score = answer.score
        count, log_probability = count + 1, log_probability + score.log_probability
        tokens, unknown = tokens + score.tokens, unknown + score.unknown
    if not count:
        raise DataError(source, "holds no line to score.")
    yield ScoreAnswer(LineScore(f"all {count} lines", log_probability, tokens, unknown), 0)


def no_chance(
    encoder: TextEncoder,
    encoded: EncodedLines,
    nats: NDArray[np.float64],
    lines: Iterable[str] = (),
) -> tuple[int, str]:
    """The line, from 0, of the first token whose nats are infinite, and what is to be said of it.

    An unknown one is called by its own name where the lines are at hand.
    """
    place = int(np.argmin(np.isfinite(nats)))
    line = int(np.searchsorted(encoded.starts, place, side="right")) - 1
    begin = int(encoded.starts[line])
    *before, token = encoder.vocabulary.decode(encoded.ids[max(begin, place - 3) : place + 1])
    if text := next(islice(lines, line, None), ""):
        names = [*encoder.split(text), token]  # the line's end has none but its own
        token = names[place - begin]
    after = f"after {shown(' '.join(before))}" if before else "at the start"
    return line, f"the model gives {shown(token)} {after} no chance at all"


def no_picture(what: str) -> ConfigError:
    """ConfigError for a picture of what has none."""
    return ConfigError(f"there is no picture of {what}. Leave --out out.")
