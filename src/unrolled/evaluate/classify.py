"""Evaluate a classifier: scores beside the baselines on the same texts, and what lies behind them.

The baselines are fitted on the training data and kept with the model: models/baselines.py.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch

from unrolled.evaluate.labels import ONE, Judged, label_scores
from unrolled.evaluate.metrics import Floats
from unrolled.evaluate.report import Report
from unrolled.models.baselines import majority
from unrolled.models.classify import ClassifyModel
from unrolled.models.classify_text import EncodedTexts, LabelledBatches, TextReader
from unrolled.text.labelled import Example, read_examples
from unrolled.text.labels import Labels, Targets

BATCH_TOKENS = 8192  # tokens read at once
TIE = 0.001  # what nats may add to the share of wrong labels


@dataclass(frozen=True, eq=False)
class LabelledData:
    """Texts to evaluate on, encoded once, and their labels."""

    encoded: EncodedTexts
    targets: Targets

    @classmethod
    def of(
        cls, labels: Labels, reader: TextReader, examples: Sequence[Example], *, source: Path | str
    ) -> "LabelledData":
        """Made ready for a model of these labels; errors name the source."""
        targets = labels.targets(examples, source=source)
        texts = [example.text for example in examples]
        lines = [example.line for example in examples]
        return cls(reader.encode(texts, source=source, lines=lines), targets)


def evaluate_classify(model: ClassifyModel, lines: Iterable[str], *, source: Path | str) -> Report:
    """Scores of a model on a file's lines."""
    examples = read_examples(lines, source=source)
    data = LabelledData.of(model.labels, model.reader, examples, source=source)
    return evaluate_labelled(model, data)


def evaluate_labelled(model: ClassifyModel, data: LabelledData) -> Report:
    """Scores of a model on examples that are read already."""
    encoded, settings = data.encoded, model.settings
    counted = (
        f"examples:{len(encoded)}|tokens:{encoded.tokens}|unknown:{encoded.unknown}"
        f"|level:{settings.tokens.level}|labels:{len(model.labels)}"
    )
    first = first_measure(model)
    own = model.encoded_probabilities(encoded)
    scores = {
        name: label_scores(probabilities, data.targets, counted=counted, first=first)
        for name, probabilities in {"model": own, **baselines(model, encoded)}.items()
    }
    return Report(scores.pop("model"), scores, details(own, data.targets, model.labels))


def first_measure(model: ClassifyModel) -> str:
    """The measure that a model was trained for."""
    balanced = model.settings.model.class_weights == "balanced" and not model.labels.several
    return "balanced_accuracy" if balanced else "accuracy"


def baselines(model: ClassifyModel, encoded: EncodedTexts) -> dict[str, Floats]:
    """What the baselines that a model has say of texts: (N, K) by name."""
    kept = model.network.baselines
    return kept.probabilities(encoded) if kept else {"majority": majority(model.labels, encoded)}


def dev_loss(model: ClassifyModel, data: LabelledData) -> float:
    """One less the measure that comes first in a report; nats settle what it leaves open.

    A network grows surer than it should while it still learns to tell labels apart, so by nats
    alone training would end too soon. They count for less than one text in a thousand. Where a
    text may have several labels, being right in all of them says little at first: there, nats.
    """
    nats = mean_nats(model, data)
    if model.labels.several:
        return nats
    judged = Judged.of(model.encoded_probabilities(data.encoded), data.targets)
    right = ONE[first_measure(model)](judged.sums(np.ones((1, len(data.targets)))))
    return 1.0 - float(right[0]) + TIE * nats / (1.0 + nats)


def mean_nats(model: ClassifyModel, data: LabelledData) -> float:
    """A target's, weighted as in training."""
    batches = LabelledBatches(data.encoded, data.targets, batch_tokens=BATCH_TOKENS)
    with torch.inference_mode():
        losses = [model.network.loss(batch) for _, batch in batches.in_order()]
    return sum(float(loss.nats) for loss in losses) / sum(loss.predictions for loss in losses)


def details(probabilities: Floats, targets: Targets, labels: Labels) -> dict[str, Any]:
    """Rates of each label; where one excludes the others, what was taken for what."""
    found: dict[str, Any] = {"by_label": by_label(probabilities, targets, labels)}
    if not labels.several:
        found["confusion"] = confusion(probabilities, targets, labels)
    return found


def by_label(
    probabilities: Floats, targets: Targets, labels: Labels
) -> dict[str, dict[str, float]]:
    """Precision, recall and F1 of each label, and how many texts have it."""
    sums = Judged.of(probabilities, targets).sums(np.ones((1, len(targets))))
    columns = zip(labels.names, sums.right[0], sums.said[0], sums.true[0], strict=True)
    return {
        name: {
            "precision": float(right / max(said, 1.0)),
            "recall": float(right / max(true, 1.0)),
            "f1": float(2.0 * right / max(said + true, 1.0)),
            "count": int(true),
        }
        for name, right, said, true in columns
    }


def confusion(probabilities: Floats, targets: Targets, labels: Labels) -> dict[str, dict[str, int]]:
    """How often texts of a label were given each label: the right one outside; zeros left out."""
    pairs, counts = np.unique(
        np.stack([targets, probabilities.argmax(axis=1)]), axis=1, return_counts=True
    )
    table: dict[str, dict[str, int]] = {labels.names[k]: {} for k in np.unique(targets)}
    for true, said, count in zip(*pairs, counts, strict=True):
        table[labels.names[true]][labels.names[said]] = int(count)
    return table
