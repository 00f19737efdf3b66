"""The training loop: one step, one epoch, stop, save, go on.

Killed at any moment and resumed, a run of `epochs` ends in the same bytes: the order of the data
is a pure function of seed and epoch, and a checkpoint holds all the rest.
"""

import math
from collections.abc import Callable, Sequence
from typing import Any, Protocol

from torch import nn

from unrolled.config import RunSettings
from unrolled.errors import NumericError, Stopped
from unrolled.evaluate.report import Report
from unrolled.nn.output import Loss
from unrolled.training.checkpoint import Progress, RunFolder
from unrolled.training.clock import Clock, Status
from unrolled.training.optimise import OPTIMIZERS, clip_gradients, rate_share
from unrolled.training.signals import caught_signals
from unrolled.training.state import Carry, restore_tensors, run_tensors


class Network(Protocol):
    """What the loop asks of a network beside being an nn.Module."""

    def loss(self, batch: Any, carry: Carry) -> Loss: ...


class Job(Protocol):
    """A task made ready for training: its network, its data, its measure."""

    @property
    def network(self) -> nn.Module: ...

    def epoch(self, seed: int, epoch: int) -> Sequence[Any]:
        """The batches of an epoch, the same for the same arguments."""
        ...

    def facts(self, seed: int) -> dict[str, float]:
        """Numbers that describe the data, for the first row of the metrics."""
        ...

    def dev_loss(self) -> float:
        """Mean nats on the development data, or another measure; lower is better."""
        ...

    def best_files(self, dev_loss: float) -> dict[str, bytes]:
        """The model folder of the network as it stands."""
        ...

    def reports(self, model: Any) -> dict[str, Report]:
        """The scores of a finished model on the dev and the test data, by these names."""
        ...


