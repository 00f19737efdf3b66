"""Pictures of a classifier, also where the data have labels that it never saw."""

from pathlib import Path

import numpy as np
import pytest

import unrolled
from unrolled.errors import ConfigError
from unrolled.tasks.classify.calibration import _of_known_labels
from unrolled.tasks.classify.data import Examples, LabelledData
from unrolled.tasks.classify.report import measured_labels
from unrolled.tasks.classify.views import VIEWS, confusion
from unrolled.text.labelled import Example

KEPT = Path(__file__).parents[2] / "golden" / "kept" / "classify"


@pytest.fixture(scope="module")
def model():
    return unrolled.load(KEPT)


@pytest.fixture(scope="module")
def data(model):
    known = model.labels.names
    labels = [*known, "never seen", known[0], known[-1]]
    rows = [Example((label,), f"a good film {k}", k) for k, label in enumerate(labels, 1)]
    return LabelledData.of(model.labels, model.reader, Examples(rows, "made", {}))


def test_a_label_that_was_never_seen_is_drawn_and_counted_wrong(model, data):
    found = confusion(model, data)
    assert "never seen" in found.labels
    assert found.counts.sum() == len(data.targets)
    assert found.counts[:, found.labels.index("never seen")].sum() == 0
    measure = measured_labels(model, data)[0]
    whole = measure.values(np.ones((1, len(data.targets))))[0]
    assert whole == pytest.approx(measure.score.value, rel=1e-12)


@pytest.mark.parametrize("name", VIEWS)
def test_every_view_is_drawn(model, data, name):
    shown = VIEWS[name](model, data)
    assert shown.chart().to_dict()
    assert shown.text()


def test_temperatures_are_fitted_on_labels_that_are_known(model, data):
    logits, targets = _of_known_labels(model.encoded_logits(data.encoded), data.targets)
    assert len(logits) == len(targets) == len(data.targets) - 1
    assert targets.max() < len(model.labels)


def test_where_a_text_has_several_labels_none_is_taken_for_another(model, data):
    class Several:
        labels = type("Labels", (), {"multi_label": True})

    with pytest.raises(ConfigError, match="may have several labels, so none is taken for another"):
        confusion(Several(), data)
