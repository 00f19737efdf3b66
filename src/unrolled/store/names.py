"""What the files of a model folder are called, those that a run adds to it, and any file at all."""

import os
from pathlib import Path

from unrolled.errors import ConfigError, shown

SETTINGS = "config.toml"
WEIGHTS = "model.safetensors"
METRICS = "metrics.json"
CARD = "README.md"
MODEL_FILES = (SETTINGS, WEIGHTS, METRICS, CARD)  # beside what a task adds

DATA = "data.json"  # by what to know the data again
METRIC_ROWS = "metrics.jsonl"  # a row a step, a row an evaluation
TIMES = "times.jsonl"


def as_path(value: object, *, name: str) -> Path:
    """A path that a program gives; a TypeError or ConfigError says what is none."""
    if not isinstance(value, str | os.PathLike) or isinstance(os.fspath(value), bytes):
        raise TypeError(f"{name} is {shown(value)}, but must be a path.")
    try:
        known = b"\0" not in os.fsencode(value)
    except UnicodeEncodeError:
        known = False
    if not known:
        raise ConfigError(f"{name} is {shown(value)}, but no file can be called so.")
    return Path(value)
