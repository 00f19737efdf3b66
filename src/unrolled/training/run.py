"""Train a model from files to a folder: what `unrolled train` and `unrolled.train` both call."""

import ctypes
import json
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from unrolled.config import NgramRun, RunSettings, TranslateRun, settings_for
from unrolled.errors import ConfigError
from unrolled.files import write_into_folder
from unrolled.models.folder import load, model_files
from unrolled.text.corpus import read_lines
from unrolled.text.parallel import read_parallel
from unrolled.training.card import model_card
from unrolled.training.checkpoint import Progress, RunFolder
from unrolled.training.classify import classify_job
from unrolled.training.clock import Status
from unrolled.training.language import language_job
from unrolled.training.loop import Job, Trainer
from unrolled.training.ngram import train_ngram
from unrolled.training.tag import tag_job
from unrolled.training.translate import translate_job

PathLike = Path | str
Watch = Callable[[Status], None]

ALLOCATOR_VARIABLES = ("MALLOC_TRIM_THRESHOLD_", "MALLOC_MMAP_THRESHOLD_", "GLIBC_TUNABLES")

JOBS: dict[str, Callable[..., Job]] = {  # settings, texts, sources -> job
    "lm": language_job,
    "classify": classify_job,
    "tag": tag_job,
    "translate": translate_job,
    "window": language_job,
}


@dataclass(frozen=True, kw_only=True)
class Sources:
    """The files that a run reads."""

    train: PathLike
    dev: PathLike | None = None
    test: PathLike | None = None
    encoding: str = "utf-8"

    @property
    def paths(self) -> dict[str, PathLike]:
        """Those that were given, by their names."""
        paths = {"train": self.train, "dev": self.dev, "test": self.test}
        return {name: path for name, path in paths.items() if path is not None}

    def read(self, languages: tuple[str, str] | None = None) -> dict[str, list[str]]:
        """The lines of each; parallel files have languages, and are named without them."""
        if languages is None:
            return {n: list(read_lines(p, encoding=self.encoding)) for n, p in self.paths.items()}
        return {
            name: read_parallel(path, *languages, encoding=self.encoding)
            for name, path in self.paths.items()
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
    watch: Watch = lambda status: None,
) -> Any:
    """Train a model of a task on text files and return it; its folder is `out`.

    `settings` maps dotted names to values, as `--set` does: {"model.cell": "gru", "train.clip": 5}.
    `config` is a TOML file of them. `watch` is called after each step.
    """
    direct = {"train.epochs": epochs, "train.minutes": minutes, "seed": seed}
    chosen = run_settings(task, config, settings or {}, {**direct, "train.threads": threads})
    sources = Sources(train=train, dev=dev, test=test, encoding=encoding)
    return run_training(chosen, sources, Path(out), resume=resume, watch=watch)


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
    return settings_for(task, file=Path(config) if config else None, overrides=values)


def run_training(
    settings: RunSettings, sources: Sources, out: Path, *, resume: bool, watch: Watch
) -> Any:
    """Train in the folder `out`, or go on with the run that is there, and return the model."""
    if isinstance(settings, NgramRun):  # counted, not trained: there are no steps to watch
        return train_ngram(settings, sources.paths, out, encoding=sources.encoding, resume=resume)
    languages = settings.languages.pair if isinstance(settings, TranslateRun) else None
    texts = sources.read(languages)  # before a folder is made: a wrong file leaves nothing behind
    run = RunFolder(out)
    with run.held():
        agreed = run.agree(settings, texts, resume=resume)
        if not run.is_finished:
            use_machine(settings.train.threads)
            torch.manual_seed(settings.seed)
            job = JOBS[settings.task](agreed, texts, sources.paths)
            run.begin(agreed, texts)
            progress = Trainer(job, settings, run, watch).run()
            write_into_folder(out, finished_files(run, job, progress))
    return load(out)


def finished_files(run: RunFolder, job: Job, progress: Progress) -> dict[str, bytes]:
    """The model folder: the best model with its scores and its card."""
    assert progress.best_step is not None
    best = load(run.best_folder(progress.best_step))
    reports = job.reports(best)
    metrics = {name: report.as_json() for name, report in reports.items()}
    return model_files(
        best,
        best.network.state_dict(),
        metrics=json.dumps(metrics, indent=1).encode(),
        card=model_card(best, reports, progress),
    )


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
