"""Evaluate a language model: scores beside the baselines on the same text."""

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from unrolled.errors import DataError
from unrolled.evaluate.baselines import BASELINES, nats_of_lines
from unrolled.evaluate.metrics import Counted, Score, better, named, surprise_scores
from unrolled.models.language import LanguageModel
from unrolled.text.tokens import EncodedLines

DEV_COLUMNS = 16


@dataclass(frozen=True)
class Report:
    """A model's scores, and those of each baseline on the same data."""

    scores: list[Score]
    baselines: dict[str, list[Score]]

    def as_json(self) -> dict[str, Any]:
        """Plain values, as `--json` prints them."""
        return {
            "scores": [score._asdict() for score in self.scores],
            "baselines": {
                name: [score._asdict() for score in scores]
                for name, scores in self.baselines.items()
            },
        }

    @classmethod
    def from_json(cls, value: dict[str, Any]) -> Self:
        """The report that `as_json` gave."""
        return cls(
            [Score(**score) for score in value["scores"]],
            {
                name: [Score(**score) for score in scores]
                for name, scores in value["baselines"].items()
            },
        )

    def unbeaten(self) -> list[str]:
        """The baselines that the model does not beat."""
        mine = self.scores[0]
        return [
            name
            for name, scores in self.baselines.items()
            if not better(mine, named(scores, mine.name))
        ]


def evaluate_language(model: LanguageModel, lines: Iterable[str], *, source: Path | str) -> Report:
    """Perplexity on a text, read as the model was trained: in one stream or line by line."""
    return evaluate_encoded(model, encode_known(model, lines, source=source))


def evaluate_encoded(model: LanguageModel, encoded: EncodedLines) -> Report:
    """The same, on text that is encoded already."""
    counted = Counted(
        lines=len(encoded),
        tokens=len(encoded.ids),
        unknown=encoded.unknown,
        characters=encoded.characters,
        level=model.settings.tokens.level,
        context=model.settings.model.context,
    )
    scores = surprise_scores(nats_by_line(model, encoded), encoded.lengths, counted)
    if model.settings.model.direction == "pair":
        backward = model.line_nats(encoded, backward=True)
        for score in surprise_scores(backward, encoded.lengths, counted):
            scores.append(score._replace(name=f"backward_{score.name}"))
    baselines = {
        name: surprise_scores(
            nats_of_lines(baseline.nats(model.encoder.vocabulary), encoded),
            encoded.lengths,
            counted,
            note=baseline.note,
        )
        for name, baseline in BASELINES.items()
    }
    return Report(scores, baselines)


def nats_by_line(model: LanguageModel, encoded: EncodedLines) -> NDArray[np.float64]:
    """Surprise at each line (lines,), in the context that the model was trained for."""
    if model.settings.model.context == "line":
        return model.line_nats(encoded)
    return np.asarray(np.add.reduceat(model.stream_nats(encoded), encoded.ends - encoded.lengths))


def mean_nats(model: LanguageModel, encoded: EncodedLines) -> float:
    """Mean surprise a token, for choosing between models under training.

    A stream is read in DEV_COLUMNS columns at once: many times faster than in one go, and off by
    the few tokens after each seam.
    """
    if model.settings.model.context == "stream":
        return model.stream_total(encoded, columns=DEV_COLUMNS) / len(encoded.ids)
    total = model.line_nats(encoded).sum()
    if model.settings.model.direction == "pair":
        total = (total + model.line_nats(encoded, backward=True).sum()) / 2.0
    return float(total / len(encoded.ids))


def encode_known(model: LanguageModel, lines: Iterable[str], *, source: Path | str) -> EncodedLines:
    """Lines as ids; text that is empty or holds no known token is refused."""
    encoded = model.encoder.encode_lines(lines)
    words = len(encoded.ids) - len(encoded)
    if words == 0:
        raise DataError(source, "holds no text, but at least one token is needed.")
    if encoded.unknown == words:
        raise DataError(
            source,
            f"all {words} tokens are outside the model's vocabulary (level "
            f"{model.settings.tokens.level}). Check the language, the encoding and the tokens.",
        )
    return encoded
