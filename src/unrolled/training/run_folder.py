"""A run folder: checkpoints to go on from, the best model so far, and the metrics.

    out/config.toml                     the settings, written when the run begins
    out/data.json                       by what to know the texts again
    out/metrics.jsonl                   a line a step, a line an evaluation; free of times
    out/times.jsonl                     when each evaluation came, and how fast training went
    out/checkpoints/step-00000120/      weights, optimiser, random state, place in the data
    out/checkpoints/best-00000100/      the best model so far, a model folder like any other
    out/MANIFEST.json and its files     the finished model, written last

A checkpoint names how much of metrics.jsonl belongs to it, so what came after is cut off on resume.
"""

import json
import os
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from torch import Tensor

from unrolled.config import to_toml
from unrolled.config.sections import RunSettings
from unrolled.errors import ConfigError, ModelError, StorageError, shown
from unrolled.store.files import (
    MANIFEST,
    Content,
    FolderLock,
    clean_temporaries,
    is_temporary,
    read_folder,
    write_file,
    write_folder,
    write_into_folder,
)
from unrolled.store.names import DATA, METRIC_ROWS, MODEL_FILES, SETTINGS, TIMES
from unrolled.store.storage import open_own, refuse_link
from unrolled.store.tensors import read_tensors, tensor_bytes
from unrolled.training.progress import Progress as Progress
from unrolled.training.resume import Run, Splits, check_data, fingerprints, stored_settings

LOCK = ".lock"
STATE, TENSORS = "state.json", "state.safetensors"
KEPT = 2  # checkpoints


