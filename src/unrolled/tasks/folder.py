"""A model folder is data: settings, weights, vocabulary, scores and a card, under one manifest."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from unrolled.config import checked, parse_toml
from unrolled.store.names import SETTINGS, as_path
from unrolled.tasks import task_named
from unrolled.tasks.shared.stored import read_model
from unrolled.tasks.task import Model


def load(folder: Path | str) -> Any:
    """The model of a folder, checked from manifest to tensor shapes before a weight is read."""
    return read_model(as_path(folder, name="folder"), _without_weights)


def _without_weights(files: Mapping[str, bytes]) -> Model:
    values = parse_toml(files[SETTINGS])
    task = task_named(values.get("task"))
    model: Model = task.model().restore(checked(task.settings, values), files)
    return model
