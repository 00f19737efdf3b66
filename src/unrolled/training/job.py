"""A task made ready for training: its data read, its model made. What the rooms supply.

Job       facts about the data, fit, reports
StepJob   fit by steps and epochs, written once for every model that batches change
"""

import json
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Generic, NamedTuple, Protocol, Self, TypeVar

from torch import Tensor

from unrolled.config import to_toml
from unrolled.config.sections import RunSettings, TrainSettings
from unrolled.evaluate.report import NOTES, Report
from unrolled.store.manifest import Content
from unrolled.store.names import CARD, METRICS, SETTINGS, WEIGHTS
from unrolled.store.tensors import read_tensors
from unrolled.training.clock import Dev, now
from unrolled.training.loop import Trainer
from unrolled.training.run_folder import RunFolder
from unrolled.training.update import GradientUpdate, Trainable, Update
from unrolled.training.watch import Watch

HELD_OUT = "dev_lines"  # the fact that tells how many there are
UNDER_TRAINING = "# A model under training\n\nThe best so far on the dev data.\n"


class Kept(Protocol):
    """A model as its folder keeps it."""

    @property
    def settings(self) -> RunSettings: ...

    def tensors(self) -> dict[str, Tensor]: ...

    def weights(self) -> Content:
        """The tensors as the bytes of a safetensors file."""
        ...

    def files(self) -> dict[str, bytes]: ...


class Network(Kept, Trainable, Protocol):
    """The same, of a model that gradients change."""


M = TypeVar("M", bound=Kept)
N = TypeVar("N", bound=Network)


class Fitted(NamedTuple, Generic[M]):
    """A model that is trained, and how it came about, in a sentence or two."""

    model: M
    made: str


class Reports(NamedTuple):
    """Scores on the dev and the test data, by these names, and what is to be known beside them."""

    reports: Mapping[str, Report]
    notes: Mapping[str, str] = {}

    def with_notes(self, notes: Mapping[str, Sequence[str]]) -> Self:
        """With what is to be known of these things, if anything."""
        told = {n: f"Of the {n}: {'; '.join(remarks)}." for n, remarks in notes.items() if remarks}
        return self._replace(notes={**self.notes, **told})

    def as_json(self) -> dict[str, Any]:
        """What metrics.json holds."""
        reports = {name: report.as_json() for name, report in self.reports.items()}
        return {**reports, **({NOTES: dict(self.notes)} if self.notes else {})}


def model_files(model: Kept, *, metrics: object, card: str) -> dict[str, Content]:
    """Every file of a model folder but the manifest."""
    return {
        SETTINGS: to_toml(model.settings).encode(),
        WEIGHTS: model.weights(),
        METRICS: json.dumps(metrics, indent=1).encode(),
        CARD: card.encode(),
        **model.files(),
    }


class Job(ABC, Generic[M]):
    """A model to be made of data."""

    @abstractmethod
    def facts(self) -> dict[str, float]:
        """Numbers that describe the data, for the first row of the metrics."""

    @abstractmethod
    def fit(self, run: RunFolder, watch: Watch) -> Fitted[M]:
        """Make the model; what must survive a crash on the way is kept in the run's folder."""

    @abstractmethod
    def reports(self, model: M) -> Reports:
        """The scores of a finished model."""


class StepJob(Job[N]):
    """A model that batches change, step by step, the best epoch being kept."""

    unit = "tokens"
    model: N

    @property
    def seed(self) -> int:
        """Of all that is drawn."""
        return self.model.settings.seed

    @property
    @abstractmethod
    def train(self) -> TrainSettings:
        """How long, how fast, in which batches."""

    @abstractmethod
    def epoch(self, seed: int, epoch: int) -> Sequence[Any]:
        """The batches of an epoch, the same for the same arguments."""

    @abstractmethod
    def size(self, batch: Any) -> int:
        """How many units a batch holds."""

    @abstractmethod
    def dev(self) -> Dev | None:
        """How good the model is on the dev data; None: the last epoch counts as the best."""

    def update(self) -> Update:
        """What the batches do to the model."""
        return GradientUpdate(self.model, self.train)

    def best_files(self, cost: float | None) -> dict[str, Any]:
        """A model folder of the model as it stands."""
        return model_files(self.model, metrics={"dev_loss": cost}, card=UNDER_TRAINING)

    def resized(self, settings: Any) -> Self:
        """The same data for a fresh model of other settings, where its size can be chosen."""
        raise NotImplementedError

    def with_baselines(self) -> N:
        """The model, and beside it what it is to be compared with; the fitting is done once."""
        return self.model

    def scoring_seconds(self, dev_seconds: float) -> float:
        """What the reports take, about, if the measure on the dev data takes that long."""
        return 2.0 * dev_seconds

    def seconds_for_scores(self, watch: Watch) -> float:
        """What is left to do after the last step will take so long; baselines are fitted now."""
        self._fitted_baselines(watch)
        with watch.phase("measuring"):
            self.model.network.eval()
            dev_seconds = seconds_of(self.dev)
            reports = self.scoring_seconds(dev_seconds)
            self.model.network.train()
        return dev_seconds + reports

    def _fitted_baselines(self, watch: Watch) -> N:
        if not self.train.baselines:
            return self.model
        with watch.phase("fitting the baselines"):
            return self.with_baselines()

    def fit(self, run: RunFolder, watch: Watch) -> Fitted[N]:
        """Train to the end; the model then has the weights of its best epoch."""
        run.begin(self.model.settings)
        if "dev" not in run.data:
            _tell_held_out(self.facts(), watch)
        progress = Trainer(self, run, watch).run()
        assert progress.best_step is not None
        best = run.verified_best(progress.best_step)
        self.model.load_tensors(read_tensors(best / WEIGHTS, None))
        self.model.network.eval()
        made = f"Trained with unrolled for {progress.step:,} steps"
        if progress.best is not None:
            step = f"{progress.best_step:,}"
            made += f"; these are the weights after step {step}, the best on the dev data"
        return Fitted(self._fitted_baselines(watch), made + ".")


def _tell_held_out(facts: Mapping[str, float], watch: Watch) -> None:
    """How much of the training data is kept to choose the best model by, where that is known."""
    if held := facts.get(HELD_OUT):
        watch.remark(
            f"{held:,} of {held + facts['lines']:,} lines are held out to choose the best model "
            "by; --dev names other data."
        )


def seconds_of(work: Callable[[], object]) -> float:
    """How long it takes."""
    begun = now()
    work()
    return now() - begun
