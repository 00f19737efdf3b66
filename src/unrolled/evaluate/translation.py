"""Scores of texts that were made from texts: translations, rewritings, answers to commands.

bleu             corpus BLEU (Papineni et al. 2002), 0 to 100, by sacrebleu with its smoothing "exp"
chrf             chrF2 (Popović 2015, 2016): F of character n-grams to order 6, 0 to 100, by
                 sacrebleu
exact_match      the share of lines whose tokens are the reference's, all and no others
token_accuracy   the places where output and reference have the same token, over the places of the
                 longer of the two: one token too many or left out shifts all that follow

The intervals come from 1000 resamples of the lines. Each measure is a function of counts summed
over lines, so that a resample is a sum with weights, and no text is scored twice.
"""

from collections.abc import Callable, Mapping, Sequence
from importlib.metadata import version
from itertools import chain
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from unrolled.errors import not_one_of
from unrolled.evaluate.bootstrap import RESAMPLES, Estimate, Floats, bootstrap, resamples
from unrolled.evaluate.bootstrap import estimate as estimated
from unrolled.evaluate.score import Score, interval_recipe, signature

if TYPE_CHECKING:
    from sacrebleu.metrics.bleu import BLEU

TOKENIZERS = ("none", "13a", "intl", "char", "zh")  # those of sacrebleu that bring all they need
CHARACTERS = 6  # of the longest n-gram of chrF
WORDS = 4  # of the longest n-gram of BLEU
BETA = 2  # chrF: recall counts twice as much as precision
Ids = NDArray[np.int64]
Lines = Sequence[str]
Split = Callable[[str], Sequence[str]]


class PairedDifference(NamedTuple):
    """BLEU of one system less that of another, on the same lines."""

    difference: float
    low: float  # of the 95 % interval
    high: float
    p_value: float  # how often a resample does not find the better one better (Koehn 2004)


class Measure(NamedTuple):
    """A score, and how to take it of other sums of the same counts."""

    name: str
    recipe: str
    counts: Floats  # (N, …), a row a line
    of_sums: Callable[[Floats], Floats]  # (R, …) -> (R,)
    value: float | None = None  # where another's program has the last word


def translation_scores(
    outputs: Lines,
    references: Lines,
    *,
    counted: Mapping[str, object],
    first: str = "bleu",
    tokenize: str = "13a",
    split: Split = str.split,
) -> list[Score]:
    """Every measure of the outputs, with its recipe; the one named `first` comes first.

    `tokenize` is how sacrebleu cuts a text for BLEU: "none" if it is cut already. `split` is how
    it is cut for exact_match and token_accuracy. `counted` opens each signature.
    """
    _check_lines(outputs, references)
    measures = [
        *_by_sacrebleu(outputs, references, counted, tokenize),
        *_by_tokens([*map(split, outputs)], [*map(split, references)], counted),
    ]
    measures.sort(key=lambda measure: measure.name != first)  # the others keep their order
    return [_score(measure, len(outputs)) for measure in measures]


def paired_difference(
    outputs_a: Lines, outputs_b: Lines, references: Lines, *, tokenize: str = "13a"
) -> PairedDifference:
    """BLEU of a less BLEU of b by the paired bootstrap: both on the same resamples of the lines."""
    _check_lines(outputs_a, references)
    _check_lines(outputs_b, references)
    metric = _bleu_metric(tokenize)
    counts = [_bleu_counts(metric, outputs, references) for outputs in (outputs_a, outputs_b)]

    def differences(weights: Floats) -> Floats:
        a, b = (bleu(_summed(weights, count)) for count in counts)
        return a - b

    value = float(differences(np.ones((1, len(references))))[0])
    drawn = np.concatenate([differences(weights) for weights in resamples(len(references))])
    not_better = int(np.count_nonzero(drawn * np.sign(value) <= 0.0))
    return PairedDifference(*estimated(value, drawn), (not_better + 1) / (RESAMPLES + 1))


def _check_lines(outputs: Lines, references: Lines) -> None:
    if len(outputs) != len(references) or not outputs:
        raise ValueError(
            f"there are {len(outputs)} outputs and {len(references)} references, but there must be "
            "as many of one as of the other, and at least one"
        )


def _score(measure: Measure, lines: int) -> Score:
    def sums(weights: Floats) -> Floats:
        return _summed(weights, measure.counts)

    found = bootstrap(sums, {measure.name: measure.of_sums}, lines)[measure.name]
    if measure.value is not None:
        low, high = min(found.low, measure.value), max(found.high, measure.value)
        found = Estimate(measure.value, low, high)
    return Score.of(measure.name, found, measure.recipe)


# ------------------------------------------------------------------ n-grams


def _by_sacrebleu(
    outputs: Lines, references: Lines, counted: Mapping[str, object], tokenize: str
) -> tuple[Measure, Measure]:
    from sacrebleu.metrics.chrf import CHRF

    words, letters = _bleu_metric(tokenize), CHRF(char_order=CHARACTERS, beta=BETA)
    values = [metric.corpus_score(outputs, [references]).score for metric in (words, letters)]
    pairs = "|".join(f"{key}:{value}" for key, value in counted.items())
    prefix = f"{pairs}|{interval_recipe('lines')}|unrolled:{version('unrolled')}"
    recipes = [f"{prefix}|{metric.get_signature()}" for metric in (words, letters)]
    word_counts = _bleu_counts(words, outputs, references)
    return (
        Measure("bleu", recipes[0], word_counts, bleu, values[0]),
        Measure("chrf", recipes[1], chrf_counts(outputs, references), chrf, values[1]),
    )


