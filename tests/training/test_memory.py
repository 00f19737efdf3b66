"""Training in memory makes the updates that training in a folder makes."""

import math

import pytest
import torch
from torch import nn

from unrolled.config import TrainSettings, settings_for
from unrolled.errors import NumericError
from unrolled.models.folder import load
from unrolled.nn.output import Loss
from unrolled.text.labelled import Example
from unrolled.training.checkpoint import RunFolder
from unrolled.training.classify import job_of
from unrolled.training.loop import Trainer
from unrolled.training.memory import fit

pytestmark = [pytest.mark.arithmetic, pytest.mark.trains]

ROWS = [Example(("ab"[n % 2],), f"{'ab'[n % 2]} x{n % 7}", n) for n in range(80)]


def job(**settings):
    small = {"model.hidden_size": 5, "model.embedding_size": 4, "train.batch_tokens": 32}
    run = settings_for("classify", overrides=small | {"train.epochs": 3} | settings)
    torch.manual_seed(run.seed)
    read, sources = {"train": ROWS[:60], "dev": ROWS[60:]}, {"train": "t", "dev": "d"}
    return run, job_of(run, read, sources, baselines=False)


@pytest.mark.parametrize(
    "settings",
    [{}, {"train.schedule": "plateau", "train.learning_rate": 0.5}, {"train.schedule": "decay"}],
    ids=str,
)
def test_the_weights_equal_those_of_a_run_in_a_folder(tmp_path, settings):
    run, here = job(**settings)
    fit(here, run.train, seed=run.seed)
    run, there = job(**settings)
    folder = RunFolder(tmp_path)
    folder.begin(run, {})
    progress = Trainer(there, run, folder, lambda status: None).run()
    best = load(folder.best_folder(progress.best_step))
    for name, value in best.network.state_dict().items():
        assert torch.equal(value, here.network.state_dict()[name]), name


class Falling:
    """A network of one weight, and dev losses that are given."""

    def __init__(self, losses, gradient=1.0):
        self.network, self.losses, self.seen = One(gradient), iter(losses), []

    def epoch(self, seed, epoch):
        return [None]

    def dev_loss(self):
        self.seen.append(self.network.weight.item())
        return next(self.losses)


class One(nn.Module):
    def __init__(self, gradient):
        super().__init__()
        self.weight, self.gradient = nn.Parameter(torch.zeros(1)), gradient

    def loss(self, batch, carry):
        return Loss((self.weight * self.gradient).sum(), 1, None)


def test_the_best_epoch_is_kept_and_early_stop_ends_the_others():
    train = TrainSettings(epochs=9, early_stop=2, optimizer="sgd", schedule="constant")
    falling = Falling([3.0, 1.0, 2.0, 1.0, 0.0])
    fit(falling, train, seed=1)
    assert len(falling.seen) == 4
    assert falling.network.weight.item() == falling.seen[1]


def test_a_gradient_that_is_not_finite_is_an_error():
    with pytest.raises(NumericError, match=r"in epoch 1 the gradient is (inf|nan)\. Try a lower"):
        fit(Falling([1.0], gradient=math.inf), TrainSettings(epochs=1), seed=1)
