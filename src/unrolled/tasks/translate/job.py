"""A sequence-to-sequence model made ready for training: vocabularies, pairs, dictionary."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Self

import torch
from torch import Tensor

from unrolled.config.sections import TrainSettings
from unrolled.errors import DataError
from unrolled.tasks.shared.batch_size import with_batch_tokens
from unrolled.tasks.shared.lines import in_training, with_dev
from unrolled.tasks.shared.transfer import begin_with_vectors
from unrolled.tasks.translate.data import PairData, Pairs
from unrolled.tasks.translate.dictionary import word_dictionary
from unrolled.tasks.translate.model import TranslateModel
from unrolled.tasks.translate.report import dev_measure, evaluate_pairs
from unrolled.tasks.translate.settings import TranslateRun
from unrolled.tasks.translate.update import TranslateUpdate
from unrolled.text.pair_batch import PairBatch, PairBatches
from unrolled.text.parallel import Dropped, keep_lengths
from unrolled.training.clock import Dev
from unrolled.training.job import HELD_OUT, Reports, StepJob, seconds_of

SAMPLE = 64  # pairs that are translated to see how long it takes


@dataclass(frozen=True)
class TranslateJob(StepJob[TranslateModel]):
    """A sequence-to-sequence model, the pairs to learn from and those to be judged on."""

    model: TranslateModel
    pairs: PairData
    dev_pairs: PairData
    test_pairs: PairData | None
    dropped: Dropped
    in_training: Mapping[str, float] = field(default_factory=dict)  # pairs of other files

    @property
    def train(self) -> TrainSettings:
        """The settings of training."""
        return self.model.settings.train

    @cached_property
    def batches(self) -> PairBatches:
        """The training pairs."""
        return self.pairs.batches(self.train.batch_tokens)

    def epoch(self, seed: int, epoch: int) -> Sequence[PairBatch]:
        """The batches of an epoch, the same for the same arguments."""
        return self.batches.epoch(seed, epoch)

    def size(self, batch: PairBatch) -> int:
        """How many target tokens are predicted."""
        return int(batch.target.lengths.sum()) - len(batch.target.lengths)

    def update(self) -> TranslateUpdate:
        """Gradients, with shorter steps between decoder and source."""
        return TranslateUpdate(self.model, self.train)

    def facts(self) -> dict[str, float]:
        """What there is to learn from, and what was left out."""
        source, target = self.pairs.source, self.pairs.target
        left_out = {
            "empty": self.dropped.empty,
            "too_long": self.dropped.too_long,
            "too_unlike": self.dropped.ratio,
        }
        return {
            "lines": len(self.pairs.pairs),
            "tokens": len(target.ids),
            "unknown": target.unknown,
            "vocabulary": len(self.model.target.vocabulary),
            "padding": self.batches.padding_share(self.seed, 0),
            HELD_OUT: len(self.dev_pairs.pairs),
            "source_tokens": len(source.ids),
            "source_unknown": source.unknown,
            "source_vocabulary": len(self.model.source.vocabulary),
            "left_out": self.dropped.total,
            **{f"left_out_{why}": count for why, count in left_out.items() if count},
            **self.in_training,
        }

    def dev(self) -> Dev:
        """Perplexity on the development pairs."""
        return dev_measure(self.model, self.dev_pairs)

    @cached_property
    def dictionary(self) -> Tensor:
        """The target token that each source token goes with best (V,), by the training pairs."""
        source, target = self.pairs.source, self.pairs.target
        table = word_dictionary(
            source.ids,
            source.lengths,
            target.ids,
            target.lengths,
            source_size=len(self.model.source.vocabulary),
            target_size=len(self.model.target.vocabulary),
        )
        return torch.from_numpy(table)

    def resized(self, settings: TranslateRun) -> Self:
        """The same pairs for a model of other settings."""
        settings = with_batch_tokens(settings, self.pairs.places)
        model = TranslateModel.create(settings, self.model.source, self.model.target)
        model.from_training.longest.copy_(self.model.from_training.longest)
        return replace(self, model=model)

    def with_baselines(self) -> TranslateModel:
        """The model and its dictionary."""
        self.model.from_training.dictionary.copy_(self.dictionary)
        return self.model

    def scoring_seconds(self, dev_seconds: float) -> float:
        """By what the first pairs take: searching is slower than reading."""
        pairs = self.dev_pairs.pairs[:SAMPLE]
        every = len(self.dev_pairs.pairs) + (len(self.test_pairs.pairs) if self.test_pairs else 0)
        taken = seconds_of(lambda: evaluate_pairs(self.model, pairs))
        return taken * every / len(pairs)

    def reports(self, model: TranslateModel) -> Reports:
        """Scores of a finished model on the dev pairs and, where there are any, the test pairs."""
        files = {"dev": self.dev_pairs, "test": self.test_pairs}
        return Reports({name: evaluate_pairs(model, d.pairs) for name, d in files.items() if d})


def translate_job(settings: TranslateRun, data: Mapping[str, Pairs]) -> TranslateJob:
    """Vocabularies come from the training pairs alone."""
    given, data = data, with_dev(data, settings.train.holdout, settings.seed)
    train = data["train"]
    model = TranslateModel.build(settings, train.sources, train.targets)
    _begin_with_vectors(model)
    ready = {
        name: PairData.of(model.source, model.target, split.pairs) for name, split in data.items()
    }
    pairs, dropped = _fitting(settings, ready["train"], source=train.source)
    model = replace(model, settings=with_batch_tokens(settings, pairs.places))
    model.from_training.longest.fill_(int(pairs.target.lengths.max()))
    seen = in_training(given, lambda split: (f"{p.source}\t{p.target}" for p in split.pairs))
    return TranslateJob(model, pairs, ready["dev"], ready.get("test"), dropped, seen)


def _begin_with_vectors(model: TranslateModel) -> None:
    """Each side with its own, where they are given."""
    chosen, network = model.settings.model, model.network
    sides = (
        (
            network.source_embedding,
            model.source,
            chosen.source_vectors,
            network.source_only is None,
        ),
        (network.target_embedding, model.target, chosen.target_vectors, True),
    )
    for embedding, encoder, path, is_target in sides:
        begin_with_vectors(
            embedding,
            encoder.vocabulary.tokens,
            path,
            level=encoder.level,
            freeze=chosen.freeze_vectors,
            tied=is_target and chosen.tied,
        )


def _fitting(
    settings: TranslateRun, data: PairData, *, source: Path | str
) -> tuple[PairData, Dropped]:
    """The pairs whose sides are neither too long nor too unlike, and what was left out."""
    kept, dropped = keep_lengths(
        data.source.lengths - 1,
        data.target.lengths - 1,
        max_length=settings.train.max_length,
        max_ratio=settings.train.max_ratio,
    )
    if not kept.any():
        raise DataError(
            source,
            f"has no pair to learn from: {dropped}. Check train.max_length and train.max_ratio.",
        )
    return data.kept(kept), dropped
