"""What a run must have in common with the one it goes on with: its settings and its data."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Protocol, TypeVar

from unrolled.config import flat, read_toml, settings_for
from unrolled.config.sections import RunSettings
from unrolled.errors import ConfigError, ModelError, shown

Run = TypeVar("Run", bound=RunSettings)


class Fingerprinted(Protocol):
    """Data that can be known again."""

    def fingerprint(self) -> Mapping[str, int | str]: ...


Splits = Mapping[str, Fingerprinted]  # the train, dev and test data, by these names

# When to save and on how many cores: a run may go on with other values than it began with.
OPERATIONAL = {"train.checkpoint_seconds", "train.threads"}
SAME = "Give the same command again, or choose another --out"


def fingerprints(data: Splits) -> bytes:
    """By what to know the data of a run again, as JSON."""
    found = {name: dict(split.fingerprint()) for name, split in data.items()}
    return (json.dumps(found, indent=1) + "\n").encode()


def stored_settings(file: Path, given: Run) -> Run:
    """The settings that a run began with; a ConfigError if those given now are not the same."""
    try:
        stored = settings_for(type(given), file=file)
        whole = "task" in read_toml(file)
    except ConfigError as error:
        raise ModelError(file, f"does not hold the settings of this run: {error}") from error
    if not whole:  # what is left out of a run's own file was lost
        raise ModelError(file, "is damaged: it names no task; train again in another --out.")
    old, new = flat(stored.model_dump()), flat(given.model_dump())
    for name in sorted((old.keys() | new.keys()) - OPERATIONAL - given.left_open()):
        if old.get(name) != new.get(name):
            raise ConfigError(
                f"--resume: {name} is {_shown(new.get(name))}, but was {_shown(old.get(name))} "
                f"when the run in {file.parent} began. {SAME}."
            )
    return stored


def check_data(file: Path, data: Splits) -> None:
    """Refuse data other than those whose fingerprints are in the file."""
    try:
        old = json.loads(file.read_bytes())
        new = json.loads(fingerprints(data))
        changed = [name for name in ("train", "dev", "test") if old.get(name) != new.get(name)]
    except (FileNotFoundError, ValueError, AttributeError, RecursionError) as error:
        raise ModelError(file, "is missing or damaged; train again in another --out.") from error
    if changed:
        raise ConfigError(
            f"--resume: the {changed[0]} text is not the one that the run in {file.parent} began "
            f"with. {SAME}."
        )


def _shown(value: object) -> str:
    return "not set" if value is None else shown(value)
