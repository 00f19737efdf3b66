"""Scores of labels: how many are right, how evenly, and how far probabilities can be believed.

accuracy            right ones over all; of several labels: texts whose labels are all right
balanced_accuracy   the mean over the labels of the share of its texts that were found
macro_f1            the mean over the labels of F1 = 2 · right / (said + true)
micro_f1            F1 of all labels together; asked where a text may have several
ece                 expected calibration error (Guo et al. 2017, arXiv:1706.04599, eq. 3): over 15
                    bins of equal width, the mean distance of confidence from the share of right
                    ones. Of several labels: of probability from the share that has the label

A label that neither occurs nor is said counts in no mean. Intervals: 1000 resamples of the texts.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from unrolled.evaluate.bootstrap import Floats, bootstrap
from unrolled.evaluate.measure import Measure
from unrolled.evaluate.score import Score, signature
from unrolled.text.labels import Targets

if TYPE_CHECKING:
    from scipy.sparse import csr_array

BINS = 15
YES = 0.5


@dataclass(frozen=True, eq=False)
class Judged:
    """What was said of N texts beside what is true: a row a text."""

    exact: Floats  # (N,) 1 where all of it is right
    right: "csr_array"  # (N, K) 1 where a label was said and is true
    said: "csr_array"  # (N, K)
    true: "csr_array"  # (N, K)
    gaps: "csr_array"  # (N, BINS) confidence less truth, where that confidence belongs
    decisions: int  # a text

    @classmethod
    def of(cls, probabilities: Floats, targets: Targets) -> "Judged":
        """From probabilities (N, K) and targets (N,), or (N, K) where labels are several.

        Targets may speak of more labels than probabilities do: those are never said.
        """
        from scipy.sparse import csr_array

        K = targets.shape[1] if targets.ndim == 2 else int(targets.max(initial=0)) + 1
        K = max(K, probabilities.shape[1])
        probabilities = np.pad(probabilities, ((0, 0), (0, K - probabilities.shape[1])))
        if targets.ndim == 2:
            said, true = csr_array(1.0 * (probabilities >= YES)), csr_array(1.0 * targets)
            confidence, correct = probabilities, targets.astype(np.float64)
        else:
            best = probabilities.argmax(axis=1)
            said, true = _marks(best, K), _marks(targets, K)
            confidence = probabilities.max(axis=1)[:, None]
            correct = (best == targets)[:, None].astype(np.float64)
        right = said.multiply(true).tocsr()
        wrong = said.sum(axis=1) + true.sum(axis=1) - 2.0 * right.sum(axis=1)
        return cls(
            1.0 * (wrong == 0), right, said, true, _gaps(confidence, correct), correct.shape[1]
        )

    def sums(self, weights: Floats) -> "Sums":
        """Over texts that count `weights` (R, N) times each: R ways at once."""
        return Sums(
            weights.sum(axis=1),
            weights @ self.exact,
            weights @ self.right,
            weights @ self.said,
            weights @ self.true,
            weights @ self.gaps,
            self.decisions,
        )


@dataclass(frozen=True, eq=False)
class Sums:
    """The columns of `Judged`, summed: all that the measures are made of."""

    texts: Floats  # (R,)
    exact: Floats  # (R,)
    right: Floats  # (R, K)
    said: Floats  # (R, K)
    true: Floats  # (R, K)
    gaps: Floats  # (R, BINS)
    decisions: int


def accuracy(sums: Sums) -> Floats:
    return sums.exact / sums.texts  # (R,), as all of these


def balanced_accuracy(sums: Sums) -> Floats:
    return _mean(sums.right, sums.true)


def macro_f1(sums: Sums) -> Floats:
    return _mean(2.0 * sums.right, sums.said + sums.true)


def micro_f1(sums: Sums) -> Floats:
    whole = (sums.said + sums.true).sum(axis=1, keepdims=True)
    return _mean(2.0 * sums.right.sum(axis=1, keepdims=True), whole)


def ece(sums: Sums) -> Floats:
    return np.asarray(np.abs(sums.gaps).sum(axis=1) / (sums.texts * sums.decisions))


LabelMeasure = Callable[[Sums], Floats]
ONE: dict[str, LabelMeasure] = {
    "accuracy": accuracy,
    "macro_f1": macro_f1,
    "balanced_accuracy": balanced_accuracy,
    "ece": ece,
}
SEVERAL: dict[str, LabelMeasure] = {
    "accuracy": accuracy,
    "macro_f1": macro_f1,
    "micro_f1": micro_f1,
    "ece": ece,
}


def label_scores(
    probabilities: Floats,
    targets: Targets,
    *,
    counted: Mapping[str, object],
    first: str = "accuracy",
) -> list[Score]:
    """Every measure of probabilities (N, K), with its recipe; the one named `first` comes first."""
    judged = Judged.of(probabilities, targets)
    measures = SEVERAL if targets.ndim == 2 else ONE
    found = bootstrap(judged.sums, measures, len(targets))
    recipe = signature({**counted, "bins": BINS}, resampled="texts")
    return [
        Score.of(name, found[name], recipe, higher_is_better=name != "ece")
        for name in sorted(measures, key=lambda name: name != first)  # the others keep their order
    ]


def label_measures(
    probabilities: Floats, targets: Targets, *, counted: Mapping[str, object], first: str
) -> list[Measure]:
    """The same scores, with what they are made of text by text."""
    from scipy.sparse import csr_array, hstack

    judged = Judged.of(probabilities, targets)
    K = judged.right.shape[1]
    ones = np.ones((len(targets), 1))
    parts = [ones, judged.exact[:, None], judged.right, judged.said, judged.true, judged.gaps]
    counts = hstack([csr_array(part) for part in parts], format="csr")
    measures, ends = SEVERAL if targets.ndim == 2 else ONE, np.cumsum([1, 1, K, K, K])

    def value(name: str) -> Callable[[Floats], Floats]:
        def of_sums(sums: Floats) -> Floats:
            texts, exact, right, said, true, gaps = np.split(sums, ends, axis=1)
            whole = Sums(texts[:, 0], exact[:, 0], right, said, true, gaps, judged.decisions)
            return measures[name](whole)

        return of_sums

    scores = label_scores(probabilities, targets, counted=counted, first=first)
    return [Measure(score, counts, value(score.name)) for score in scores]


def _marks(labels: Targets, K: int) -> "csr_array":
    from scipy.sparse import csr_array

    N = len(labels)
    return csr_array((np.ones(N), labels, np.arange(N + 1)), shape=(N, K))


def _gaps(confidence: Floats, correct: Floats) -> "csr_array":
    from scipy.sparse import csr_array

    N, C = confidence.shape
    bins = np.minimum((confidence * BINS).astype(np.int64), BINS - 1).ravel()
    places = np.repeat(np.arange(N), C), bins
    return csr_array(((confidence - correct).ravel(), places), shape=(N, BINS))


def _mean(part: Floats, whole: Floats) -> Floats:
    """The mean over a row of those quotients that have a divisor: (R, K) -> (R,)."""
    there = whole > 0
    quotients = np.divide(part, whole, out=np.zeros_like(part), where=there)
    return np.asarray(quotients.sum(axis=1) / np.maximum(there.sum(axis=1), 1))
