"""Steps of the optimiser: the matrix between decoder and source takes shorter ones."""

from types import SimpleNamespace

import pytest
from translators import OUTPUTS, SOURCES, network

from unrolled.config import settings_for
from unrolled.tasks.translate.settings import TranslateRun
from unrolled.tasks.translate.update import TranslateUpdate
from unrolled.text.batch import Batch
from unrolled.text.pair_batch import PairBatch

pytestmark = pytest.mark.arithmetic

RATE = 0.01


def one_step(optimizer, attention, **options):
    """How far a step moves each weight at most, and the largest gradient of each."""
    net = network(size=16, attention=attention, **options)
    before = {name: weight.detach().clone() for name, weight in net.named_parameters()}
    overrides = {"train.optimizer": optimizer, "train.learning_rate": RATE, "train.clip": 1e9}
    settings = settings_for(TranslateRun, overrides=overrides)
    update = TranslateUpdate(SimpleNamespace(network=net), settings.train)
    update.begin()
    update.step(PairBatch(Batch.collate(SOURCES), Batch.collate(OUTPUTS)), RATE)
    return {
        name: ((weight.detach() - before[name]).abs().max().item(), weight.grad.abs().max().item())
        for name, weight in net.named_parameters()
        if weight.grad is not None
    }


@pytest.mark.parametrize("optimizer", ["adam", "adamw", "adagrad"])
def test_the_matrix_between_takes_a_quarter_of_the_rate_at_sixteen_units(optimizer):
    steps = one_step(optimizer, "general")  # the first is the rate itself, whatever the gradient
    assert steps.pop("attention.score.weight")[0] == pytest.approx(RATE / 4, rel=1e-3)
    assert [step for step, _ in steps.values()] == pytest.approx([RATE] * len(steps), rel=1e-3)


def test_other_scores_take_the_whole_rate():
    steps = one_step("adam", "additive")
    assert [step for step, _ in steps.values()] == pytest.approx([RATE] * len(steps), rel=1e-3)


def test_plain_gradients_have_a_length_of_their_own():
    for step, gradient in one_step("sgd", "general", feed=True).values():
        assert step == pytest.approx(RATE * gradient, rel=1e-6)
