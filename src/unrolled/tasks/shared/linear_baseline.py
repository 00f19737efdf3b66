"""Fit the linear bag-of-n-grams baseline, with scikit-learn."""

import warnings
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from unrolled.tasks.shared.label_baselines import (
    MAX_FEATURES,
    MAX_NUMBERS,
    Floats,
    Grams,
    Keys,
    TokenRows,
    n_grams,
    safe_order,
    tf_idf,
)
from unrolled.text.labels import Labels, Targets

if TYPE_CHECKING:
    from scipy.sparse import csr_array

STRENGTH = 10.0  # C: how little the weights are held back
ROUNDS = 200  # through the texts at most


class Linear(NamedTuple):
    """A fitted linear model: the tables of `Baselines`."""

    order: int
    keys: Keys  # (F,) sorted
    idf: Floats  # (F,)
    weight: Floats  # (K, F)
    bias: Floats  # (K,)


def fit_linear(
    texts: TokenRows,
    targets: Targets,
    labels: Labels,
    *,
    level: str,
    vocabulary_size: int,
    class_weights: str = "none",
) -> Linear:
    """Logistic regression, one label against the rest, on the commonest n-grams."""
    order = safe_order(level, vocabulary_size)
    grams = n_grams(texts, order=order, size=vocabulary_size)
    keys, idf = commonest(grams, most=min(MAX_FEATURES, max(1, MAX_NUMBERS // len(labels))))
    features = tf_idf(grams, keys, idf)
    wanted = targets if labels.multi_label else targets[:, None] == np.arange(len(labels))  # (N, K)
    asked = range(1, 2) if len(labels) == 2 and not labels.multi_label else range(len(labels))
    fits = [_fit_one(features, wanted[:, k].astype(bool), class_weights) for k in asked]
    weight, bias = np.stack([w for w, _ in fits]), np.array([b for _, b in fits])
    if len(asked) < len(labels):  # of two labels the one is the other's opposite
        weight, bias = np.concatenate([-weight, weight]), np.concatenate([-bias, bias])
    return Linear(order, keys, idf, weight, bias)


def commonest(grams: Grams, *, most: int) -> tuple[Keys, Floats]:
    """The n-grams that most texts have, sorted, and idf = 1 + ln((1 + N) / (1 + texts with it))."""
    keys, places = np.unique(grams.keys, return_inverse=True)
    pairs = np.unique(places * grams.texts + grams.rows)
    texts_with = np.bincount(pairs // grams.texts, minlength=len(keys))
    kept = np.sort(np.argsort(-texts_with, kind="stable")[:most])
    idf = 1.0 + np.log((1.0 + grams.texts) / (1.0 + texts_with[kept]))
    return keys[kept], idf


def _fit_one(
    features: "csr_array", wanted: NDArray[np.bool_], class_weights: str
) -> tuple[Floats, float]:
    """Weights (F,) and bias of one label's question."""
    from sklearn.exceptions import ConvergenceWarning
    from sklearn.linear_model import LogisticRegression

    if wanted.all() or not wanted.any():  # nothing to tell apart: always, or never
        return np.zeros(features.shape[1]), 20.0 if wanted.all() else -20.0
    balance = "balanced" if class_weights == "balanced" else None
    model = LogisticRegression(
        C=STRENGTH,
        solver="liblinear",
        dual=True,  # the same optimum, several times faster where there are more n-grams than texts
        max_iter=ROUNDS,
        random_state=0,
        class_weight=balance,
    )
    with warnings.catch_warnings(category=ConvergenceWarning, action="ignore"):
        model.fit(features, wanted)
    return model.coef_[0], float(model.intercept_[0])
