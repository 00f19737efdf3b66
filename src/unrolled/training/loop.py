"""The training loop: one step, one epoch, stop, save, go on.

Killed at any moment and resumed, a run of `epochs` ends in the same bytes: the order of the data
is a pure function of seed and epoch, and a checkpoint holds all the rest.
"""

import math
from collections.abc import Sequence
from typing import Any, Protocol

import torch

from unrolled.config.sections import TrainSettings
from unrolled.errors import ModelError, NumericError, Stopped
from unrolled.training.clock import Clock, Dev, Status
from unrolled.training.optimise import learning_rate
from unrolled.training.run_folder import Progress, RunFolder
from unrolled.training.signals import caught_signals
from unrolled.training.update import Step, Update
from unrolled.training.watch import OnStep, Watch

UNMEASURED = 0.1  # share of the minutes that is kept for scoring, while nobody knows better
MOST_KEPT = 0.4


class Steps(Protocol):
    """What the loop asks of a job: batches, what they do, and how good the model has become."""

    unit: str  # what a batch holds: tokens, texts

    @property
    def seed(self) -> int: ...

    @property
    def train(self) -> TrainSettings: ...

    def facts(self) -> dict[str, float]:
        """Numbers that describe the data, for the first row of the metrics."""
        ...

    def update(self) -> Update:
        """What the batches do to the model."""
        ...

    def epoch(self, seed: int, epoch: int) -> Sequence[Any]:
        """The batches of an epoch, the same for the same arguments."""
        ...

    def size(self, batch: Any) -> int:
        """How many units a batch holds."""
        ...

    def dev(self) -> Dev | None:
        """How good the model is on the dev data; None: the last epoch counts as the best."""
        ...

    def best_files(self, cost: float | None) -> dict[str, Any]:
        """The model folder of the model as it stands."""
        ...

    def seconds_for_scores(self, watch: Watch) -> float:
        """What is left to do after the last step will take so long; baselines are fitted now."""
        ...


