"""A model out of its folder, whoever asks for it."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TypeVar

import torch

from unrolled.errors import ConfigError, ModelError
from unrolled.store.names import MODEL_FILES, WEIGHTS
from unrolled.store.reading import read_folder
from unrolled.store.tensors import read_tensors
from unrolled.tasks.task import Model

M = TypeVar("M", bound=Model)


def read_model(folder: Path, restore: Callable[[Mapping[str, bytes]], M]) -> M:
    """The model of a folder, checked from manifest to tensor shapes before a weight is read.

    `restore` makes it of the folder's files but its tensors.
    """
    files = read_folder(folder, required=MODEL_FILES)
    try:
        with torch.device("meta"):  # shapes alone: a hostile folder makes nothing large
            model = restore(files)
    except (ConfigError, ValueError) as error:
        raise ModelError(folder, f"does not describe a model: {error}") from error
    expected = {name: (value.dtype, tuple(value.shape)) for name, value in model.tensors().items()}
    model.load_tensors(read_tensors(folder / WEIGHTS, expected), assign=True)
    model.network.eval()
    return model