class RunFolder:
    """The files of one run, made of these data; a checkpoint is due after so many seconds.

    `threads` are those that this session asks for; 0: those that the run began with.
    """

    def __init__(
        self,
        path: Path,
        *,
        data: Splits | None = None,
        checkpoint_seconds: float = 60.0,
        threads: int = 0,
    ) -> None:
        self.path, self.data, self.threads = path, data or {}, threads
        self.checkpoint_seconds = checkpoint_seconds
        self.checkpoints = path / "checkpoints"
        self._rows: list[str] = []

    @property
    def metrics(self) -> Path:
        return self.path / METRIC_ROWS

    @property
    def is_begun(self) -> bool:
        return (self.path / SETTINGS).exists()

    @property
    def is_finished(self) -> bool:
        return (self.path / MANIFEST).exists()

    @property
    def is_half_saved(self) -> bool:
        """Whether a run was cut short before there was anything to go on from: it begins anew."""
        return self.is_begun and not self.is_finished and not self.checkpoints.exists()

    @contextmanager
    def locked(self) -> Iterator[None]:
        """The folder for this process alone; made if need be, and unmade if no run begins in it."""
        is_new = not self.path.exists()
        with disk_errors(self.path, "cannot be made", "Choose another --out."):
            self.path.mkdir(parents=True, exist_ok=True)
        self._refuse_other_files()
        with FolderLock(self.path):
            self._refuse_links()
            try:
                yield
            finally:
                if is_new and not self.is_begun:
                    with suppress(OSError):
                        (self.path / LOCK).unlink()
                        self.path.rmdir()

    def settings_in_force(self, given: Run, *, resume: bool) -> Run:
        """The settings in force: those that the run in the folder began with, if there is one."""
        if not self.is_begun:
            return given
        if not resume:
            raise ConfigError(
                f"--out {self.path} already holds a run. Choose another folder, "
                "or add --resume to go on with it."
            )
        settings = stored_settings(self.path / SETTINGS, given)
        if not self.is_half_saved:
            check_data(self.path / DATA, self.data)
        return settings

    def begin(self, settings: RunSettings) -> None:
        """Clear up after a crash and, for a new run, write down what it is made of."""
        clean_temporaries(self.path)
        if not self.is_begun or self.is_half_saved:
            write_file(self.path / DATA, fingerprints(self.data))
            write_file(self.path / SETTINGS, to_toml(settings).encode())
        with disk_errors(self.checkpoints, "cannot be made", "Check the disk."):
            self.checkpoints.mkdir(exist_ok=True)
        clean_temporaries(self.checkpoints)

    def finish(self, files: Mapping[str, Content]) -> None:
        """The finished model. First come the files by which a run is known that is cut short."""
        every = {**files, **self._unwritten()}
        first = {name: every[name] for name in (DATA, SETTINGS) if name in every}
        write_into_folder(self.path, {**first, **every})

    def _unwritten(self) -> dict[str, bytes]:
        """What a run without checkpoints has still to write: its data's fingerprints, its rows."""
        if self.checkpoints.exists():
            return {}
        return {DATA: fingerprints(self.data), METRIC_ROWS: "".join(self._rows).encode()}

    def record(self, row: dict[str, Any]) -> None:
        """Keep a metrics row; it reaches the disk with the next checkpoint."""
        self._rows.append(json.dumps(row) + "\n")

    def note_time(self, row: dict[str, Any]) -> None:
        """Append a row to times.jsonl."""
        path = self.path / TIMES
        with disk_errors(path, "cannot be written"), open_own(path) as file:
            file.seek(0, os.SEEK_END)
            file.write((json.dumps(row) + "\n").encode())

    def save(self, progress: Progress, tensors: dict[str, Tensor]) -> None:
        """A checkpoint, complete or absent; older ones are removed once it stands."""
        data = tensor_bytes(tensors)
        progress.metrics_bytes = self._flush(progress.metrics_bytes)
        files = {STATE: progress.to_json(), TENSORS: data}
        write_folder(self.step_folder(progress.step), files)
        self._remove_old()

    def restore(self) -> tuple[Progress, dict[str, Tensor]] | None:
        """The newest checkpoint; one that is damaged is removed for the one before."""
        damage: ModelError | None = None
        for folder in reversed(self._named("step-")):
            try:
                progress, tensors = self._read(folder)
            except ModelError as error:
                damage = damage or error
                continue
            self._cut_back(progress)
            return progress, tensors
        if damage:
            raise damage
        self._cut_back(Progress())
        return None

    def save_best(self, step: int, files: Mapping[str, bytes]) -> None:
        """The best model so far; it counts once the next checkpoint names it."""
        write_folder(self.best_folder(step), files)

    def verified_best(self, step: int) -> Path:
        """The folder of the best model, every byte of it checked."""
        read_folder(self.best_folder(step), required=MODEL_FILES)
        return self.best_folder(step)

    def step_folder(self, step: int) -> Path:
        """Where the checkpoint of that step lies."""
        return self.checkpoints / f"step-{step:08d}"

    def best_folder(self, step: int) -> Path:
        """Where the best model of that step lies."""
        return self.checkpoints / f"best-{step:08d}"

    def _refuse_other_files(self) -> None:
        ours = {LOCK, DATA}
        with disk_errors(self.path, "cannot be read", "Choose another --out."):
            names = {path.name for path in self.path.iterdir()}
        others = sorted(n for n in names - ours if not is_temporary(n))
        if others and not self.is_begun:
            raise ConfigError(
                f"--out {self.path} holds no run, but {others[0]!r}. Choose a new or empty folder."
            )

    def _refuse_links(self) -> None:
        for name in (DATA, METRIC_ROWS, SETTINGS, TIMES):
            refuse_link(self.path / name)
        refuse_link(self.checkpoints)
        for path in self.checkpoints.glob("*"):
            refuse_link(path)

    def _read(self, folder: Path) -> tuple[Progress, dict[str, Tensor]]:
        files = read_folder(folder, required=(STATE, TENSORS))
        try:
            progress = Progress.from_json(files[STATE])
        except (AttributeError, RecursionError, TypeError, ValueError) as error:
            problem = f"is damaged or of another version: {shown(str(error))}."
            raise ModelError(folder / STATE, problem) from error
        if progress.best_step is not None:
            self.verified_best(progress.best_step)
        if progress.metrics_bytes > (self.metrics.stat().st_size if self.metrics.exists() else 0):
            raise ModelError(self.metrics, "is cut off; train again in another --out.")
        return progress, read_tensors(folder / TENSORS, None)

    def _cut_back(self, progress: Progress) -> None:
        """Remove what came after; it will come again."""
        last_step = self.step_folder(progress.step)
        last_best = self.best_folder(progress.best_step or 0)
        for folder in self._named("step-") + self._named("best-"):
            if folder > (last_step if folder.name.startswith("step-") else last_best):
                shutil.rmtree(folder, ignore_errors=True)
        if self.metrics.exists():
            with disk_errors(self.metrics, "cannot be written"), open_own(self.metrics) as file:
                file.truncate(progress.metrics_bytes)

    def _remove_old(self) -> None:
        """Remove what no kept checkpoint needs; each needs its own best model."""
        kept = self._named("step-")[-KEPT:]
        needed = {*kept, *map(self._best_of, kept)}
        for folder in self._named("step-") + self._named("best-"):
            if folder not in needed:
                shutil.rmtree(folder, ignore_errors=True)

    def _best_of(self, checkpoint: Path) -> Path | None:
        with suppress(
            OSError, ValueError, KeyError, TypeError, RecursionError
        ):  # it has none, or is damaged
            return self.best_folder(json.loads((checkpoint / STATE).read_bytes())["best_step"])
        return None

    def _named(self, prefix: str) -> list[Path]:
        return sorted(self.checkpoints.glob(f"{prefix}*"))

    def _flush(self, start: int) -> int:
        """Write the kept rows behind byte `start`, and say where they end."""
        with disk_errors(self.metrics, "cannot be written"), open_own(self.metrics) as file:
            file.truncate(start)
            file.seek(start)
            file.write("".join(self._rows).encode())
            file.flush()
            os.fsync(file.fileno())
            end = file.tell()
        self._rows.clear()
        return end


@contextmanager
def disk_errors(path: Path, problem: str, advice: str = "Check the disk.") -> Iterator[None]:
    """Turn what the system refuses into a StorageError."""
    try:
        yield
    except OSError as error:
        raise StorageError(path, f"{problem}: {error.strerror}. {advice}") from error
