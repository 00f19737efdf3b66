"""A classifier made ready for training: labels, vocabulary, baselines, batches, dev examples."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Self

import torch

from unrolled.config.sections import TrainSettings
from unrolled.errors import DataError
from unrolled.tasks.classify import calibration
from unrolled.tasks.classify.data import Examples, LabelledData
from unrolled.tasks.classify.model import ClassifyModel
from unrolled.tasks.classify.network import ClassifyNetwork
from unrolled.tasks.classify.reader import (
    LabelledBatch,
    LabelledBatches,
    TextReader,
    build_reader,
)
from unrolled.tasks.classify.report import dev_measure, evaluate_labelled
from unrolled.tasks.classify.settings import ClassifyRun
from unrolled.tasks.shared.batch_size import with_batch_tokens
from unrolled.tasks.shared.label_baselines import MAX_NUMBERS, Baselines, BaselineSizes
from unrolled.tasks.shared.linear_baseline import fit_linear
from unrolled.tasks.shared.lines import in_training, with_dev
from unrolled.tasks.shared.transfer import begin_with_vectors
from unrolled.text.labels import Labels
from unrolled.text.tokens import SPECIALS
from unrolled.training.clock import Dev
from unrolled.training.in_memory import fit_in_memory
from unrolled.training.job import HELD_OUT, Fitted, Reports, StepJob
from unrolled.training.run_folder import RunFolder
from unrolled.training.watch import Watch

MEAN_MODEL = {"kind": "mean", "embedding_size": 50, "dropout": 0.2, "characters": "none"}
MEAN_TRAIN = {"learning_rate": 0.01, "schedule": "cosine", "minutes": None}
MEAN_TOKENS = 12_000_000  # that the mean of embeddings reads at most, in two epochs or more


@dataclass(frozen=True)
class ClassifyJob(StepJob[ClassifyModel]):
    """A classifier, the examples to learn from and those to be judged on."""

    unit = "texts"

    model: ClassifyModel
    examples: LabelledData
    dev_examples: LabelledData
    test_examples: LabelledData | None = None
    in_training: Mapping[str, float] = field(default_factory=dict)  # texts of other files
    vectors_found: int = 0

    @property
    def train(self) -> TrainSettings:
        """The settings of training."""
        return self.model.settings.train

    @cached_property
    def batches(self) -> LabelledBatches:
        """The training examples."""
        data, batch_tokens = self.examples, self.train.batch_tokens
        return LabelledBatches(data.encoded, data.targets, batch_tokens=batch_tokens)

    def epoch(self, seed: int, epoch: int) -> Sequence[LabelledBatch]:
        """The batches of an epoch, the same for the same arguments."""
        return self.batches.epoch(seed, epoch)

    def size(self, batch: LabelledBatch) -> int:
        """How many texts it holds."""
        return len(batch.targets)

    def facts(self) -> dict[str, float]:
        """What there is to learn from, and how well the other files fit to it."""
        encoded = self.examples.encoded
        others = {"dev": self.dev_examples, "test": self.test_examples}
        return {
            "lines": len(encoded),
            "tokens": encoded.tokens,
            "unknown": encoded.unknown,
            "vocabulary": len(self.model.reader.vocabulary),
            "labels": len(self.model.labels),
            "padding": self.batches.padding_share(self.seed, 0),
            HELD_OUT: len(self.dev_examples.encoded),
            **{
                f"{name}_{what}": value
                for name, data in others.items()
                if data is not None
                for what, value in (
                    ("tokens", data.encoded.tokens),
                    ("unknown", data.encoded.unknown),
                    ("unseen_labels", len(data.unseen)),
                    ("texts_of_unseen_labels", int(data.of_unseen.sum())),
                )
                if value or not what.endswith("labels")
            },
            **({"vectors_found": self.vectors_found} if self.vectors_found else {}),
            **self.in_training,
        }

    def dev(self) -> Dev:
        """How well the model labels the development examples."""
        return dev_measure(self.model, self.dev_examples)

    @cached_property
    def baselines(self) -> Baselines:
        """The mean of embeddings and the linear model, fitted on the training examples."""
        model, data = self.model, {"train": self.examples, "dev": self.dev_examples}
        return fit_baselines(model.settings, model.labels, model.reader, data)

    def resized(self, settings: ClassifyRun) -> Self:
        """The same examples for a model of other settings."""
        settings = with_batch_tokens(settings, self.examples.encoded.tokens)
        return replace(
            self, model=ClassifyModel.create(settings, self.model.labels, self.model.reader)
        )

    def with_baselines(self) -> ClassifyModel:
        """The model and their tables."""
        return replace(self.model, baselines=self.baselines)

    def scoring_seconds(self, dev_seconds: float) -> float:
        """The test examples are read as the dev examples are."""
        test = self.test_examples.encoded.tokens if self.test_examples else 0
        return dev_seconds * (1.0 + test / max(1, self.dev_examples.encoded.tokens))

    def reports(self, model: ClassifyModel) -> Reports:
        """Scores of a finished model on the dev data and, where there are any, the test data."""
        files = {"dev": self.dev_examples, "test": self.test_examples}
        reports = {name: evaluate_labelled(model, d) for name, d in files.items() if d}
        found = reports["dev"].details.get("calibration")
        return Reports(reports, {"calibration": calibration.note(found)} if found else {})

    def fit(self, run: RunFolder, watch: Watch) -> Fitted[ClassifyModel]:
        """Train to the end, then see to it that probabilities can be believed."""
        fitted = super().fit(run, watch)
        return fitted._replace(model=calibration.calibrated(fitted.model, self.dev_examples))


def classify_job(
    settings: ClassifyRun,
    data: Mapping[str, Examples],
    *,
    multi_label: bool = False,
) -> ClassifyJob:
    """Labels and vocabulary come from the training examples alone."""
    source = data["train"].source
    labels = Labels.build(data["train"].examples, source=source, multi_label=multi_label)
    given, data = data, with_dev(data, settings.train.holdout, settings.seed)
    reader = build_reader(settings, [example.text for example in data["train"].examples])
    _check_vocabulary(settings, reader, source)
    ready = {name: LabelledData.of(labels, reader, split) for name, split in data.items()}
    settings = with_batch_tokens(settings, ready["train"].encoded.tokens)
    model = ClassifyModel.create(settings, labels, reader)
    found = begin_with_vectors(
        model.network.embedder.embedding,
        reader.vocabulary.tokens,
        settings.model.vectors,
        level=settings.tokens.level,
        freeze=settings.model.freeze_vectors,
    )
    seen = in_training(given, lambda split: (example.text for example in split.examples))
    return ClassifyJob(model, ready["train"], ready["dev"], ready.get("test"), seen, found)


def fit_baselines(
    settings: ClassifyRun, labels: Labels, reader: TextReader, data: Mapping[str, LabelledData]
) -> Baselines:
    """The mean of embeddings and the linear model, on the training examples."""
    size = len(reader.vocabulary)
    linear = fit_linear(
        data["train"].encoded,
        data["train"].targets,
        labels,
        level=settings.tokens.level,
        vocabulary_size=size,
        class_weights=settings.model.class_weights,
    )
    tokens = max(len(SPECIALS), min(size, MAX_NUMBERS // len(labels)))
    sizes = BaselineSizes(len(linear.keys), linear.order, tokens)
    baselines = Baselines(labels, sizes, vocabulary_size=size)
    baselines.keep_linear(linear.keys, linear.idf, linear.weight, linear.bias)
    mean = fit_mean(settings, labels, reader, data)
    baselines.keep_mean(mean.embedder.embedding.weight, mean.weight, mean.bias)
    return baselines


def fit_mean(
    settings: ClassifyRun, labels: Labels, reader: TextReader, data: Mapping[str, LabelledData]
) -> ClassifyNetwork:
    """A classifier of the mean of embeddings, which leaves torch's generator as it was."""
    tokens = data["train"].encoded.tokens
    own = settings.model_copy(
        update={
            "model": settings.model.model_copy(update=MEAN_MODEL),
            "train": settings.train.model_copy(update={**MEAN_TRAIN, **_reading(tokens)}),
        }
    )
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(settings.seed)
        job = ClassifyJob(ClassifyModel.create(own, labels, reader), data["train"], data["dev"])
        fit_in_memory(job)
    return job.model.network


def _reading(tokens: int) -> dict[str, int]:
    """How often, and in what batches, so many tokens are read for the mean of embeddings."""
    return {
        "epochs": min(10, max(2, MEAN_TOKENS // max(1, tokens))),
        "batch_tokens": min(16_384, max(2048, tokens // 128)),
    }


def _check_vocabulary(settings: ClassifyRun, reader: TextReader, source: Path | str) -> None:
    if len(reader.vocabulary) == len(SPECIALS):
        raise DataError(
            source,
            f"gives no token that occurs {settings.tokens.min_count} times at level "
            f"{settings.tokens.level}, but a classifier must know some. Check tokens.min_count, "
            "and that the label comes first and the text second.",
        )