def _bleu_metric(tokenize: str) -> "BLEU":
    from sacrebleu.metrics.bleu import BLEU

    if tokenize not in TOKENIZERS:
        raise not_one_of("tokenize", tokenize, TOKENIZERS)
    return BLEU(tokenize=tokenize, force=True, max_ngram_order=WORDS)  # force: without warnings


def _bleu_counts(metric: "BLEU", outputs: Lines, references: Lines) -> Floats:
    said, true = (
        [metric.tokenizer(line.rstrip()).split() for line in lines]
        for lines in (outputs, references)
    )
    return ngram_counts(said, true, orders=WORDS)


def chrf_counts(outputs: Lines, references: Lines) -> Floats:
    """What chrF is made of, a row a line: (N, CHARACTERS, 3)."""
    said, true = (["".join(line.split()) for line in lines] for lines in (outputs, references))
    counts = ngram_counts(said, true, orders=CHARACTERS)
    counts[..., 0] *= counts[..., 1] > 0  # an order that the reference does not have is not asked
    return counts


def ngram_counts(
    said: Sequence[Sequence[str]], true: Sequence[Sequence[str]], *, orders: int
) -> Floats:
    """How many n-grams each output has, its reference has, and they share: (N, orders, 3)."""
    numbers: dict[str, int] = {}
    lines, N = [*said, *true], len(said)
    tokens = np.array(
        [numbers.setdefault(t, len(numbers)) for t in chain.from_iterable(lines)], np.int64
    )
    lengths = np.array([*map(len, lines)])
    line = np.repeat(np.arange(2 * N), lengths)
    left = np.repeat(np.cumsum(lengths), lengths) - np.arange(len(tokens))  # to the line's end
    grams = np.zeros_like(tokens)  # a number for the n-gram that begins here
    counts = np.zeros((N, orders, 3))
    for n in range(orders):
        at = np.flatnonzero(left > n)
        longer = grams[at] * len(numbers) + tokens[at + n]
        grams[at] = np.unique(longer, return_inverse=True)[1]
        counts[:, n] = _line_counts(line[at], grams[at], N)
    return counts


def _line_counts(line: Ids, grams: Ids, N: int) -> Floats:
    """From n-grams of lines 0..N-1 (outputs) and N..2N-1 (references): (N, 3)."""
    most = int(grams.max(initial=0)) + 1
    keys, kind = np.unique(line % N * most + grams, return_inverse=True)
    said = np.bincount(kind[line < N], minlength=len(keys))
    true = np.bincount(kind[line >= N], minlength=len(keys))
    sums = [
        np.bincount(keys // most, of, minlength=N) for of in (said, true, np.minimum(said, true))
    ]
    return np.stack(sums, axis=1)  # (N, 3)


def bleu(sums: Floats) -> Floats:
    """BLEU of summed n-gram counts (R, orders, 3); counts of 0 are 1/2, 1/4 and so on."""
    said, true, right = np.moveaxis(sums, 2, 0)  # 3 × (R, orders)
    missed = (right == 0) & (said > 0)
    smoothed = np.where(missed, 0.5 ** np.cumsum(missed, axis=1), right)
    defined = (said > 0).all(axis=1) & (right[:, 0] > 0)  # (R,)
    precisions = np.where(defined[:, None], smoothed, 1.0) / np.maximum(said, 1.0)
    penalty = np.exp(1.0 - np.maximum(1.0, true[:, 0] / np.maximum(said[:, 0], 1.0)))
    value = 100.0 * penalty * np.exp(np.log(precisions).mean(axis=1))
    return np.where(defined, value, 0.0)  # (R,)


def chrf(sums: Floats) -> Floats:
    """chrF of summed n-gram counts (R, orders, 3): F of the means over the orders there are."""
    said, true, right = np.moveaxis(sums, 2, 0)  # 3 × (R, orders)
    orders = np.maximum((said > 0).sum(axis=1), 1)
    precision = (right / np.maximum(said, 1.0)).sum(axis=1) / orders  # (R,)
    recall = (right / np.maximum(true, 1.0)).sum(axis=1) / orders
    below = np.maximum(BETA**2 * precision + recall, np.finfo(np.float64).tiny)
    return np.asarray(100.0 * (1 + BETA**2) * precision * recall / below)  # (R,)


# ------------------------------------------------------------------ tokens in their places


def _by_tokens(
    said: Sequence[Sequence[str]], true: Sequence[Sequence[str]], counted: Mapping[str, object]
) -> tuple[Measure, Measure]:
    counts = np.array(
        [(_same(a, b), max(len(a), len(b))) for a, b in zip(said, true, strict=True)], np.float64
    )
    exact = np.stack([counts[:, 0] == counts[:, 1], np.ones(len(counts))], axis=1)
    recipe = signature({**counted, "places": "longer"}, resampled="lines")
    return (
        Measure("exact_match", recipe, exact, share),
        Measure("token_accuracy", recipe, counts, share),
    )


def _same(said: Sequence[str], true: Sequence[str]) -> int:
    return sum(a == b for a, b in zip(said, true, strict=False))


def share(sums: Floats) -> Floats:
    """Right ones over all (R, 2); where there was nothing to say, all is right."""
    right, whole = sums.T
    return np.where(whole > 0, right / np.maximum(whole, 1.0), 1.0)  # (R,)


def _summed(weights: Floats, counts: Floats) -> Floats:
    """Counts (N, …) summed over lines that count `weights` (R, N) times: (R, …)."""
    return np.asarray(np.tensordot(weights, counts, axes=1))
