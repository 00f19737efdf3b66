"""A classifier as a scikit-learn estimator: fit, predict, cross_val_score, GridSearchCV."""

import json
import re
from collections.abc import Iterable, Mapping
from reprlib import repr as short
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import ClassifierMixin
from sklearn.utils.validation import check_is_fitted

from unrolled.errors import ConfigError
from unrolled.tasks.classify.data import Examples
from unrolled.tasks.classify.job import classify_job
from unrolled.tasks.classify.model import YES, ClassifyModel
from unrolled.tasks.classify.settings import ClassifyRun
from unrolled.tasks.shared.estimator import TaskEstimator, drawing_apart
from unrolled.text.corpus import SURROGATE
from unrolled.text.labelled import Example
from unrolled.text.labels import Labels
from unrolled.text.vocabulary import parse_object
from unrolled.training.in_memory import fit_in_memory

SOURCE = "<texts>"
CLASSES_FILE = "classes.json"
DTYPE = re.compile(r"[<>|]([biuf][1248]|U[0-9]{1,6}|O)")  # numbers, strings, or strings as objects


class Classifier(ClassifierMixin, TaskEstimator, run=ClassifyRun, model_type=ClassifyModel):  # type: ignore[misc]
    """A recurrent text classifier, trained in memory.

    The parameters are the settings of `unrolled train classify`, without the names of their
    sections. The same seed, texts and labels give the same model.
    """

    def fit(self, texts: Iterable[str], labels: ArrayLike) -> Self:
        """Learn from texts and their labels, the best epoch being chosen on a share `holdout`.

        labels is one value a text, or a matrix (N, K) of 0 and 1 where a text may have several.
        """
        values = _array(labels)
        examples = _examples(_checked_texts(texts), values)
        settings = self.settings()
        assert isinstance(settings, ClassifyRun)
        with drawing_apart(settings):
            data = {"train": Examples(examples, SOURCE, {})}
            job = classify_job(settings, data, multi_label=values.ndim == 2)
            fit_in_memory(job)
        self.model_: ClassifyModel = job.model
        self.classes_ = np.unique(values) if values.ndim == 1 else np.arange(values.shape[1])
        return self

    def predict(self, texts: Iterable[str]) -> NDArray[Any]:
        """The class of each text (N,), or (N, K) of 0 and 1 where a text may have several."""
        probabilities = self.predict_proba(texts)
        if self.model_.labels.multi_label:
            return (probabilities >= YES).astype(np.int64)
        return np.asarray(self.classes_[probabilities.argmax(axis=1)])

    def predict_proba(self, texts: Iterable[str]) -> NDArray[np.float64]:
        """The probability of each class (N, K), in the order of `classes_`."""
        check_is_fitted(self, "model_")
        columns = {str(name): place for place, name in enumerate(self.classes_)}
        known = [columns[name] for name in self.model_.labels.names]
        checked = _checked_texts(texts)
        result = np.zeros((len(checked), len(self.classes_)))  # a label that never occurred: 0
        result[:, known] = self.model_.probabilities(checked)
        return result

    def own_files(self) -> dict[str, bytes]:
        """The classes as they were given: numbers come back as numbers."""
        values, kind = self.classes_.tolist(), self.classes_.dtype.str
        return {CLASSES_FILE: json.dumps({"classes": values, "dtype": kind}).encode()}

    def take_files(self, files: Mapping[str, bytes]) -> None:
        """Their classes; those of a folder that a command made are its labels."""
        labels = self.model_.labels
        self.classes_ = np.array(labels.names)
        if labels.multi_label:
            self.classes_ = np.arange(len(labels))
        if CLASSES_FILE in files:
            self.classes_ = _classes(files[CLASSES_FILE], labels)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_label = True
        return tags


def _classes(content: bytes, labels: Labels) -> NDArray[Any]:
    """What `own_files` wrote, which must hold every label of the model."""
    value = parse_object(content.decode(), keys={"classes", "dtype"})
    if not isinstance(value["dtype"], str) or not DTYPE.fullmatch(value["dtype"]):
        raise ValueError(f"{CLASSES_FILE}: dtype is {short(value['dtype'])}")
    classes = np.array(value["classes"], dtype=value["dtype"])
    if classes.ndim != 1 or not {*labels.names} <= {*map(str, classes)}:
        raise ValueError(f"{CLASSES_FILE}: the classes are not the model's labels")
    return classes


def _checked_texts(texts: Iterable[str]) -> list[str]:
    if isinstance(texts, str) or not isinstance(texts, Iterable):
        seen = f"the string {short(texts)}" if isinstance(texts, str) else short(texts)
        raise ConfigError(f"texts must be a sequence of strings, but there is {seen}.")
    found = list(texts)
    for text in found:
        if not isinstance(text, str):
            raise ConfigError(
                f"texts must be a sequence of strings, but there is one that is {short(text)}."
            )
    return [str(text) for text in found]


def _array(labels: ArrayLike) -> NDArray[Any]:
    try:
        return np.asarray(labels)
    except ValueError as error:  # rows of unequal length
        raise ConfigError(
            f"labels is {short(labels)}, but must be one label for each text, or a matrix of 0 "
            "and 1 with a column for each label."
        ) from error


def _examples(texts: list[str], labels: NDArray[Any]) -> list[Example]:
    if labels.ndim not in (1, 2) or len(labels) != len(texts):
        raise ConfigError(
            f"labels has the shape {labels.shape}, but must have ({len(texts)},), one for each "
            f"text, or ({len(texts)}, K) of 0 and 1."
        )
    names = (
        [(_name(label),) for label in labels]
        if labels.ndim == 1
        else [tuple(map(str, np.flatnonzero(row))) for row in _yes_or_no(labels)]
    )
    return [
        Example(own, text, n) for n, (own, text) in enumerate(zip(names, texts, strict=True), 1)
    ]


def _name(label: object) -> str:
    """What a label is called in a model folder."""
    name = str(label)
    if label is None or label != label or isinstance(label, bytes) or not _is_text(name):
        raise ConfigError(
            f"labels has {short(label)} in it, but a label must be a number, or a text of at "
            "least one character."
        )
    return name


def _is_text(name: str) -> bool:
    return bool(name) and not SURROGATE.search(name)


def _yes_or_no(labels: NDArray[Any]) -> NDArray[Any]:
    wrong = (
        labels.ravel()[:1] if labels.dtype.kind not in "biuf" else labels[~np.isin(labels, (0, 1))]
    )
    if len(wrong):
        raise ConfigError(
            f"labels has {short(wrong[0])} in it, but a matrix of labels must be of 0 and 1. Give "
            "one label a text as a list."
        )
    return labels
