"""Train a model from files to a folder: what `unrolled train` and `unrolled.train` both call."""

import ctypes
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from unrolled.config import settings_for
from unrolled.config.sections import RunSettings, TrainSettings
from unrolled.errors import ConfigError, shown
from unrolled.store.files import clean_temporaries, write_into_folder
from unrolled.store.manifest import Content
from unrolled.store.names import as_path
from unrolled.tasks import AnyTask, task_named
from unrolled.tasks.card import card
from unrolled.tasks.folder import load
from unrolled.tasks.shared.texts import one_text
from unrolled.tasks.size import sized
from unrolled.tasks.task import Model
from unrolled.text.source import Source
from unrolled.training.job import Reports, model_files
from unrolled.training.run_folder import RunFolder
from unrolled.training.watch import OnStep, Watch

PathLike = Path | str

ALLOCATOR_VARIABLES = ("MALLOC_TRIM_THRESHOLD_", "MALLOC_MMAP_THRESHOLD_", "GLIBC_TUNABLES")


@dataclass(frozen=True, kw_only=True)
class Sources:
    """The files that a run reads."""

    train: PathLike
    dev: PathLike | None = None
    test: PathLike | None = None
    encoding: str = "utf-8"

    @property
    def given(self) -> dict[str, Source]:
        """Those that were given, by their names."""
        paths = {"train": self.train, "dev": self.dev, "test": self.test}
        return {
            name: Source(as_path(path, name=name), self.encoding)
            for name, path in paths.items()
            if path is not None or name == "train"
        }


def train(
    task: str,
    *,
    train: PathLike,
    out: PathLike,
    dev: PathLike | None = None,
    test: PathLike | None = None,
    encoding: str = "utf-8",
    config: PathLike | None = None,
    settings: Mapping[str, Any] | None = None,
    epochs: int | None = None,
    minutes: float | None = None,
    seed: int | None = None,
    threads: int | None = None,
    resume: bool = False,
    watch: Watch | OnStep = lambda status: None,
) -> Any:
    """Train a model of a task on text files and return it; its folder is `out`.

    `settings` maps dotted names to values, as `--set` does: {"model.cell": "gru", "train.clip": 5}.
    `config` is a TOML file of them. `watch` is called after each step.
    """
    if not isinstance(settings, Mapping | None):
        raise TypeError(f"settings is {shown(settings)}, but must map names to values.")
    direct = {"train.epochs": epochs, "train.minutes": minutes, "seed": seed}
    chosen = run_settings(task, config, settings or {}, {**direct, "train.threads": threads})
    encoding = one_text(encoding, name="encoding")
    sources = Sources(train=train, dev=dev, test=test, encoding=encoding)
    return run_training(chosen, sources, as_path(out, name="out"), resume=resume, watch=watch)


def run_settings(
    task: str,
    config: PathLike | None,
    overrides: Mapping[str, Any],
    direct: Mapping[str, Any],
) -> RunSettings:
    """The settings of a run: the file's, then the overrides, then the direct ones that are set.

    A number of epochs takes the place of minutes that the file asks for.
    """
    values = {**overrides, **{name: value for name, value in direct.items() if value is not None}}
    if "train.epochs" in values and values.setdefault("train.minutes", None) is not None:
        raise ConfigError(
            f"epochs is {values['train.epochs']} and minutes is {values['train.minutes']}, but "
            "a run ends by one of them. Give --epochs or --minutes, not both."
        )
    kind: type[RunSettings] = task_named(task).settings
    return settings_for(
        kind, file=None if config is None else as_path(config, name="config"), overrides=values
    )


def run_training(
    settings: RunSettings, sources: Sources, out: Path, *, resume: bool, watch: Watch | OnStep
) -> Any:
    """Train in the folder `out`, or go on with the run that is there, and return the model."""
    task, train, watch = task_named(settings.task), _operational(settings), Watch.of(watch)
    with watch.phase("reading"):  # before a folder is made: a wrong file leaves nothing behind
        data, settings = read_data(task, sources, settings)
    run = RunFolder(
        out, data=data, checkpoint_seconds=train.checkpoint_seconds, threads=train.threads
    )
    with run.locked():
        in_force = run.settings_in_force(settings, resume=resume)
        if not run.is_finished:
            use_machine(train.threads)
            torch.manual_seed(settings.seed)
            with watch.phase("getting ready"):
                job = task.job(in_force, data)
            if not run.is_begun and in_force.takes_size_from_time:
                torch.manual_seed(settings.seed)
                job = sized(job, in_force, watch)
            model, made = job.fit(run, watch)
            with watch.phase("scoring"):
                reports = job.reports(model).with_notes(
                    {f"{name} data": task.remarks(split) for name, split in data.items()}
                )
                files = folder_files(model, reports, made=made)
            run.finish(files)
    return load(out)


def _operational(settings: RunSettings) -> TrainSettings:
    """When to save and on how many cores, also of a task that has no such settings."""
    train = getattr(settings, "train", None)
    return train if isinstance(train, TrainSettings) else TrainSettings()


def read_data(
    task: AnyTask, sources: Sources, settings: RunSettings
) -> tuple[dict[str, Any], RunSettings]:
    """The data of a run, and its settings with what was found out about the training data.

    The other data are read as the training data are.
    """
    given = sources.given
    train = task.read(given.pop("train"), settings)
    settings = task.settled(settings, train)
    others = {name: task.read(source, settings) for name, source in given.items()}
    return {"train": train, **others}, settings


def save_model(model: Model, out: Path, *, made: str) -> None:
    """Write a model that was made elsewhere to a new folder; `made` tells how, for the card."""
    run = RunFolder(out)
    with run.locked():
        if run.is_finished:
            raise ConfigError(f"--out {out} already holds a model. Choose another folder.")
        run.settings_in_force(model.settings, resume=run.is_half_saved)
        clean_temporaries(out)
        write_into_folder(out, folder_files(model, Reports({}), made=made))


def folder_files(model: Model, reports: Reports, *, made: str) -> dict[str, Content]:
    """Every file of a finished model's folder but the manifest."""
    told = card(model, reports, made=made)
    return model_files(model, metrics=reports.as_json(), card=told)


def use_machine(threads: int) -> None:
    """Use this many cores (0: torch's choice, all of them), and let the allocator keep memory.

    The allocator's large blocks then serve the next step without page faults: measured at 1.05 to
    1.25 times the speed of a training step. It is glibc's own switch (mallopt: M_MMAP_THRESHOLD,
    M_TRIM_THRESHOLD); elsewhere nothing happens. Whoever has set the switch from outside keeps it.
    """
    if threads:
        torch.set_num_threads(threads)
    if any(name in os.environ for name in ALLOCATOR_VARIABLES):
        return
    try:
        mallopt = ctypes.CDLL(None).mallopt
    except (OSError, AttributeError, TypeError):
        return
    mallopt(-3, 1 << 30)
    mallopt(-1, (1 << 31) - 1)
