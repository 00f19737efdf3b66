"""Who is to blame for a wrong output: the model, or the search in it?

    y* the reference, ŷ the output, s the score that the search compares

    s(y*) ≤ s(ŷ)   the search did its work: the model prefers the wrong output     "model"
    s(y*) > s(ŷ)   the model prefers the reference: the search missed it           "search"

Both sides must have the same score: a search that normalises by length is judged by scores that
are normalised by length. Where search errors prevail a wider beam helps, else it does not.
"""

from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from unrolled.decode.hypothesis import check_alpha, normalised
from unrolled.errors import ConfigError

Verdict = Literal["model", "search"]


class Scored(NamedTuple):
    """Log-probabilities of sequences, one a sentence, and how many tokens each sums over."""

    log_p: NDArray[np.float64]  # (N,)
    lengths: NDArray[np.int64]  # (N,), END counted where there is one


class Audit(NamedTuple):
    """Shares of all sentences; they sum to 1."""

    right: float  # the output is the reference
    model: float
    search: float
    sentences: int


def verdict(reference_score: float, output_score: float) -> Verdict:
    """Who is to blame for an output that is not the reference, by the scores of both."""
    return "model" if reference_score <= output_score else "search"


def audit(
    reference: Scored, output: Scored, right: NDArray[np.bool_], *, alpha: float = 0.0
) -> Audit:
    """The share of outputs that equal the reference, and who is to blame for the others.

    right (N,) tells which outputs equal the reference; alpha must be the search's own.
    """
    check_alpha(alpha)
    sizes = {len(column) for column in (*reference, *output, right)}
    if len(sizes) > 1 or sizes == {0}:
        raise ConfigError(
            f"The audit was given columns of {', '.join(map(str, sorted(sizes)))} sentences, but "
            "needs one reference and one output for each of at least one sentence."
        )
    scores = (normalised(each.log_p, each.lengths, alpha) for each in (reference, output))
    blame = np.array([verdict(y, y_hat) for y, y_hat in zip(*scores, strict=True)])
    wrong = ~right
    model, search = (float((wrong & (blame == name)).mean()) for name in ("model", "search"))
    return Audit(float(right.mean()), model, search, len(right))
