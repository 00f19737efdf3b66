"""Train a small model in memory: no folder, no checkpoint, the same updates.

Estimators and baselines are trained so. What is worth killing and resuming goes through loop.py.
"""

import math
from collections.abc import Sequence
from typing import Any, Protocol

import torch
from torch import Tensor, nn

from unrolled.config import TrainSettings
from unrolled.errors import NumericError
from unrolled.training.optimise import OPTIMIZERS, clip_gradients, rate_share


class Trainable(Protocol):
    """The part of a Job that training without a folder needs."""

    @property
    def network(self) -> nn.Module: ...

    def epoch(self, seed: int, epoch: int) -> Sequence[Any]: ...

    def dev_loss(self) -> float: ...


def fit(job: Trainable, train: TrainSettings, *, seed: int) -> None:
    """Train the job's network in place; it ends with the weights of its best epoch.

    Dropout draws from torch's generator: seed it, and the same data give the same weights.
    """
    optimizer = OPTIMIZERS[train.optimizer](job.network.parameters(), train)
    best, best_weights, dry, plateau = math.inf, _weights(job.network), 0, 1.0
    for epoch in range(train.epochs):
        _epoch(job, train, optimizer, seed=seed, epoch=epoch, plateau=plateau)
        loss = job.dev_loss()
        dry = 0 if loss < best else dry + 1
        if loss < best:
            best, best_weights = loss, _weights(job.network)
        elif train.schedule == "plateau" and dry % train.patience == 0:
            plateau *= train.decay
        if train.early_stop and dry >= train.early_stop:
            break
    job.network.load_state_dict(best_weights)
    job.network.eval()


def _epoch(
    job: Trainable,
    train: TrainSettings,
    optimizer: torch.optim.Optimizer,
    *,
    seed: int,
    epoch: int,
    plateau: float,
) -> None:
    batches = job.epoch(seed, epoch)
    job.network.train()
    for number, batch in enumerate(batches):
        share = (epoch + number / len(batches)) / train.epochs
        rate = train.learning_rate * rate_share(train, share=share, epoch=epoch, plateau=plateau)
        for group in optimizer.param_groups:
            group["lr"] = rate
        loss = job.network.loss(batch, None)  # type: ignore[operator]
        optimizer.zero_grad(set_to_none=True)
        (loss.nats / loss.predictions).backward()
        parameters = job.network.parameters()
        norm = clip_gradients([p.grad for p in parameters if p.grad is not None], train.clip)
        if not math.isfinite(norm):
            raise NumericError(
                f"in epoch {epoch + 1} the gradient is {norm}. Try a lower learning_rate (now "
                f"{train.learning_rate}) or clip (now {train.clip})."
            )
        optimizer.step()
    job.network.eval()


def _weights(network: nn.Module) -> dict[str, Tensor]:
    return {name: value.detach().clone() for name, value in network.state_dict().items()}
