"""A sequence-to-sequence model made ready for training: vocabularies, pairs, dictionary."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
import torch

from unrolled.config.translate import TranslateRun
from unrolled.errors import DataError
from unrolled.evaluate.report import Report
from unrolled.evaluate.translate import PairData, dev_loss, evaluate_pairs
from unrolled.models.dictionary import word_dictionary
from unrolled.models.folder import model_files
from unrolled.models.translate import TranslateModel
from unrolled.models.translate_network import TranslateNetwork
from unrolled.text.pair_batch import PairBatch, PairBatches
from unrolled.text.parallel import Dropped, Pair, keep_lengths, read_pairs
from unrolled.training.resume import Texts


@dataclass(frozen=True)
class TranslateJob:
    """What the training loop needs of a sequence-to-sequence model."""

    model: TranslateModel
    train: PairData
    dev: PairData
    dropped: Dropped
    test: PairData | None = None

    @property
    def network(self) -> TranslateNetwork:
        return self.model.network

    @cached_property
    def batches(self) -> PairBatches:
        """The training pairs."""
        return self.train.batches(self.model.settings.train.batch_tokens)

    def epoch(self, seed: int, epoch: int) -> Sequence[PairBatch]:
        """The batches of an epoch, the same for the same arguments."""
        return self.batches.epoch(seed, epoch)

    def facts(self, seed: int) -> dict[str, float]:
        """What there is to learn from, and what was left out."""
        return {
            "lines": len(self.train.pairs),
            "tokens": len(self.train.target.ids),
            "unknown": self.train.target.unknown,
            "vocabulary": len(self.model.target.vocabulary),
            "padding": self.batches.padding_share(seed, 0),
            "source_tokens": len(self.train.source.ids),
            "source_unknown": self.train.source.unknown,
            "source_vocabulary": len(self.model.source.vocabulary),
            "left_out": self.dropped.total,
            **{f"left_out_{why}": count for why, count in self._reasons() if count},
        }

    def _reasons(self) -> list[tuple[str, int]]:
        dropped = self.dropped
        return [
            ("empty", dropped.empty),
            ("too_long", dropped.too_long),
            ("too_unlike", dropped.ratio),
        ]

    def dev_loss(self) -> float:
        """Mean nats on the development pairs."""
        return dev_loss(self.model, self.dev)

    def best_files(self, dev_loss: float) -> dict[str, bytes]:
        """A model folder of the network as it stands."""
        metrics = json.dumps({"dev_loss": dev_loss}).encode()
        card = "# A sequence-to-sequence model under training\n\nThe best so far on dev pairs.\n"
        return model_files(self.model, self.network.state_dict(), metrics=metrics, card=card)

    def reports(self, model: TranslateModel) -> dict[str, Report]:
        """Scores of a finished model on the dev pairs and, where there are any, the test pairs."""
        files = {"dev": self.dev, "test": self.test}
        return {name: evaluate_pairs(model, data.pairs) for name, data in files.items() if data}


def translate_job(
    settings: TranslateRun, texts: Texts, sources: Mapping[str, Path | str]
) -> TranslateJob:
    """Read the pairs; vocabularies and dictionary come from the training pairs alone."""
    read = {name: read_pairs(lines, source=sources[name]) for name, lines in texts.items()}
    if "dev" not in read:
        read["train"], read["dev"] = hold_out(read["train"], settings, source=sources["train"])
    train = read.pop("train")
    sources_of, targets_of = [pair.source for pair in train], [pair.target for pair in train]
    model = TranslateModel.build(settings, sources_of, targets_of)
    kept, dropped = _fitting(settings, model, train, source=sources["train"])
    data = {name: PairData.of(model, pairs) for name, pairs in {"train": kept, **read}.items()}
    _remember(model, data["train"])
    return TranslateJob(model, dropped=dropped, **data)


def hold_out(
    pairs: Sequence[Pair], settings: TranslateRun, *, source: Path | str
) -> tuple[list[Pair], list[Pair]]:
    """Draw a share of the *sources*: all pairs of one go to the same side."""
    sources = sorted({pair.source for pair in pairs})
    count = round(len(sources) * settings.train.holdout) or 1
    if count >= len(sources):
        raise DataError(
            source,
            f"holds {len(sources)} different sources, so none can be kept for development. "
            "Give more, or name --dev.",
        )
    drawn = np.random.default_rng(settings.seed).permutation(len(sources))[:count]
    held = {sources[number] for number in drawn.tolist()}
    return (
        [pair for pair in pairs if pair.source not in held],
        [pair for pair in pairs if pair.source in held],
    )


def _fitting(
    settings: TranslateRun, model: TranslateModel, pairs: Sequence[Pair], *, source: Path | str
) -> tuple[list[Pair], Dropped]:
    """The pairs whose sides are neither too long nor too unlike, and what was left out."""
    data = PairData.of(model, pairs)
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
    return [pair for pair, wanted in zip(pairs, kept.tolist(), strict=True) if wanted], dropped


@torch.no_grad()
def _remember(model: TranslateModel, data: PairData) -> None:
    """What of the training pairs is kept beside the weights: dictionary and longest target."""
    table = word_dictionary(
        data.source.ids,
        data.source.lengths,
        data.target.ids,
        data.target.lengths,
        source_size=len(model.source.vocabulary),
        target_size=len(model.target.vocabulary),
    )
    model.network.dictionary.copy_(torch.from_numpy(table))
    model.network.longest.fill_(int(data.target.lengths.max()))
