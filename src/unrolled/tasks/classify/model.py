"""Classifiers as a user meets them: texts in, labels, probabilities and reasons out."""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from reprlib import repr as short
from typing import Any, Self, overload

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from unrolled.errors import not_one_of
from unrolled.tasks.classify.answers import Explanation, Labelled, Prediction
from unrolled.tasks.classify.network import ClassifyNetwork
from unrolled.tasks.classify.reader import (
    MAX_TOKENS,
    EncodedTexts,
    TextBatches,
    TextReader,
    build_reader,
    reader_from_files,
)
from unrolled.tasks.classify.settings import ClassifyRun, PredictOptions
from unrolled.tasks.shared.finite import numbers
from unrolled.tasks.shared.label_baselines import Baselines
from unrolled.tasks.shared.network_model import Answering, NetworkModel
from unrolled.tasks.shared.similar import similar_answers
from unrolled.tasks.shared.texts import one_text, text_list
from unrolled.tasks.task import Blocks
from unrolled.text.labels import LABELS_FILE, Labels
from unrolled.text.vocabulary import parse_object

CALIBRATION_FILE = "calibration.json"
TEMPERATURES = (0.01, 100.0)
BATCH_TOKENS = 8192  # tokens read at once
BESIDE = "baselines."  # what their tensors' names begin with
CUT_OFF = f"Longer than {MAX_TOKENS:,} tokens, and answered from the first of them"
YES = 0.5  # where a text may have several labels, it has those that are at least so probable


