"""Evaluate a language model: scores beside the baselines on the same text."""

from collections.abc import Callable, Iterable
from itertools import islice
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from unrolled.errors import DataError
from unrolled.evaluate.measure import Measure
from unrolled.evaluate.perplexity import Counted, perplexity_measures, perplexity_scores
from unrolled.evaluate.report import Report
from unrolled.evaluate.score import Score
from unrolled.evaluate.shown import Shown
from unrolled.evaluate.views import MOST_TOKENS, ByLength, Surprise, surprise_of
from unrolled.tasks.shared.language_answers import no_chance
from unrolled.tasks.shared.language_model import LanguageModel
from unrolled.tasks.shared.mixture import best_weight, mixed_nats
from unrolled.tasks.shared.token_baselines import known_baselines, nats_of_lines
from unrolled.text.tokens import EncodedLines

DEV_COLUMNS = 16
MIXTURE = "with_ngram"


def evaluate_language(model: LanguageModel, lines: Iterable[str], *, source: Path | str) -> Report:
    """Perplexity on a text, read as the model was trained: in one stream or line by line."""
    lines = kept_for_names(model, lines)
    encoded = encode_known(model, lines, source=source)
    return evaluate_encoded(model, encoded, source=source, lines=lines)


def kept_for_names(model: LanguageModel, lines: Iterable[str]) -> Iterable[str]:
    """The lines, held in memory if an unknown token among them may have to be named."""
    return lines if model.network.knows_unknown else list(lines)


def evaluate_encoded(
    model: LanguageModel,
    encoded: EncodedLines,
    *,
    source: Path | str,
    lines: Iterable[str] = (),
    weigh: bool = False,
) -> Report:
    """The same, on text that is encoded already; `lines` are what `kept_for_names` made of it.

    `weigh`: choose on this text how much the model counts in the mixture with its n-gram model.
    """
    counted = _counted(model, encoded)
    nats = possible_nats(model, encoded, source=source, lines=lines)
    by_line = np.add.reduceat(nats, encoded.starts)
    scores = perplexity_scores(by_line, encoded.lengths, counted, note=model.network.recipe)
    if model.settings.model.direction == "pair":
        backward = model.line_nats(encoded, backward=True)
        scores += perplexity_scores(backward, encoded.lengths, counted, prefix="backward_")
    baselines = {
        name: perplexity_scores(
            nats_of_lines(baseline.nats(model.encoder.vocabulary), encoded),
            encoded.lengths,
            counted,
            note=baseline.note,
        )
        for name, baseline in known_baselines(model.encoder.vocabulary).items()
    }
    if model.beside is None:
        return Report(scores, baselines)
    theirs = model.beside.network.nats_in_lines(encoded)
    if weigh:
        model.beside.weight.fill_(best_weight(nats, theirs))
    weight, recipe = float(model.beside.weight), model.beside.network.recipe
    mixture = mixed_nats(nats, theirs, weight)
    chosen = f"|mixture:{weight:.4f}" + ("|weighed-on:this" if weigh else "")

    def of(nats: NDArray[np.float64], note: str) -> list[Score]:
        by_line = np.add.reduceat(nats, encoded.starts)
        return perplexity_scores(by_line, encoded.lengths, counted, note=note)

    baselines["ngram"] = of(theirs, recipe)
    return Report(scores, baselines, variants={MIXTURE: of(mixture, chosen + recipe)})


def measured_language(
    model: LanguageModel, lines: Iterable[str], *, source: Path | str
) -> list[Measure]:
    """The model's scores on a text, with what they are made of line by line."""
    lines = list(lines)
    encoded = encode_known(model, lines, source=source)
    nats = possible_nats(model, encoded, source=source, lines=lines)
    by_line, characters = np.add.reduceat(nats, encoded.starts), [len(line) + 1 for line in lines]
    counted, note = _counted(model, encoded), model.network.recipe
    return perplexity_measures(by_line, encoded.lengths, characters, counted, note=note)


def _counted(model: LanguageModel, encoded: EncodedLines) -> Counted:
    return Counted(
        lines=len(encoded),
        tokens=len(encoded.ids),
        unknown=encoded.unknown,
        characters=encoded.characters,
        level=model.settings.tokens.level,
        context=model.settings.model.context,
    )


def possible_nats(
    model: LanguageModel, encoded: EncodedLines, *, source: Path | str, lines: Iterable[str] = ()
) -> NDArray[np.float64]:
    """Surprise at each token (N,), in the context that the model was trained for.

    A token that the model gives no chance at all is named: no mean could be taken over it.
    """
    in_lines = model.settings.model.context == "line"
    nats = model.network.nats_in_lines(encoded) if in_lines else model.stream_nats(encoded)
    if np.isfinite(nats).all():
        return nats
    line, reason = no_chance(model.encoder, encoded, nats, lines)
    cure = "" if model.network.knows_unknown else " and has an open vocabulary"
    raise DataError(
        source,
        f"{reason}, so the perplexity is infinite. Score it with a model that is smoothed{cure}, "
        "or take the line out.",
        line=line + 1,
    )


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


def by_length(model: LanguageModel, lines: Iterable[str], source: Path | str) -> ByLength:
    """Perplexity by how long lines are."""
    measure, *_ = measured_language(model, lines, source=source)
    lengths = np.asarray(measure.counts)[:, 1].astype(np.int64)
    return ByLength.of(measure, lengths, unit="tokens in the line, its end among them")


def surprises(model: LanguageModel, lines: Iterable[str], source: Path | str) -> Surprise:
    """What each token costs at the beginning of a text."""
    return surprise_of(*model.surprise("\n".join(islice(lines, MOST_TOKENS))))


LANGUAGE_VIEWS: dict[str, Callable[[LanguageModel, Iterable[str], Path | str], Shown]] = {
    "lengths": by_length,
    "surprise": surprises,
}
