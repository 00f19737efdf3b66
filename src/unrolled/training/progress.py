"""Where a run stands, as a checkpoint keeps it; what is read may come from anyone."""

import json
from dataclasses import asdict, dataclass, fields
from typing import Annotated, ClassVar, Self

from pydantic import ConfigDict, Field, TypeAdapter

from unrolled.errors import shown

MAX_BYTES = 1 << 20
ON_DISK = {"epoch_total": "epoch_nats"}  # names of Progress that are others in a file

Count = Annotated[int, Field(ge=0, lt=2**53)]


@dataclass
class Progress:
    """Where a run stands; all that a checkpoint needs beside tensors."""

    __pydantic_config__: ClassVar[ConfigDict] = ConfigDict(strict=True, allow_inf_nan=False)

    step: Count = 0
    epoch: Count = 0  # the one under way, from 0
    batch: Count = 0  # the next one in it
    seconds: float = 0.0  # of training, over all sessions; kept only where it decides something
    epoch_total: float = 0.0  # the loss, summed over this epoch's predictions
    epoch_count: Count = 0
    best: float | None = None  # lowest cost on the dev data
    best_step: Count | None = None
    dry_epochs: Count = 0  # since the best, for early stopping
    flat_epochs: Count = 0  # since the best or the last cut, for the plateau schedule
    rate_factor: float = 1.0  # of the plateau schedule
    finished: bool = False
    threads: int = 0  # that the steps are taken with; 0: not known
    metrics_bytes: Count = 0

    @property
    def mean_loss(self) -> float:
        """Of this epoch so far."""
        return self.epoch_total / max(self.epoch_count, 1)

    def to_json(self) -> bytes:
        """As a checkpoint keeps it."""
        values = {ON_DISK.get(name, name): value for name, value in asdict(self).items()}
        return json.dumps(values, indent=1).encode()

    @classmethod
    def from_json(cls, data: bytes) -> Self:
        """What `to_json` gave; TypeError or ValueError for anything else."""
        names = {on_disk: name for name, on_disk in ON_DISK.items()}
        if len(data) > MAX_BYTES:
            raise ValueError(f"it has {len(data)} bytes")
        values = {names.get(name, name): value for name, value in json.loads(data).items()}
        if unknown := values.keys() - {field.name for field in fields(cls)}:
            raise ValueError(f"{shown(min(unknown))} is no part of it")
        progress = TypeAdapter(cls).validate_json(json.dumps(values))
        if progress.best_step is None and (progress.epoch or progress.finished):
            raise ValueError("it is beyond an epoch, but no step is the best")
        return progress
