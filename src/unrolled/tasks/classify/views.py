"""Pictures of a classifier and labelled texts."""

from collections.abc import Callable

import numpy as np

from unrolled.errors import ConfigError
from unrolled.evaluate.shown import Shown
from unrolled.evaluate.views import ByLength, Confusion, Reliability
from unrolled.tasks.classify.data import LabelledData
from unrolled.tasks.classify.model import ClassifyModel
from unrolled.tasks.classify.report import measured_labels


def confusion(model: ClassifyModel, data: LabelledData) -> Confusion:
    """What was taken for what."""
    if model.labels.multi_label:
        raise ConfigError(
            "a text of this classifier may have several labels, so none is taken for another. "
            "Draw --view calibration or lengths."
        )
    said = model.encoded_probabilities(data.encoded).argmax(axis=1)
    names = np.array([*model.labels.names, *data.unseen])
    return Confusion.of(zip(names[data.targets].tolist(), names[said].tolist(), strict=True))


def calibration(model: ClassifyModel, data: LabelledData) -> Reliability:
    """The model, as it was before its temperature if it has one, and the linear baseline."""
    logits = model.encoded_logits(data.encoded)
    found = {"model": model.of_logits(logits, model.temperature)}
    if model.temperature != 1.0:
        found["without its temperature"] = model.of_logits(logits, 1.0)
    if model.baselines is not None:
        found["linear"] = model.baselines.probabilities(data.encoded)["linear"]
    return Reliability.of(found, data.targets)


def lengths(model: ClassifyModel, data: LabelledData) -> ByLength:
    """The first score by how long texts are."""
    measure, *_ = measured_labels(model, data)
    return ByLength.of(measure, data.encoded.lengths, unit="tokens in the text")


VIEWS: dict[str, Callable[[ClassifyModel, LabelledData], Shown]] = {
    "confusion": confusion,
    "calibration": calibration,
    "lengths": lengths,
}
