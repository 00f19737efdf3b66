"""Train a small model in memory: no folder, no checkpoint, the same updates.

Estimators and baselines are trained so. What is worth killing and resuming goes through loop.py.
"""

import math
import time
from collections.abc import Sequence
from itertools import count
from typing import Any, Protocol

from torch import Tensor

from unrolled.config.sections import TrainSettings
from unrolled.errors import NumericError
from unrolled.training.clock import Dev
from unrolled.training.optimise import learning_rate
from unrolled.training.update import GradientUpdate, Trainable


class SmallJob(Protocol):
    """The part of a StepJob that training without a folder needs."""

    @property
    def model(self) -> Trainable: ...

    @property
    def train(self) -> TrainSettings: ...

    @property
    def seed(self) -> int: ...

    def epoch(self, seed: int, epoch: int) -> Sequence[Any]: ...

    def dev(self) -> Dev | None: ...


def fit_in_memory(job: SmallJob) -> None:
    """Train the job's model in place; it ends with the weights of its best epoch.

    Where minutes are set they end the training, within an epoch if need be. Dropout draws from
    torch's generator: seed it, and the same data give the same weights.
    """
    train, update, over = job.train, GradientUpdate(job.model, job.train), _Share(job.train)
    best, best_tensors, dry, plateau = math.inf, _copied(job.model), 0, 1.0
    for epoch in count():
        if over(epoch) >= 1.0:
            break
        _epoch(job, update, over, epoch=epoch, plateau=plateau)
        dev = job.dev()
        cost = dev.cost if dev else -math.inf
        dry = 0 if cost < best else dry + 1
        if cost < best:
            best, best_tensors = cost, _copied(job.model)
        elif train.schedule == "plateau" and dry % train.patience == 0:
            plateau *= train.decay
        if train.early_stop and dry >= train.early_stop:
            break
    job.model.load_tensors(best_tensors)
    job.model.network.eval()


class _Share:
    """How much of the training is over: by the clock where minutes are set, else by epochs."""

    def __init__(self, train: TrainSettings) -> None:
        self.train, self.begun = train, time.monotonic()

    def __call__(self, epochs: float) -> float:
        if self.train.minutes is None:
            return epochs / self.train.epochs
        return (time.monotonic() - self.begun) / (60.0 * self.train.minutes)


def _epoch(
    job: SmallJob, update: GradientUpdate, over: _Share, *, epoch: int, plateau: float
) -> None:
    train, batches = job.train, job.epoch(job.seed, epoch)
    update.begin()
    try:
        for number, batch in enumerate(batches):
            share = over(epoch + number / len(batches))
            if share >= 1.0 and (number or epoch):
                break
            share = min(share, 1.0)
            update.step(batch, learning_rate(train, share=share, epoch=epoch, plateau=plateau))
        update.end()
    except NumericError as error:
        raise NumericError(
            f"in epoch {epoch + 1} {error}. Try a lower learning_rate (now "
            f"{train.learning_rate}) or clip (now {train.clip})."
        ) from error


def _copied(model: Trainable) -> dict[str, Tensor]:
    return {name: value.detach().clone() for name, value in model.tensors().items()}
