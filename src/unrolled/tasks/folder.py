"""A model folder is data: settings, weights, vocabulary, scores and a card, under one manifest."""

import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch

from unrolled.config import checked
from unrolled.errors import ConfigError, ModelError
from unrolled.store.files import read_folder
from unrolled.store.names import MODEL_FILES, SETTINGS, WEIGHTS
from unrolled.store.tensors import read_tensors
from unrolled.tasks import task_named
from unrolled.tasks.task import Model


def load(folder: Path | str) -> Any:
    """The model of a folder, checked from manifest to tensor shapes before a weight is read."""
    folder = Path(folder)
    files = read_folder(folder, required=MODEL_FILES)
    with torch.device("meta"):  # shapes alone: a hostile folder makes nothing large
        model = _without_weights(folder, files)
    expected = {name: (value.dtype, tuple(value.shape)) for name, value in model.tensors().items()}
    model.load_tensors(read_tensors(folder / WEIGHTS, expected), assign=True)
    model.network.eval()
    return model


def _without_weights(folder: Path, files: Mapping[str, bytes]) -> Model:
    try:
        values = tomllib.loads(files[SETTINGS].decode())
        task = task_named(values.get("task"))
        model: Model = task.model().restore(checked(task.settings, values), files)
        return model
    except (ConfigError, ValueError) as error:
        raise ModelError(folder, f"does not describe a model: {error}") from error
