"""A model folder is data: settings, weights, vocabulary, scores and a card, under one manifest."""

import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Protocol, Self

import torch
from torch import Tensor, nn

from unrolled.config import RUNS, RunSettings, checked, to_toml
from unrolled.errors import ConfigError, ModelError, not_one_of
from unrolled.files import read_folder
from unrolled.models.classify import ClassifyModel
from unrolled.models.language import LanguageModel
from unrolled.models.tag import TagModel
from unrolled.models.translate import TranslateModel
from unrolled.tensors import read_tensors, tensor_bytes


class Model(Protocol):
    """What a folder keeps of a model, and how it gives it back."""

    @property
    def settings(self) -> RunSettings: ...

    @property
    def network(self) -> nn.Module: ...

    def files(self) -> dict[str, bytes]:
        """What there is beside settings and weights: vocabularies, labels."""
        ...

    def about(self) -> dict[str, Any]:
        """Sizes that a user would ask for, by name."""
        ...

    @classmethod
    def restore(cls, settings: Any, files: Mapping[str, bytes]) -> Self:
        """The model that a folder's files describe, its weights still to be read."""
        ...


MODELS: dict[str, type[Model]] = {  # the one list of what exists
    "lm": LanguageModel,
    "ngram": LanguageModel,
    "classify": ClassifyModel,
    "tag": TagModel,
    "translate": TranslateModel,
    "window": LanguageModel,
}

SETTINGS, WEIGHTS, METRICS, CARD = "config.toml", "model.safetensors", "metrics.json", "README.md"
REQUIRED = (SETTINGS, WEIGHTS, METRICS, CARD)


def model_files(
    model: Model, weights: Mapping[str, Tensor], *, metrics: bytes, card: str
) -> dict[str, bytes]:
    """Every file of a model folder but the manifest."""
    return {
        SETTINGS: to_toml(model.settings).encode(),
        WEIGHTS: tensor_bytes(weights),
        METRICS: metrics,
        CARD: card.encode(),
        **model.files(),
    }


def load(folder: Path | str) -> Any:
    """The model of a folder, checked from manifest to tensor shapes before a weight is read."""
    folder = Path(folder)
    files = read_folder(folder, required=REQUIRED)
    with torch.device("meta"):  # shapes alone: a hostile folder makes nothing large
        model = _described(folder, files)
    expected = {
        name: (value.dtype, tuple(value.shape))
        for name, value in model.network.state_dict().items()
    }
    model.network.load_state_dict(read_tensors(folder / WEIGHTS, expected), assign=True)
    model.network.eval()
    return model


def _described(folder: Path, files: Mapping[str, bytes]) -> Model:
    try:
        values = tomllib.loads(files[SETTINGS].decode())
        task = values.get("task")
        if task not in MODELS:
            raise not_one_of("task", task, MODELS)
        settings = checked(RUNS[task], values)
        return MODELS[task].restore(settings, files)
    except (ConfigError, ValueError) as error:
        raise ModelError(folder, f"does not describe a model: {error}") from error