class Trainer:
    """One run of a job in its folder."""

    def __init__(
        self, job: Job, settings: RunSettings, folder: RunFolder, watch: Callable[[Status], None]
    ) -> None:
        self.job, self.settings, self.folder, self.watch = job, settings, folder, watch
        self.train = settings.train
        self.optimizer = OPTIMIZERS[self.train.optimizer](job.network.parameters(), self.train)
        self.progress = Progress()
        self.carry: Carry = None
        self.clock = Clock()
        self.dev_loss: float | None = None

    def run(self) -> Progress:
        """Train from the last checkpoint, or from the start, to the end."""
        self._restore()
        if self.progress.metrics_bytes == 0:
            self.folder.record(self.job.facts(self.settings.seed))
        self.clock.start(self.progress.seconds)
        with caught_signals() as caught:
            while not self._is_over():
                self._epoch(caught)
                self._stop_if(caught)
            if not self.progress.finished:
                self.progress.finished = True
                self._save()
        return self.progress

    def _restore(self) -> None:
        if saved := self.folder.restore():
            self.progress, tensors = saved
            source = self.folder.step_folder(self.progress.step)
            self.carry = restore_tensors(tensors, self.job.network, self.optimizer, source=source)

    def _epoch(self, caught: list[int]) -> None:
        batches = self.job.epoch(self.settings.seed, self.progress.epoch)
        self.job.network.train()
        while self.progress.batch < len(batches) and not self._is_time_up():
            self._step(batches)
            self._stop_if(caught)
            if self.clock.since_save() >= self.train.checkpoint_seconds:
                self._save()
        self._end_of_epoch(self._share(batches))

    def _stop_if(self, caught: list[int]) -> None:
        if caught:
            self._save()
            raise Stopped(
                caught[0],
                f"stopped at step {self.progress.step}; a checkpoint is saved. "
                "The same command with --resume goes on from there.",
            )

    def _step(self, batches: Sequence[Any]) -> None:
        share = self._share(batches)
        network: Network = self.job.network  # type: ignore[assignment]
        loss = network.loss(batches[self.progress.batch], self.carry)
        nats = loss.nats.item()
        if not math.isfinite(nats):
            raise self._gone_wrong("the loss", nats)
        self.optimizer.zero_grad(set_to_none=True)
        (loss.nats / loss.predictions).backward()  # type: ignore[no-untyped-call]
        norm, rate = self._clip(), self._set_rate(share)
        self.optimizer.step()
        self.carry = loss.carry
        self._count(nats, loss.predictions)
        mean = nats / loss.predictions
        self.folder.record(
            {
                "step": self.progress.step,
                "loss": mean,
                "gradient_norm": norm,
                "learning_rate": rate,
            }
        )
        self.watch(self._status(share))

    def _count(self, nats: float, predictions: int) -> None:
        progress = self.progress
        progress.step, progress.batch = progress.step + 1, progress.batch + 1
        progress.epoch_nats += nats
        progress.epoch_count += predictions
        self.clock.count(predictions)

    def _clip(self) -> float:
        named = [(n, p.grad) for n, p in self.job.network.named_parameters() if p.grad is not None]
        norm = clip_gradients([gradient for _, gradient in named], self.train.clip)
        if not math.isfinite(norm):
            wrong = next((name for name, g in named if not g.isfinite().all()), "the whole")
            raise self._gone_wrong(f"the gradient of {wrong}", norm)
        return norm

    def _set_rate(self, share: float) -> float:
        rate = self.train.learning_rate * rate_share(
            self.train, share=share, epoch=self.progress.epoch, plateau=self.progress.rate_factor
        )
        for group in self.optimizer.param_groups:
            group["lr"] = rate
        return rate

    def _gone_wrong(self, what: str, value: float) -> NumericError:
        return NumericError(
            f"at step {self.progress.step + 1} {what} is {value}{self._wrong_weight()}. Nothing of "
            "it is saved; the last checkpoint stands. Try a lower train.learning_rate (now "
            f"{self.train.learning_rate}) or train.clip (now {self.train.clip})."
        )

    def _wrong_weight(self) -> str:
        weights = self.job.network.named_parameters()
        wrong = next((name for name, weight in weights if not weight.isfinite().all()), None)
        return f" (weight {wrong} is not finite)" if wrong else ""

    def _end_of_epoch(self, share: float) -> None:
        progress = self.progress
        self.job.network.eval()
        self.dev_loss = self.job.dev_loss()
        if not math.isfinite(self.dev_loss):
            raise self._gone_wrong("the loss on the dev data", self.dev_loss)
        mean = progress.epoch_nats / max(progress.epoch_count, 1)
        self.folder.record(
            {
                "step": progress.step,
                "epoch": progress.epoch + 1,
                "train_loss": mean,
                "dev_loss": self.dev_loss,
            }
        )
        self.folder.note_time(self._time_row())
        self.watch(self._status(share))
        self._judge(self.dev_loss)
        progress.epoch, progress.batch = progress.epoch + 1, 0
        progress.epoch_nats, progress.epoch_count = 0.0, 0
        self.carry = None

    def _judge(self, dev_loss: float) -> None:
        """Keep the model if it is the best so far; count the epochs since."""
        progress = self.progress
        if progress.best is None or dev_loss < progress.best:
            self.folder.save_best(progress.step, self.job.best_files(dev_loss))
            progress.best, progress.best_step = dev_loss, progress.step
            progress.dry_epochs = progress.flat_epochs = 0
            return
        progress.dry_epochs += 1
        progress.flat_epochs += 1
        if self.train.schedule == "plateau" and progress.flat_epochs >= self.train.patience:
            progress.rate_factor *= self.train.decay
            progress.flat_epochs = 0

    def _share(self, batches: Sequence[Any]) -> float:
        if self.train.minutes is not None:
            return self.clock.seconds() / (60.0 * self.train.minutes)
        return (self.progress.epoch + self.progress.batch / len(batches)) / self.train.epochs

    def _is_time_up(self) -> bool:
        """Whether the minutes are over; a first step is always made."""
        if self.train.minutes is None or self.progress.step == 0:
            return False
        return self.clock.seconds() >= 60.0 * self.train.minutes

    def _is_over(self) -> bool:
        progress, train = self.progress, self.train
        if progress.finished:
            return True
        if progress.batch > 0 or progress.epoch == 0:  # an epoch is under way
            return False
        if train.early_stop and progress.dry_epochs >= train.early_stop:
            return True
        if train.minutes is not None:
            return self._is_time_up()
        return progress.epoch >= train.epochs

    def _save(self) -> None:
        if self.train.minutes is not None:
            self.progress.seconds = self.clock.seconds()
        tensors = run_tensors(self.job.network, self.optimizer, self.carry)
        try:
            self.folder.save(self.progress, tensors)
        except NumericError as error:
            raise NumericError(f"after step {self.progress.step} {error}") from error
        self.clock.saved()

    def _status(self, share: float) -> Status:
        progress = self.progress
        return Status(
            epoch=progress.epoch + 1,
            step=progress.step,
            share=share,
            loss=progress.epoch_nats / max(progress.epoch_count, 1),
            dev_loss=self.dev_loss,
            tokens_per_second=self.clock.rate(),
            seconds_left=self.clock.left(share),
        )

    def _time_row(self) -> dict[str, float]:
        return {
            "epoch": self.progress.epoch + 1,
            "step": self.progress.step,
            "seconds": round(self.clock.seconds(), 3),
            "tokens_per_second": round(self.clock.rate(), 1),
        }