class Trainer:
    """One run of a job in its folder."""

    def __init__(self, job: Steps, folder: RunFolder, watch: Watch | OnStep) -> None:
        self.job, self.folder, self.watch = job, folder, Watch.of(watch)
        self.train, self.update = job.train, job.update()
        self.progress, self.clock = Progress(), Clock()
        self.dev: Dev | None = None
        self.for_scores: float | None = None  # seconds, once they are measured
        self.share = 0.0  # of the run that is over

    def run(self) -> Progress:
        """Train from the last checkpoint, or from the start, to the end."""
        self._restore()
        if self.progress.metrics_bytes == 0:
            self.folder.record(self.job.facts())
        self.clock.start(self.progress.seconds, session_begun=self.watch.begun)
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
            try:
                self.update.restore(tensors)
            except (KeyError, RuntimeError, TypeError, ValueError) as error:
                raise ModelError(
                    self.folder.step_folder(self.progress.step),
                    f"does not fit the model: {error}; train again in another --out.",
                ) from error
        self._use_threads()

    def _use_threads(self) -> None:
        """As many as the run began with, unless others are asked for: they sum in another order."""
        before, wanted = self.progress.threads, self.folder.threads
        if before and not wanted:
            torch.set_num_threads(before)
        elif before and before != wanted:
            self.watch.remark(
                f"--threads is {wanted}, but the run began with {before}: it goes on, and ends in "
                "other bytes than it would have."
            )
        self.progress.threads = torch.get_num_threads()

    def _epoch(self, caught: list[int]) -> None:
        batches = self.job.epoch(self.job.seed, self.progress.epoch)
        self.update.begin()
        while self.progress.batch < len(batches) and not self._is_time_up():
            self._step(batches)
            self._stop_if(caught)
            self._make_room()
            if self.clock.since_save() >= self.folder.checkpoint_seconds:
                self._save()
        try:
            self.update.end()
        except NumericError as error:
            raise self._gone_wrong(str(error)) from error
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
        share, batch = self._share(batches), batches[self.progress.batch]
        rate = learning_rate(
            self.train, share=share, epoch=self.progress.epoch, plateau=self.progress.rate_factor
        )
        try:
            step = self.update.step(batch, rate)
        except NumericError as error:
            raise self._gone_wrong(str(error)) from error
        self._count(step, self.job.size(batch))
        self.folder.record(
            {
                "step": self.progress.step,
                "loss": step.total / step.count,
                "total_loss": step.total,
                "gradient_norm": step.gradient_norm,
                "learning_rate": rate,
            }
        )
        self.watch(self._status(share))

    def _count(self, step: Step, units: int) -> None:
        progress = self.progress
        progress.step, progress.batch = progress.step + 1, progress.batch + 1
        progress.epoch_total += step.total
        progress.epoch_count += step.count
        self.clock.count(units)

    def _gone_wrong(self, what: str) -> NumericError:
        return NumericError(
            f"at step {self.progress.step + 1} {what}. Nothing of it is saved; the last checkpoint "
            f"stands. Try a lower train.learning_rate (now {self.train.learning_rate}) or "
            f"train.clip (now {self.train.clip})."
        )

    def _end_of_epoch(self, share: float) -> None:
        progress = self.progress
        try:
            self.dev = self.job.dev()
        except NumericError as error:
            raise self._gone_wrong("what the model says of the dev data is not a number") from error
        if self.dev and not math.isfinite(self.dev.cost):
            raise self._gone_wrong(
                str(self.update.gone_wrong("the loss on the dev data", self.dev.cost))
            )
        self.folder.record(
            {
                "step": progress.step,
                "epoch": progress.epoch + 1,
                "train_loss": progress.mean_loss,
                "total_train_loss": progress.epoch_total,
                **({"dev_loss": self.dev.cost} if self.dev else {}),
            }
        )
        self.folder.note_time(self._time_row())
        self.watch(self._status(share))
        self._judge(self.dev.cost if self.dev else None)
        progress.epoch, progress.batch = progress.epoch + 1, 0
        progress.epoch_total, progress.epoch_count = 0.0, 0

    def _judge(self, cost: float | None) -> None:
        """Keep the model if it is the best so far; count the epochs since."""
        progress = self.progress
        if cost is None or progress.best is None or cost < progress.best:
            self.folder.save_best(progress.step, self.job.best_files(cost))
            progress.best, progress.best_step = cost, progress.step
            progress.dry_epochs = progress.flat_epochs = 0
            return
        progress.dry_epochs += 1
        progress.flat_epochs += 1
        if self.train.schedule == "plateau" and progress.flat_epochs >= self.train.patience:
            progress.rate_factor *= self.train.decay
            progress.flat_epochs = 0

    def _share(self, batches: Sequence[Any]) -> float:
        epochs = self.progress.epoch + self.progress.batch / len(batches)
        if self.train.minutes is None:
            return epochs / self.train.epochs
        of_epochs = epochs / self.train.max_epochs if self.train.max_epochs else 0.0
        self.share = max(self.share, self.clock.seconds() / self._seconds_for_steps(), of_epochs)
        return self.share

    def _seconds_for_steps(self) -> float:
        """What a run of minutes has until the last step: the rest is for scoring."""
        seconds = 60.0 * (self.train.minutes or 0.0)
        kept = UNMEASURED if self.for_scores is None else min(self.for_scores / seconds, MOST_KEPT)
        return seconds * (1.0 - kept)

    def _make_room(self) -> None:
        """Half-way, fit the baselines and measure what scoring will take: it is in the minutes."""
        if self.train.minutes is None or self.for_scores is not None:
            return
        if self.clock.seconds() >= 30.0 * self.train.minutes:
            self.for_scores = self.job.seconds_for_scores(self.watch)

    def _is_time_up(self) -> bool:
        """Whether the minutes are over; a first step is always made."""
        if self.train.minutes is None or self.progress.step == 0:
            return False
        return self.clock.seconds() >= self._seconds_for_steps()

    def _is_over(self) -> bool:
        progress, train = self.progress, self.train
        if progress.finished:
            return True
        if progress.batch > 0 or progress.epoch == 0:  # an epoch is under way
            return False
        if train.early_stop and progress.dry_epochs >= train.early_stop:
            return True
        if train.minutes is not None:
            return self._is_time_up() or progress.epoch >= (train.max_epochs or math.inf)
        return progress.epoch >= train.epochs

    def _save(self) -> None:
        if self.train.minutes is not None:
            self.progress.seconds = self.clock.seconds()
        try:
            self.folder.save(self.progress, self.update.tensors())
        except NumericError as error:
            raise NumericError(f"after step {self.progress.step} {error}") from error
        self.clock.saved()

    def _status(self, share: float) -> Status:
        return Status(
            epoch=self.progress.epoch + 1,
            step=self.progress.step,
            share=share,
            loss=self.progress.mean_loss,
            dev=self.dev,
            unit=self.job.unit,
            units_per_second=self.clock.rate(),
            seconds_left=self.clock.left(share),
        )

    def _time_row(self) -> dict[str, float]:
        return {
            "epoch": self.progress.epoch + 1,
            "step": self.progress.step,
            "seconds": round(self.clock.seconds(), 3),
            f"{self.job.unit}_per_second": round(self.clock.rate(), 1),
        }
