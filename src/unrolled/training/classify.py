"""A classifier made ready for training: labels, vocabulary, baselines, batches, dev examples."""

import json
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
import torch

from unrolled.config.classify import ClassifyRun
from unrolled.errors import DataError
from unrolled.evaluate.classify import LabelledData, dev_loss, evaluate_labelled
from unrolled.evaluate.linear import fit_linear
from unrolled.evaluate.report import Report
from unrolled.models.baselines import MAX_NUMBERS, Baselines, BaselineSizes
from unrolled.models.classify import ClassifyModel
from unrolled.models.classify_network import ClassifyNetwork
from unrolled.models.classify_text import LabelledBatch, LabelledBatches, TextReader, build_reader
from unrolled.models.folder import model_files
from unrolled.text.labelled import Example, read_examples
from unrolled.text.labels import Labels
from unrolled.text.tokens import SPECIALS
from unrolled.training.memory import fit
from unrolled.training.resume import Texts

MEAN_MODEL = {"kind": "mean", "embedding_size": 50, "dropout": 0.2, "characters": "none"}
MEAN_TRAIN = {"learning_rate": 0.01, "batch_tokens": 2048, "epochs": 10, "schedule": "cosine"}


@dataclass(frozen=True)
class ClassifyJob:
    """What the training loop needs of a classifier."""

    model: ClassifyModel
    train: LabelledData
    dev: LabelledData
    test: LabelledData | None = None

    @property
    def network(self) -> ClassifyNetwork:
        return self.model.network

    @cached_property
    def batches(self) -> LabelledBatches:
        """The training examples."""
        batch_tokens = self.model.settings.train.batch_tokens
        return LabelledBatches(self.train.encoded, self.train.targets, batch_tokens=batch_tokens)

    def epoch(self, seed: int, epoch: int) -> Sequence[LabelledBatch]:
        """The batches of an epoch, the same for the same arguments."""
        return self.batches.epoch(seed, epoch)

    def facts(self, seed: int) -> dict[str, float]:
        """What there is to learn from, and how well the other files fit to it."""
        encoded = self.train.encoded
        return {
            "lines": len(encoded),
            "tokens": encoded.tokens,
            "unknown": encoded.unknown,
            "vocabulary": len(self.model.reader.vocabulary),
            "labels": len(self.model.labels),
            "padding": self.batches.padding_share(seed, 0),
            **_overlap("dev", self.dev),
            **(_overlap("test", self.test) if self.test else {}),
        }

    def dev_loss(self) -> float:
        """How far the model is from labelling the development examples rightly."""
        return dev_loss(self.model, self.dev)

    def best_files(self, dev_loss: float) -> dict[str, bytes]:
        """A model folder of the network as it stands."""
        metrics = json.dumps({"dev_loss": dev_loss}).encode()
        card = "# A classifier under training\n\nThe best so far on held-out texts.\n"
        return model_files(self.model, self.network.state_dict(), metrics=metrics, card=card)

    def reports(self, model: ClassifyModel) -> dict[str, Report]:
        """Scores of a finished model on the dev data and, where there are any, the test data."""
        files = {"dev": self.dev, "test": self.test}
        return {name: evaluate_labelled(model, data) for name, data in files.items() if data}


def _overlap(name: str, data: LabelledData) -> dict[str, float]:
    return {f"{name}_tokens": data.encoded.tokens, f"{name}_unknown": data.encoded.unknown}


def classify_job(
    settings: ClassifyRun, texts: Texts, sources: Mapping[str, Path | str]
) -> ClassifyJob:
    """Read the files; labels, vocabulary and baselines come from the training file alone."""
    read = {name: read_examples(lines, source=sources[name]) for name, lines in texts.items()}
    return job_of(settings, read, sources)


def job_of(
    settings: ClassifyRun,
    read: Mapping[str, Sequence[Example]],
    sources: Mapping[str, Path | str],
    *,
    several: bool = False,
    baselines: bool = True,
) -> ClassifyJob:
    """The job of examples that are read already; without a `dev` some are held out."""
    labels = Labels.build(read["train"], source=sources["train"], several=several)
    if "dev" not in read:
        train, dev = hold_out(read["train"], settings, source=sources["train"])
        read, sources = {**read, "train": train, "dev": dev}, {**sources, "dev": sources["train"]}
    reader = build_reader(settings, [example.text for example in read["train"]])
    _check_vocabulary(settings, reader, sources["train"])
    data = {
        name: LabelledData.of(labels, reader, examples, source=sources[name])
        for name, examples in read.items()
    }
    beside = fit_baselines(settings, labels, reader, data) if baselines else None
    model = ClassifyModel.create(settings, labels, reader, beside)
    return ClassifyJob(model, **data)


def hold_out(
    examples: Sequence[Example], settings: ClassifyRun, *, source: Path | str
) -> tuple[list[Example], list[Example]]:
    """Draw a share of the examples, the same of each label; a label's last one is never drawn.

    Files are often sorted by label, so the last lines would not do.
    """
    drawn: dict[tuple[str, ...], list[int]] = defaultdict(list)
    for number in np.random.default_rng(settings.seed).permutation(len(examples)).tolist():
        drawn[examples[number].labels[:1]].append(number)
    places = {  # of each but the first of its label, how far back it stands among its like
        number: (rank + 0.5) / len(group)
        for group in drawn.values()
        for rank, number in enumerate(group)
        if rank > 0
    }
    if not places:
        raise DataError(
            source,
            f"holds {len(examples)} examples, no two of one label, so none can be kept for "
            "development. Give more, or name --dev.",
        )
    count = max(1, round(len(examples) * settings.train.holdout))
    held = set(sorted(places, key=lambda number: -places[number])[:count])
    return (
        [example for number, example in enumerate(examples) if number not in held],
        [examples[number] for number in sorted(held)],
    )


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
    own = settings.model_copy(
        update={
            "model": settings.model.model_copy(update=MEAN_MODEL),
            "train": settings.train.model_copy(update=MEAN_TRAIN),
        }
    )
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(settings.seed)
        job = ClassifyJob(ClassifyModel.create(own, labels, reader), data["train"], data["dev"])
        fit(job, own.train, seed=settings.seed)
    return job.network


def _check_vocabulary(settings: ClassifyRun, reader: TextReader, source: Path | str) -> None:
    if len(reader.vocabulary) == len(SPECIALS):
        raise DataError(
            source,
            f"gives no token that occurs {settings.tokens.min_count} times at level "
            f"{settings.tokens.level}, but a classifier must know some. Check tokens.min_count, "
            "and that the label comes first and the text second.",
        )
