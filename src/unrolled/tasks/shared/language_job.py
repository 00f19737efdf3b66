"""A language model made ready for training: vocabulary, batches, development text."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, Self

import numpy as np
from torch import nn

from unrolled.config.sections import TrainSettings
from unrolled.errors import DataError
from unrolled.evaluate.perplexity import safe_exp
from unrolled.evaluate.report import Report
from unrolled.evaluate.score import better
from unrolled.tasks.shared.batch_size import with_batch_tokens
from unrolled.tasks.shared.language_model import LanguageModel
from unrolled.tasks.shared.language_report import (
    MIXTURE,
    encode_known,
    evaluate_encoded,
    mean_nats,
)
from unrolled.tasks.shared.lines import Lines, with_dev
from unrolled.tasks.shared.ngram_beside import NgramBeside
from unrolled.tasks.shared.transfer import begin_with_vectors
from unrolled.text.batch import Batch, LineBatches, StreamBatches
from unrolled.text.tokens import SPECIALS, EncodedLines, TextEncoder
from unrolled.training.clock import Dev
from unrolled.training.job import HELD_OUT, Reports, StepJob, seconds_of

MAX_LINE_TOKENS = 20_000  # of a line that is trained on by itself
SAMPLE = 4096  # tokens that are scored to see how long it takes
MIX = (
    "Mixed with the n-gram model that is kept beside it, it foresees more: score, next and "
    "generate do so with --mix."
)


@dataclass(frozen=True)
class LanguageJob(StepJob[LanguageModel]):
    """A language model, the text to learn from and the texts to be judged on."""

    model: LanguageModel
    text: EncodedLines
    dev_text: EncodedLines
    test_text: EncodedLines | None = None
    vectors_found: int = 0

    @property
    def train(self) -> TrainSettings:
        """The settings of training."""
        train: TrainSettings = self.model.settings.train
        return train

    @cached_property
    def batches(self) -> StreamBatches | LineBatches:
        """The training text as the settings ask: one long stream, or line by line."""
        return training_batches(self.model, self.text)

    def epoch(self, seed: int, epoch: int) -> Sequence[Batch]:
        """The batches of an epoch, the same for the same arguments."""
        return self.batches.epoch(seed, epoch)

    def size(self, batch: Batch) -> int:
        """How many tokens are predicted."""
        return int(batch.lengths.sum()) - len(batch.lengths)

    def facts(self) -> dict[str, float]:
        """What there is to learn from, and how much of the first epoch's batches is padding."""
        return {
            "lines": len(self.text),
            "tokens": len(self.text.ids),
            "unknown": self.text.unknown,
            "vocabulary": len(self.model.encoder.vocabulary),
            "padding": self.batches.padding_share(self.seed, 0),
            HELD_OUT: len(self.dev_text),
            **({"vectors_found": self.vectors_found} if self.vectors_found else {}),
        }

    def dev(self) -> Dev:
        """Perplexity on the development text; the cost is its logarithm."""
        nats = mean_nats(self.model, self.dev_text)
        return Dev("perplexity", safe_exp(nats), nats)

    def reports(self, model: LanguageModel) -> Reports:
        """Scores of a finished model on the dev text and, where there is one, the test text."""
        texts = {"dev": self.dev_text, "test": self.test_text}  # weighed on the one, used on both
        reports = {
            name: evaluate_encoded(model, text, source=f"the {name} text", weigh=name == "dev")
            for name, text in texts.items()
            if text is not None
        }
        return Reports(reports, _offer(reports))

    @cached_property
    def ngrams(self) -> NgramBeside:
        """The n-gram model of the training text."""
        encoder = self.model.encoder
        return NgramBeside.fitted(self.text.ids, encoder.level, len(encoder.vocabulary))

    def resized(self, settings: Any) -> Self:
        """The same text for a model of other settings."""
        settings = with_batch_tokens(settings, len(self.text.ids))
        return replace(self, model=type(self.model).create(settings, self.model.encoder))

    def with_baselines(self) -> LanguageModel:
        """The model and the n-gram model beside it."""
        return replace(self.model, beside=self.ngrams)

    def scoring_seconds(self, dev_seconds: float) -> float:
        """By what the first lines take: one text is read after the other, not side by side."""
        lines = max(1, int(np.searchsorted(np.cumsum(self.dev_text.lengths), SAMPLE)))
        first = np.arange(len(self.dev_text)) < lines
        sample = EncodedLines(self.dev_text.rows.kept(first), characters=self.dev_text.characters)
        every = len(self.dev_text.ids) + (len(self.test_text.ids) if self.test_text else 0)
        taken = seconds_of(lambda: evaluate_encoded(self.model, sample, source="the dev text"))
        return taken * every / len(sample.ids)


def _offer(reports: Mapping[str, Report]) -> dict[str, str]:
    """A sentence, where mixing is worth it."""
    report = reports[max(reports)]  # test, if there is one
    if MIXTURE not in report.variants or not better(report.variants[MIXTURE][0], report.scores[0]):
        return {}
    return {MIXTURE: MIX}


def training_batches(model: LanguageModel, text: EncodedLines) -> StreamBatches | LineBatches:
    """A text in batches as the model's settings ask."""
    train, first = with_batch_tokens(model.settings, len(text.ids)).train, model.network.first
    if model.settings.model.context == "line":
        return LineBatches(text, first=first, batch_tokens=train.batch_tokens)
    columns = max(1, train.batch_tokens // train.steps)
    return StreamBatches(text, columns=columns, steps=train.steps, first=first)


def language_job(
    kind: type[LanguageModel], settings: Any, data: Mapping[str, Lines]
) -> LanguageJob:
    """Build the vocabulary from the training lines alone, then encode every text with it."""
    train = data["train"]
    if not any(line.strip() for line in train.lines):
        raise DataError(train.source, "holds no text, but there must be some to learn from.")
    data = with_dev(data, settings.train.holdout, settings.seed)
    encoder = TextEncoder.learn(data["train"].lines, settings.tokens)
    model = kind.create(settings, encoder)
    _check_vocabulary(encoder, train.source)
    embedding = model.network.embedding
    assert isinstance(embedding, nn.Embedding)
    found = begin_with_vectors(
        embedding,
        encoder.vocabulary.tokens,
        settings.model.vectors,
        level=settings.tokens.level,
        freeze=settings.model.freeze_vectors,
        tied=settings.model.tied,
    )
    encoded = {
        name: encode_known(model, text.lines, source=text.source) for name, text in data.items()
    }
    model = replace(model, settings=with_batch_tokens(settings, len(encoded["train"].ids)))
    if settings.model.context == "line":
        _check_lengths(encoded["train"], train.source)
    return LanguageJob(model, encoded["train"], encoded["dev"], encoded.get("test"), found)


def _check_vocabulary(encoder: TextEncoder, source: Path | str) -> None:
    ordinary = len(encoder.vocabulary) - len(SPECIALS)
    if ordinary < 2:
        raise DataError(
            source,
            f"gives a vocabulary of {ordinary} at level {encoder.level}, but a model chooses "
            "between 2 or more. Check tokens.level, tokens.min_count and the text.",
        )


def _check_lengths(encoded: EncodedLines, source: Path | str) -> None:
    longest = int(encoded.lengths.argmax())
    if encoded.lengths[longest] > MAX_LINE_TOKENS:
        raise DataError(
            source,
            f"has {encoded.lengths[longest]} tokens, but a line that is trained on by itself may "
            f'have {MAX_LINE_TOKENS}. Set model.context to "stream", or break the line.',
            line=longest + 1,
        )
