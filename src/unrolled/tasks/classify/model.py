"""Classifiers as a user meets them: texts in, labels, probabilities and reasons out."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

from unrolled.errors import not_one_of
from unrolled.tasks.classify.answers import Explanation, Labelled, Prediction
from unrolled.tasks.classify.baselines import Baselines
from unrolled.tasks.classify.network import ClassifyNetwork
from unrolled.tasks.classify.reader import (
    EncodedTexts,
    TextBatches,
    TextReader,
    build_reader,
    reader_from_files,
)
from unrolled.tasks.classify.settings import ClassifyRun, PredictOptions
from unrolled.tasks.shared.network_model import Answering, NetworkModel
from unrolled.tasks.task import Blocks
from unrolled.text.labels import LABELS_FILE, Labels

BATCH_TOKENS = 8192  # tokens read at once
YES = 0.5  # where a text may have several labels, it has those that are at least so probable


@dataclass(frozen=True)
class ClassifyModel(NetworkModel):
    """A trained classifier, and the baselines that were fitted beside it."""

    settings: ClassifyRun
    labels: Labels
    reader: TextReader
    network: ClassifyNetwork
    baselines: Baselines | None = None

    @classmethod
    def create(
        cls,
        settings: ClassifyRun,
        labels: Labels,
        reader: TextReader,
        baselines: Baselines | None = None,
    ) -> Self:
        """A model with fresh weights, drawn from torch's generator."""
        counts, characters = reader.vocabulary.counts, reader.character_count
        network = ClassifyNetwork(settings.model, labels, counts, characters)
        return cls(settings, labels, reader, network, baselines)

    @classmethod
    def build(cls, settings: ClassifyRun, labels: Labels, texts: Sequence[str]) -> Self:
        """The same, its vocabulary that of training texts."""
        return cls.create(settings, labels, build_reader(settings, texts))

    @classmethod
    def restore(cls, settings: ClassifyRun, files: Mapping[str, bytes]) -> Self:
        """The model that a folder's files describe, its weights still to be read."""
        if LABELS_FILE not in files:
            raise ValueError(f"{LABELS_FILE} is missing")
        try:
            labels = Labels.from_json(files[LABELS_FILE].decode())
        except ValueError as error:
            raise ValueError(f"{LABELS_FILE}: {error}") from error
        reader = reader_from_files(settings, files)
        size = len(reader.vocabulary)
        baselines = Baselines.from_files(files, labels, vocabulary_size=size)
        return cls.create(settings, labels, reader, baselines)

    def parts(self) -> Sequence[tuple[str, nn.Module]]:
        """The network, and the tables of the baselines."""
        beside = [("baselines.", self.baselines)] if self.baselines else []
        return [("", self.network), *beside]

    def files(self) -> dict[str, bytes]:
        """Vocabularies, labels, and how large the baselines are."""
        return {
            **self.reader.files(),
            LABELS_FILE: self.labels.to_json().encode(),
            **(self.baselines.files() if self.baselines else {}),
        }

    def about(self) -> dict[str, Any]:
        """Sizes that a user would ask for, by name."""
        return {
            "parameters": self.parameter_count(),
            "tokens in the vocabulary": len(self.reader.vocabulary),
            "labels": len(self.labels),
        }

    def answering(self) -> Mapping[str, Answering]:
        """What answers each use."""
        return {"predict": self._predicted}

    def _predicted(
        self, blocks: Blocks, options: PredictOptions, source: Path | str
    ) -> Iterator[Labelled]:
        first = 1
        for block in blocks:
            texts = [given.text for given in block]
            rows = range(first, first + len(texts))
            predictions = self.predict(texts, source=source, lines=rows)
            for row, text, prediction in zip(rows, texts, predictions, strict=True):
                multi_label = self.labels.multi_label
                yield Labelled(self, row, text, prediction, options.explain, multi_label)
            first += len(texts)

    def probabilities(
        self,
        texts: Sequence[str],
        *,
        source: Path | str = "<texts>",
        lines: Sequence[int] | None = None,
    ) -> NDArray[np.float64]:
        """Of each label for each text: (N, K); errors name the source and the line."""
        encoded = self.reader.encode(texts, source=source, lines=lines)
        return self.encoded_probabilities(encoded)

    @torch.inference_mode()
    def encoded_probabilities(self, encoded: EncodedTexts) -> NDArray[np.float64]:
        """The same for texts that are encoded already."""
        result = np.zeros((len(encoded), len(self.labels)))
        for rows, batch in TextBatches(encoded, batch_tokens=BATCH_TOKENS).in_order():
            result[rows] = self.network.probabilities(self.network(batch).logits).numpy()
        return result

    def predict(
        self,
        texts: Sequence[str],
        *,
        source: Path | str = "<texts>",
        lines: Sequence[int] | None = None,
    ) -> list[Prediction]:
        """What the model says of each text."""
        rows = self.probabilities(texts, source=source, lines=lines)
        return [self.prediction(row) for row in rows]

    def prediction(self, probabilities: NDArray[np.float64]) -> Prediction:
        """The labels that probabilities (K,) speak for."""
        chosen = [int(probabilities.argmax())]
        if self.labels.multi_label:
            chosen = np.flatnonzero(probabilities >= YES).tolist()
        names = tuple(self.labels.names[k] for k in chosen)
        return Prediction(names, tuple(float(probabilities[k]) for k in chosen))

    def explain(self, text: str, *, label: str | None = None) -> Explanation:
        """Each token's part in what is said of a text, for a label or for the likeliest one."""
        encoded = self.reader.encode([text])
        batch = TextBatches(encoded, batch_tokens=BATCH_TOKENS).build(np.array([0]))
        with torch.no_grad():
            vectors = self.network.embedder(batch)  # (1, T, E)
        vectors.requires_grad_()
        with torch.enable_grad():
            reading = self.network.read(vectors, batch.lengths)
            probabilities = self.network.probabilities(reading.logits.detach())[0]  # (K,)
            number = int(probabilities.argmax()) if label is None else self._number(label)
            (odds,) = self.network.log_odds(reading.logits, number)
            (slope,) = torch.autograd.grad(odds, vectors)
        attention = reading.attention
        return Explanation(
            self.labels.names[number],
            float(probabilities[number]),
            self.reader.shown(text),
            None if attention is None else attention[0].tolist(),
            (slope * vectors).sum(dim=2)[0].tolist(),
        )

    def _number(self, label: str) -> int:
        if label not in self.labels.names:
            raise not_one_of("label", label, self.labels.names)
        return self.labels.names.index(label)
