"""Recurrent sequence models, from raw text to a trained, explained and served model.

Public names load on first use, so that `import unrolled` is fast and does not import torch.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from unrolled import nn
    from unrolled.errors import UnrolledError
    from unrolled.tasks.classify.estimator import Classifier
    from unrolled.tasks.folder import load
    from unrolled.tasks.run import train
    from unrolled.tasks.shared.language_model import LanguageModel
    from unrolled.tasks.shared.word_vectors import WordVectors
    from unrolled.tasks.tag.estimator import Tagger

__all__ = [
    "Classifier",
    "LanguageModel",
    "Tagger",
    "UnrolledError",
    "WordVectors",
    "load",
    "nn",
    "train",
]

_HOMES = {
    "Classifier": "unrolled.tasks.classify.estimator",
    "LanguageModel": "unrolled.tasks.shared.language_model",
    "Tagger": "unrolled.tasks.tag.estimator",
    "UnrolledError": "unrolled.errors",
    "WordVectors": "unrolled.tasks.shared.word_vectors",
    "load": "unrolled.tasks.folder",
    "train": "unrolled.tasks.run",
}


def __getattr__(name: str) -> Any:
    if name == "__version__":
        return import_module("importlib.metadata").version("unrolled")
    if name == "nn":
        return import_module("unrolled.nn")
    if name not in _HOMES:
        raise AttributeError(f"module 'unrolled' has no attribute {name!r}")
    return getattr(import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    return sorted([*__all__, "__version__"])
