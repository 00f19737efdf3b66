"""A classifier as a scikit-learn estimator: fit, predict, cross_val_score, GridSearchCV."""

from collections.abc import Iterable
from reprlib import repr as short
from typing import Any, Self

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from sklearn.base import ClassifierMixin
from sklearn.utils.validation import check_is_fitted

from unrolled.errors import ConfigError
from unrolled.tasks.classify.data import Examples
from unrolled.tasks.classify.job import classify_job
from unrolled.tasks.classify.model import YES, ClassifyModel
from unrolled.tasks.classify.settings import ClassifyRun
from unrolled.tasks.shared.estimator import TaskEstimator
from unrolled.text.labelled import Example
from unrolled.training.in_memory import fit_in_memory

SOURCE = "<texts>"


class Classifier(ClassifierMixin, TaskEstimator, run=ClassifyRun):  # type: ignore[misc]
    """A recurrent text classifier, trained in memory.

    The parameters are the settings of `unrolled train classify`, without the names of their
    sections. The same seed, texts and labels give the same model.
    """

    def fit(self, texts: Iterable[str], labels: ArrayLike) -> Self:
        """Learn from texts and their labels, the best epoch being chosen on a share `holdout`.

        labels is one value a text, or a matrix (N, K) of 0 and 1 where a text may have several.
        """
        values = np.asarray(labels)
        examples = _examples(_checked_texts(texts), values)
        settings = self.settings()
        assert isinstance(settings, ClassifyRun)
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(settings.seed)
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


def _checked_texts(texts: Iterable[str]) -> list[str]:
    found = [texts] if isinstance(texts, str) else list(texts)
    wrong = next((text for text in found if not isinstance(text, str)), None)
    if isinstance(texts, str) or wrong is not None:
        seen = f"the string {short(texts)}" if wrong is None else f"one that is {short(wrong)}"
        raise ConfigError(f"texts must be a sequence of strings, but there is {seen}.")
    return [str(text) for text in found]


def _examples(texts: list[str], labels: NDArray[Any]) -> list[Example]:
    if labels.ndim not in (1, 2) or len(labels) != len(texts):
        raise ConfigError(
            f"labels has the shape {labels.shape}, but must have ({len(texts)},), one for each "
            f"text, or ({len(texts)}, K) of 0 and 1."
        )
    names = (
        [(str(label),) for label in labels]
        if labels.ndim == 1
        else [tuple(map(str, np.flatnonzero(row))) for row in labels]
    )
    return [
        Example(own, text, n) for n, (own, text) in enumerate(zip(names, texts, strict=True), 1)
    ]
