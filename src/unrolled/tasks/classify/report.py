"""Evaluate a classifier: scores beside the baselines on the same texts, and what lies behind them.

The baselines are fitted on the training data and kept with the model: baselines.py.
"""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import torch

from unrolled.evaluate.bootstrap import Floats
from unrolled.evaluate.labels import ONE, Judged, label_measures, label_scores
from unrolled.evaluate.measure import Measure
from unrolled.evaluate.report import Report
from unrolled.tasks.classify import calibration
from unrolled.tasks.classify.data import LabelledData
from unrolled.tasks.classify.model import ClassifyModel
from unrolled.tasks.classify.reader import EncodedTexts, LabelledBatches
from unrolled.tasks.shared.label_baselines import majority
from unrolled.text.labels import Labels, Targets
from unrolled.training.clock import Dev

BATCH_TOKENS = 8192  # tokens read at once
TIE = 0.001  # what nats may add to the share of wrong labels


def evaluate_labelled(model: ClassifyModel, data: LabelledData) -> Report:
    """Scores of a model on examples, beside the baselines'."""
    encoded, counted, first = data.encoded, _counted(model, data), first_measure(model)
    logits = model.encoded_logits(encoded)
    own = model.of_logits(logits, model.temperature)
    scores = {
        name: label_scores(probabilities, data.targets, counted=counted, first=first)
        for name, probabilities in {"model": own, **baselines(model, encoded)}.items()
    }
    more = calibration.details(model, logits, data.targets)
    return Report.of(scores, details(own, data, model.labels) | more)


def measured_labels(model: ClassifyModel, data: LabelledData) -> list[Measure]:
    """The model's scores, with what they are made of."""
    own, first = model.encoded_probabilities(data.encoded), first_measure(model)
    return label_measures(own, data.targets, counted=_counted(model, data), first=first)


def _counted(model: ClassifyModel, data: LabelledData) -> dict[str, object]:
    encoded = data.encoded
    return {
        "examples": len(encoded),
        "tokens": encoded.tokens,
        "unknown": encoded.unknown,
        "level": model.settings.tokens.level,
        "labels": len(model.labels),
    }


def first_measure(model: ClassifyModel) -> str:
    """The measure that a model was trained for."""
    balanced = model.settings.model.class_weights == "balanced" and not model.labels.multi_label
    return "balanced_accuracy" if balanced else "accuracy"


def baselines(model: ClassifyModel, encoded: EncodedTexts) -> dict[str, Floats]:
    """What the baselines that a model has say of texts: (N, K) by name."""
    kept = model.baselines
    return kept.probabilities(encoded) if kept else {"majority": majority(model.labels, encoded)}


def dev_measure(model: ClassifyModel, data: LabelledData) -> Dev:
    """The measure that comes first in a report; the cost is one less it, and nats settle ties.

    A network grows surer than it should while it still learns to tell labels apart, so by nats
    alone training would end too soon. They count for less than one text in a thousand. Where a
    text may have several labels, being right in all of them says little at first: there, nats.
    """
    nats = mean_nats(model, data)
    if model.labels.multi_label or not math.isfinite(nats):
        return Dev("loss", nats, nats)
    measure = first_measure(model)
    judged = Judged.of(model.encoded_probabilities(data.encoded), data.targets)
    right = float(ONE[measure](judged.sums(np.ones((1, len(data.targets)))))[0])
    return Dev(measure, right, 1.0 - right + TIE * nats / (1.0 + nats))


def mean_nats(model: ClassifyModel, data: LabelledData) -> float:
    """A target's, weighted as in training; labels that training data do not have are left out."""
    several = data.targets.ndim == 2
    targets = data.targets[:, : len(model.labels)] if several else data.targets
    left_out = np.zeros(len(targets), bool) if several else data.of_unseen
    batches = LabelledBatches(data.encoded, targets, batch_tokens=BATCH_TOKENS)
    total, count = 0.0, 0
    with torch.inference_mode():
        for rows, batch in batches.in_order():
            known = rows[~left_out[rows]]
            if len(known):
                loss = model.network.loss(
                    batch if len(known) == len(rows) else batches.build(known)
                )
                total, count = total + float(loss.total), count + loss.count
    return total / count


def details(probabilities: Floats, data: LabelledData, labels: Labels) -> dict[str, Any]:
    """Rates of each label; where one excludes the others, what was taken for what."""
    targets, names = data.targets, (*labels.names, *data.unseen)
    found: dict[str, Any] = {"by_label": by_label(probabilities, targets, names)}
    if not labels.multi_label:
        found["confusion"] = confusion(probabilities, targets, names)
    if data.unseen:
        rates = found["by_label"]
        unseen = {name: int(rates[name]["count"]) for name in data.unseen}
        found["labels_not_in_training_data"] = unseen
    return found


def by_label(
    probabilities: Floats, targets: Targets, names: Sequence[str]
) -> dict[str, dict[str, float]]:
    """Precision, recall and F1 of each label, and how many texts have it."""
    sums = Judged.of(probabilities, targets).sums(np.ones((1, len(targets))))
    columns = zip(names, sums.right[0], sums.said[0], sums.true[0], strict=True)
    return {
        name: {
            "precision": float(right / max(said, 1.0)),
            "recall": float(right / max(true, 1.0)),
            "f1": float(2.0 * right / max(said + true, 1.0)),
            "count": int(true),
        }
        for name, right, said, true in columns
    }


def confusion(
    probabilities: Floats, targets: Targets, names: Sequence[str]
) -> dict[str, dict[str, int]]:
    """How often texts of a label were given each label: the right one outside; zeros left out."""
    pairs, counts = np.unique(
        np.stack([targets, probabilities.argmax(axis=1)]), axis=1, return_counts=True
    )
    table: dict[str, dict[str, int]] = {names[k]: {} for k in np.unique(targets)}
    for true, said, count in zip(*pairs, counts, strict=True):
        table[names[true]][names[said]] = int(count)
    return table
