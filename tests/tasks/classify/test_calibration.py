"""Temperatures: what another program finds, kept with a model, and no label changed by them."""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from scipy.optimize import minimize_scalar
from torch.nn import functional

from unrolled.config import settings_for
from unrolled.evaluate.details import detail_tables
from unrolled.tasks.classify.calibration import (
    calibrated,
    calibration_error,
    details,
    fit_temperature,
    note,
    serves_others,
)
from unrolled.tasks.classify.data import LabelledData
from unrolled.tasks.classify.model import CALIBRATION_FILE, ClassifyModel
from unrolled.tasks.classify.settings import ClassifyRun
from unrolled.text.labels import Labels

pytestmark = pytest.mark.arithmetic

TEXTS = [f"{a} {b}" for a in "abcdefgh" for b in "ijklmnop"]


def drawn(shape, seed=0):
    """Logits, and targets drawn from their softmax."""
    generator = np.random.default_rng(seed)
    logits = 2.0 * generator.normal(size=shape)
    gumbel = generator.gumbel(size=shape)
    return logits, (logits + gumbel).argmax(axis=1)


def test_the_temperature_is_the_one_that_another_program_finds():
    logits, targets = drawn((300, 4))

    def nats(scale):
        scaled = torch.from_numpy(logits * scale)
        return functional.cross_entropy(scaled, torch.from_numpy(targets)).item()

    found = minimize_scalar(nats, bounds=(0.05, 20.0), method="bounded", options={"xatol": 1e-10})
    assert 1.0 / fit_temperature(logits, targets) == pytest.approx(found.x, rel=1e-5)


@pytest.mark.parametrize("sharpness", [0.4, 1.0, 3.0])
def test_logits_that_are_too_sharp_are_softened_by_as_much(sharpness):
    logits, targets = drawn((20_000, 3))
    assert fit_temperature(sharpness * logits, targets) == pytest.approx(sharpness, rel=0.05)


def test_several_labels_are_asked_one_by_one():
    generator = np.random.default_rng(1)
    logits = generator.normal(size=(20_000, 2))
    targets = (generator.random(logits.shape) < 1.0 / (1.0 + np.exp(-logits))).astype(np.int64)
    assert fit_temperature(2.0 * logits, targets) == pytest.approx(2.0, rel=0.05)


def test_logits_that_are_always_right_go_to_the_bound():
    assert fit_temperature(np.array([[9.0, 0.0]] * 3), np.zeros(3, np.int64)) == pytest.approx(0.05)


def model(sharpness=300.0):
    torch.manual_seed(1)
    small = {"model.hidden_size": 4, "model.embedding_size": 4}
    labels = Labels(("no", "yes"), (1, 1), 2, multi_label=False)
    made = ClassifyModel.build(settings_for(ClassifyRun, overrides=small), labels, TEXTS)
    with torch.no_grad():
        made.network.weight.mul_(sharpness)
    made.network.eval()
    return made


def data_of(made, seed=3):
    """Half of the labels are the likeliest one: a model that is always sure is too sure."""
    generator, encoded = np.random.default_rng(seed), made.reader.encode(TEXTS)
    said = made.encoded_probabilities(encoded).argmax(axis=1)
    return LabelledData(encoded, np.where(generator.random(len(said)) < 0.6, said, 1 - said))


def with_linear(made, probabilities):
    return replace(
        made, baselines=SimpleNamespace(probabilities=lambda e: {"linear": probabilities})
    )


def test_a_model_that_is_worse_calibrated_than_the_linear_one_gets_a_temperature():
    made = model()
    data = data_of(made)
    honest = np.where(np.arange(2) == data.targets[:, None], 0.99, 0.01)
    found = calibrated(with_linear(made, honest), data)
    assert found.temperature > 1.0
    before, after = (m.encoded_probabilities(data.encoded) for m in (made, found))
    assert (before.argmax(axis=1) == after.argmax(axis=1)).all()
    told = details(found, found.encoded_logits(data.encoded), data.targets)["calibration"]
    assert told["ece_before"] == calibration_error(before, data.targets)
    assert told["ece_after"] == calibration_error(after, data.targets) < told["ece_before"]
    assert f"a temperature of {found.temperature:.3f}, fitted on the dev data" in note(told)
    assert next(detail_tables({"calibration": told})).startswith("Calibrated: ece 0.")


def test_a_model_that_is_no_worse_stays_as_it_is():
    made = model()
    data = data_of(made)
    wrong = np.where(np.arange(2) == data.targets[:, None], 0.01, 0.99)
    for same in (with_linear(made, wrong), made):
        assert calibrated(same, data).temperature == 1.0
    assert details(made, made.encoded_logits(data.encoded), data.targets) == {}


def test_the_temperature_is_kept_with_the_model_and_reasons_agree_with_it():
    made = replace(model(), temperature=1.75)
    again = ClassifyModel.restore(made.settings, made.files())
    assert again.temperature == 1.75
    assert CALIBRATION_FILE not in model().files()
    text = TEXTS[5]
    assert made.explain(text).probability == pytest.approx(made.probabilities([text]).max())


@pytest.mark.parametrize("value", ["0.0", "1e9", "true", "[1]", "NaN", "1"])
def test_a_wrong_temperature_is_named(value):
    files = {**model().files(), CALIBRATION_FILE: f'{{"temperature": {value}}}'.encode()}
    with pytest.raises(ValueError, match=r"calibration.json: .*temperature|calibration.json: "):
        ClassifyModel.restore(model().settings, files)


def test_a_temperature_must_serve_examples_that_it_was_not_fitted_on():
    logits, targets = drawn((2000, 3))
    assert serves_others(3.0 * logits, targets)
    logits = np.array([[2.0, 0.0], [2.0, 0.0], [2.0, 0.0], [2.0, 0.0]])
    assert not serves_others(logits, np.array([0, 1, 0, 1]))  # sure in one half, wrong in the other
    assert not serves_others(logits[:1], np.array([0]))