@dataclass(frozen=True)
class ClassifyModel(NetworkModel):
    """A trained classifier, and the baselines that were fitted beside it."""

    settings: ClassifyRun
    labels: Labels
    reader: TextReader
    network: ClassifyNetwork
    baselines: Baselines | None = None
    temperature: float = 1.0  # what logits are divided by: see calibration.py

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
        made = cls.create(settings, labels, reader, baselines)
        return replace(made, temperature=_temperature(files))

    def parts(self) -> Sequence[tuple[str, nn.Module]]:
        """The network, and the tables of the baselines."""
        beside = [(BESIDE, self.baselines)] if self.baselines else []
        return [("", self.network), *beside]

    def load_tensors(self, tensors: Mapping[str, Tensor], *, assign: bool = False) -> None:
        """As every model does; checkpoints once held baselines, which are fitted later now."""
        kept = {
            name: value
            for name, value in tensors.items()
            if self.baselines or not name.startswith(BESIDE)
        }
        super().load_tensors(kept, assign=assign)

    def files(self) -> dict[str, bytes]:
        """Vocabularies, labels, how large the baselines are, and the temperature if any."""
        return {
            **self.reader.files(),
            LABELS_FILE: self.labels.to_json().encode(),
            **(self.baselines.files() if self.baselines else {}),
            **({} if self.temperature == 1.0 else {CALIBRATION_FILE: self._calibration()}),
        }

    def _calibration(self) -> bytes:
        return (json.dumps({"temperature": self.temperature}) + "\n").encode()

    def about(self) -> dict[str, Any]:
        """Sizes that a user would ask for, by name."""
        return {
            "parameters": self.parameter_count(),
            "tokens in the vocabulary": len(self.reader.vocabulary),
            "labels": len(self.labels),
        }

    def answering(self) -> Mapping[str, Answering]:
        """What answers each use."""
        return {"predict": self._predicted, "similar": partial(similar_answers, self)}

    @torch.inference_mode()
    def sentence_vectors(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """What the softmax sees of texts (N, F)."""
        encoded = self.reader.encode(text_list(texts), cut=True)
        found = np.zeros((len(encoded), self.network.weight.size(1)), np.float32)
        for rows, batch in TextBatches(encoded, batch_tokens=BATCH_TOKENS).in_order():
            found[rows] = self.network(batch).sentence.numpy()
        return found

    def _predicted(
        self, blocks: Blocks, options: PredictOptions, source: Path | str
    ) -> Iterator[Labelled]:
        first = 1
        for block in blocks:
            texts = [given.text for given in block]
            rows = range(first, first + len(texts))
            encoded = self.reader.encode(text_list(texts), source=source, lines=rows, cut=True)
            assert encoded.cut is not None
            found = self.encoded_probabilities(encoded)
            for row, text, p, cut in zip(rows, texts, found, encoded.cut, strict=True):
                every = self.ranked(p) if options.all_labels else None
                prediction, multi_label = self.prediction(p), self.labels.multi_label
                given = (self, row, text, prediction, options.explain, multi_label, every)
                yield Labelled(*given, remarks=(CUT_OFF,) if cut else ())
            first += len(texts)

    def probabilities(
        self,
        texts: str | Iterable[str],
        *,
        source: Path | str = "<texts>",
        lines: Sequence[int] | None = None,
    ) -> NDArray[np.float64]:
        """Of each label for each text: (N, K); errors name the source and the line."""
        encoded = self.reader.encode(text_list(texts), source=source, lines=lines)
        return self.encoded_probabilities(encoded)

    def encoded_probabilities(self, encoded: EncodedTexts) -> NDArray[np.float64]:
        """The same for texts that are encoded already."""
        return self.of_logits(self.encoded_logits(encoded), self.temperature)

    @torch.inference_mode()
    def encoded_logits(self, encoded: EncodedTexts) -> NDArray[np.float64]:
        """What the network says of them before any softmax: (N, K)."""
        result = np.zeros((len(encoded), len(self.labels)))
        for rows, batch in TextBatches(encoded, batch_tokens=BATCH_TOKENS).in_order():
            logits = numbers(self.network(batch).logits, of="a text", finite=True)
            result[rows] = logits.numpy()
        return result

    def of_logits(self, logits: NDArray[np.float64], temperature: float) -> NDArray[np.float64]:
        """Probabilities (N, K) of logits."""
        scaled = torch.from_numpy(logits) / temperature
        return np.asarray(self.network.probabilities(scaled).numpy())

    @overload
    def predict(self, texts: str) -> Prediction: ...  # type: ignore[overload-overlap]  # a string is strings, too

    @overload
    def predict(self, texts: Iterable[str]) -> list[Prediction]: ...

    def predict(self, texts: str | Iterable[str]) -> Prediction | list[Prediction]:
        """What the model says of a text, or of each of several."""
        found = [self.prediction(row) for row in self.probabilities(texts)]
        return found[0] if isinstance(texts, str) else found

    def prediction(self, probabilities: NDArray[np.float64]) -> Prediction:
        """The labels that probabilities (K,) speak for."""
        chosen = [int(probabilities.argmax())]
        if self.labels.multi_label:
            chosen = np.flatnonzero(probabilities >= YES).tolist()
        names = tuple(self.labels.names[k] for k in chosen)
        return Prediction(names, tuple(float(probabilities[k]) for k in chosen))

    def ranked(self, probabilities: NDArray[np.float64]) -> Prediction:
        """Every label with its probability (K,), the likeliest first."""
        order = np.argsort(-probabilities, kind="stable").tolist()
        names = tuple(self.labels.names[k] for k in order)
        return Prediction(names, tuple(float(probabilities[k]) for k in order))

    def explain(self, text: str, *, label: str | None = None) -> Explanation:
        """Each token's part in what is said of a text, for a label or for the likeliest one."""
        encoded = self.reader.encode([one_text(text)], cut=True)
        batch = TextBatches(encoded, batch_tokens=BATCH_TOKENS).build(np.array([0]))
        with torch.no_grad():
            vectors = self.network.embedder(batch)  # (1, T, E)
        vectors.requires_grad_()
        with torch.enable_grad():
            reading = self.network.read(vectors, batch.lengths)
            logits = reading.logits / self.temperature
            probabilities = self.network.probabilities(logits.detach())[0]  # (K,)
            number = int(probabilities.argmax()) if label is None else self._number(label)
            (odds,) = self.network.log_odds(logits, number)
            (slope,) = torch.autograd.grad(odds, vectors)
        attention = reading.attention
        return Explanation(
            self.labels.names[number],
            float(probabilities[number]),
            self.reader.shown(text)[: encoded.tokens],
            None if attention is None else attention[0].tolist(),
            (slope * vectors).sum(dim=2)[0].tolist(),
        )

    def _number(self, label: str) -> int:
        if label not in self.labels.names:
            raise not_one_of("label", label, self.labels.names)
        return self.labels.names.index(label)


def _temperature(files: Mapping[str, bytes]) -> float:
    """What a folder says of it; 1 where it says nothing, as before there were temperatures."""
    if CALIBRATION_FILE not in files:
        return 1.0
    try:
        value = parse_object(files[CALIBRATION_FILE].decode(), keys={"temperature"})["temperature"]
    except ValueError as error:
        raise ValueError(f"{CALIBRATION_FILE}: {error}") from error
    least, most = TEMPERATURES
    if not isinstance(value, float) or not least <= value <= most:
        raise ValueError(
            f"{CALIBRATION_FILE}: temperature is {short(value)}, but must be in {least}..{most}"
        )
    return value
