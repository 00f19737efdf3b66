"""Training in memory makes the updates that training in a folder makes."""

import math

import pytest
import torch
from torch import nn

from unrolled.config import settings_for
from unrolled.config.sections import TrainSettings
from unrolled.errors import NumericError
from unrolled.nn.output import Loss
from unrolled.tasks.classify.data import Examples
from unrolled.tasks.classify.job import classify_job
from unrolled.tasks.classify.settings import ClassifyRun
from unrolled.tasks.folder import load
from unrolled.tasks.shared.network_model import NetworkModel
from unrolled.text.labelled import Example
from unrolled.training.clock import Dev
from unrolled.training.in_memory import fit_in_memory
from unrolled.training.loop import Trainer
from unrolled.training.run_folder import RunFolder

pytestmark = [pytest.mark.arithmetic, pytest.mark.trains]

ROWS = [Example(("ab"[n % 2],), f"{'ab'[n % 2]} x{n % 7}", n) for n in range(80)]


def job(**settings):
    small = {"model.hidden_size": 5, "model.embedding_size": 4, "train.batch_tokens": 32}
    run = settings_for(ClassifyRun, overrides=small | {"train.epochs": 3} | settings)
    torch.manual_seed(run.seed)
    data = {"train": Examples(ROWS[:60], "t", {}), "dev": Examples(ROWS[60:], "d", {})}
    return run, classify_job(run, data)


@pytest.mark.parametrize(
    "settings",
    [{}, {"train.schedule": "plateau", "train.learning_rate": 0.5}, {"train.schedule": "decay"}],
    ids=str,
)
def test_the_weights_equal_those_of_a_run_in_a_folder(tmp_path, settings):
    _, here = job(**settings)
    fit_in_memory(here)
    run, there = job(**settings)
    folder = RunFolder(tmp_path)
    folder.begin(run)
    progress = Trainer(there, folder, lambda status: None).run()
    best = load(folder.best_folder(progress.best_step))
    for name, value in best.tensors().items():
        assert torch.equal(value, here.model.tensors()[name]), name


class Falling:
    """A network of one weight, and dev costs that are given."""

    seed = 1

    def __init__(self, costs, train, gradient=1.0):
        self.model, self.costs, self.train, self.seen = Weight(gradient), iter(costs), train, []

    def epoch(self, seed, epoch):
        return [None]

    def dev(self):
        self.seen.append(self.model.network.weight.item())
        cost = next(self.costs)
        return Dev("cost", cost, cost)


class Weight(NetworkModel):
    def __init__(self, gradient):
        self.network = One(gradient)

    def answering(self):
        return {}


class One(nn.Module):
    def __init__(self, gradient):
        super().__init__()
        self.weight, self.gradient = nn.Parameter(torch.zeros(1)), gradient

    def loss(self, batch, carry):
        return Loss((self.weight * self.gradient).sum(), 1, None)


def test_the_best_epoch_is_kept_and_early_stop_ends_the_others():
    train = TrainSettings(epochs=9, early_stop=2, optimizer="sgd", schedule="constant")
    falling = Falling([3.0, 1.0, 2.0, 1.0, 0.0], train)
    fit_in_memory(falling)
    assert len(falling.seen) == 4
    assert falling.model.network.weight.item() == falling.seen[1]


def test_a_loss_that_is_not_finite_is_an_error():
    message = r"in epoch 1 the loss is nan\. Try a lower"
    with pytest.raises(NumericError, match=message):
        fit_in_memory(Falling([1.0], TrainSettings(epochs=1), gradient=math.inf))


def test_minutes_end_it_whatever_the_epochs(monkeypatch):
    now = iter(range(0, 10_000, 7))
    monkeypatch.setattr("unrolled.training.in_memory.time.monotonic", lambda: next(now))
    train = TrainSettings(epochs=1, minutes=1.0, optimizer="sgd", schedule="constant")
    falling = Falling([9.0 - k for k in range(9)], train)
    fit_in_memory(falling)
    assert len(falling.seen) == 4  # the clock is asked twice an epoch: 4 · 14 seconds
