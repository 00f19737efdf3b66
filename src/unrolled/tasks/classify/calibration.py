"""Probabilities that can be believed: temperature scaling (Guo et al. 2017, arXiv:1706.04599).

    P(label | text) = softmax(z / T),    T > 0 the one that makes the dev data likeliest

One number for all logits z, so the likeliest label stays the likeliest. A network that is surer
than it should be has T > 1. The nats are convex in 1/T, so halving an interval finds where their
slope is 0.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import torch
from torch.nn import functional

from unrolled.evaluate.bootstrap import Floats
from unrolled.evaluate.labels import Judged, ece
from unrolled.tasks.classify.data import LabelledData
from unrolled.tasks.classify.model import ClassifyModel
from unrolled.text.labels import Targets

HALVINGS = 60
LEAST, MOST = 0.05, 20.0  # of T


def calibrated(model: ClassifyModel, data: LabelledData) -> ClassifyModel:
    """The model; with a temperature where it is worse calibrated than the linear baseline.

    Both are judged, and the temperature is fitted, on the dev data. Few examples can be likelier by
    chance: one half's temperature must serve the other half, too.
    """
    if model.baselines is None:
        return model
    own = calibration_error(model.encoded_probabilities(data.encoded), data.targets)
    linear = model.baselines.probabilities(data.encoded)["linear"]
    logits, targets = _of_known_labels(model.encoded_logits(data.encoded), data.targets)
    if own <= calibration_error(linear, data.targets) or not serves_others(logits, targets):
        return model
    scaled = replace(model, temperature=fit_temperature(logits, targets))
    after = calibration_error(scaled.encoded_probabilities(data.encoded), data.targets)
    return scaled if after < own else model


def serves_others(logits: Floats, targets: Targets) -> bool:
    """Whether a temperature fitted on every other example makes the rest likelier, both ways."""
    halves = [(logits[start::2], targets[start::2]) for start in (0, 1)]
    return all(
        len(rest[1]) > 0 and _nats(*rest, fit_temperature(*half)) < _nats(*rest, 1.0)
        for half, rest in (halves, halves[::-1])
    )


def _nats(logits: Floats, targets: Targets, temperature: float) -> float:
    z, true = torch.from_numpy(logits / temperature), torch.from_numpy(np.asarray(targets))
    if true.ndim == 2:
        return float(functional.binary_cross_entropy_with_logits(z, true.double()))
    return float(functional.cross_entropy(z, true.long()))


def _of_known_labels(logits: Floats, targets: Targets) -> tuple[Floats, Targets]:
    """The examples of which logits (N, K) speak: a target beyond K is of no training example."""
    K = logits.shape[1]
    if targets.ndim == 2:
        return logits, targets[:, :K]
    return logits[targets < K], targets[targets < K]


def calibration_error(probabilities: Floats, targets: Targets) -> float:
    """The expected calibration error: see evaluate/labels.py."""
    return float(ece(Judged.of(probabilities, targets).sums(np.ones((1, len(targets)))))[0])


def fit_temperature(logits: Floats, targets: Targets) -> float:
    """The T that makes the targets likeliest, within LEAST..MOST; logits are (N, K)."""
    z, true = torch.from_numpy(logits), torch.from_numpy(np.asarray(targets))
    several = true.ndim == 2
    right = (z * true).sum() if several else z.gather(1, true.long()[:, None]).sum()
    low, high = 1.0 / MOST, 1.0 / LEAST  # of 1/T
    for _ in range(HALVINGS):
        middle = (low + high) / 2
        said = (z * middle).sigmoid() if several else (z * middle).softmax(dim=1)
        rises = float((said * z).sum() - right) > 0.0  # the nats, with 1/T
        low, high = (low, middle) if rises else (middle, high)
    return 2.0 / (low + high)


def details(model: ClassifyModel, logits: Floats, targets: Targets) -> dict[str, Any]:
    """What the temperature does to the calibration error on some data; nothing without one."""
    if model.temperature == 1.0:
        return {}
    before, after = (
        calibration_error(model.of_logits(logits, temperature), targets)
        for temperature in (1.0, model.temperature)
    )
    return {
        "calibration": {
            "temperature": model.temperature,
            "ece_before": before,
            "ece_after": after,
        }
    }


def note(found: Mapping[str, float]) -> str:
    """What is said of it, in the card and when training ends."""
    return (
        f"Its probabilities were further from the truth than the linear baseline's, so logits are "
        f"divided by a temperature of {found['temperature']:.3f}, fitted on the dev data: expected "
        f"calibration error {found['ece_before']:.3f} before, {found['ece_after']:.3f} after."
    )
