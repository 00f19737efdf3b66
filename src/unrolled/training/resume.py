"""What a run must have in common with the one it goes on with: its settings and its texts."""

import hashlib
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from unrolled.config import RunSettings, settings_for
from unrolled.errors import ConfigError, ModelError

Texts = Mapping[str, Sequence[str]]  # the lines of the train, dev and test text, by these names

# When to save and on how many cores: a run may go on with other values than it began with.
OPERATIONAL = {"train.checkpoint_seconds", "train.threads"}
SAME = "Give the same command again, or choose another --out"


def fingerprints(texts: Texts) -> bytes:
    """By what to know the texts of a run again, as JSON."""
    found = {name: {"lines": len(t), "sha256": _digest(t)} for name, t in texts.items()}
    return (json.dumps(found, indent=1) + "\n").encode()


def stored_settings(file: Path, given: RunSettings) -> RunSettings:
    """The settings that a run began with; a ConfigError if those given now are not the same."""
    try:
        stored = settings_for(given.task, file=file)
    except ConfigError as error:
        raise ModelError(file, f"does not hold the settings of this run: {error}") from error
    old, new = _flat(stored.model_dump()), _flat(given.model_dump())
    for name in sorted((old.keys() | new.keys()) - OPERATIONAL):
        if old.get(name) != new.get(name):
            raise ConfigError(
                f"--resume: {name} is {_shown(new.get(name))}, but was {_shown(old.get(name))} "
                f"when the run in {file.parent} began. {SAME}."
            )
    return stored


def check_texts(file: Path, texts: Texts) -> None:
    """Refuse texts other than those whose fingerprints are in the file."""
    try:
        old = json.loads(file.read_bytes())
        new = json.loads(fingerprints(texts))
        changed = [name for name in ("train", "dev", "test") if old.get(name) != new.get(name)]
    except (FileNotFoundError, ValueError, AttributeError) as error:
        raise ModelError(file, "is missing or damaged; train again in another --out.") from error
    if changed:
        raise ConfigError(
            f"--resume: the {changed[0]} text is not the one that the run in {file.parent} began "
            f"with. {SAME}."
        )


def _digest(lines: Sequence[str]) -> str:
    digest = hashlib.sha256()
    for start in range(0, len(lines), 10_000):
        block = "\n".join([*lines[start : start + 10_000], ""])
        digest.update(block.encode("utf-8", "surrogatepass"))
    return digest.hexdigest()


def _flat(values: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    flat: dict[str, Any] = {}
    for name, value in values.items():
        inner = isinstance(value, Mapping)
        flat |= _flat(value, f"{prefix}{name}.") if inner else {prefix + name: value}
    return flat


def _shown(value: object) -> str:
    return "not set" if value is None else repr(value)
