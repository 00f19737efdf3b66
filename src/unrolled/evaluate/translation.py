"""Scores of texts that were made from texts: translations, rewritings, answers to commands.

bleu             corpus BLEU (Papineni et al. 2002), 0 to 100, by sacrebleu with its smoothing "exp"
chrf             chrF2 (Popović 2015, 2016): F of character n-grams to order 6, 0 to 100, by
                 sacrebleu
exact_match      the share of lines whose tokens are the reference's, all and no others
token_accuracy   the places where output and reference have the same token, over the places of the
                 longer of the two: one token too many or left out shifts all that follow
wer, cer, per    edits over the words or characters of the references: see evaluate/edits.py

The intervals come from 1000 resamples of the lines. Each measure is a function of counts summed
over lines, so that a resample is a sum with weights, and no text is scored twice.
"""

from collections.abc import Callable, Mapping, Sequence
from importlib.metadata import version
from itertools import chain
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from unrolled.errors import not_one_of
from unrolled.evaluate.bootstrap import Floats
from unrolled.evaluate.edits import any_order_counts, edit_counts, error_rate
from unrolled.evaluate.measure import Measure, Recipe, measured
from unrolled.evaluate.score import interval_recipe, signature

if TYPE_CHECKING:
    from sacrebleu.metrics.bleu import BLEU

TOKENIZERS = ("none", "13a", "intl", "char", "zh")  # those of sacrebleu that bring all they need
CHARACTERS = 6  # of the longest n-gram of chrF
WORDS = 4  # of the longest n-gram of BLEU
BETA = 2  # chrF: recall counts twice as much as precision
Ids = NDArray[np.int64]
Lines = Sequence[str]
Split = Callable[[str], Sequence[str]]


def translation_measures(
    outputs: Lines,
    references: Lines,
    *,
    counted: Mapping[str, object],
    first: str = "bleu",
    tokenize: str = "13a",
    split: Split = str.split,
) -> list[Measure]:
    """Every measure of the outputs; the one named `first` comes first.

    `tokenize` is how sacrebleu cuts a text for BLEU: "none" if it is cut already. `split` is how
    it is cut for exact_match and token_accuracy. `counted` opens each signature.
    """
    _check_lines(outputs, references)
    measures = [
        *_by_sacrebleu(outputs, references, counted, tokenize),
        *_by_tokens([*map(split, outputs)], [*map(split, references)], counted),
        *_by_edits(outputs, references, counted),
    ]
    measures.sort(key=lambda measure: measure.score.name != first)  # the others keep their order
    return measures


def _check_lines(outputs: Lines, references: Lines) -> None:
    if len(outputs) != len(references) or not outputs:
        raise ValueError(
            f"there are {len(outputs)} outputs and {len(references)} references, but there must be "
            "as many of one as of the other, and at least one"
        )


# ------------------------------------------------------------------ n-grams


def _by_sacrebleu(
    outputs: Lines, references: Lines, counted: Mapping[str, object], tokenize: str
) -> tuple[Measure, Measure]:
    from sacrebleu.metrics.chrf import CHRF

    cut = bleu_tokens(tokenize)
    said, true = ([cut(line) for line in lines] for lines in (outputs, references))
    orders = bleu_orders(true)
    words, letters = _bleu_metric(tokenize, orders), CHRF(char_order=CHARACTERS, beta=BETA)
    values = [metric.corpus_score(outputs, [references]).score for metric in (words, letters)]
    pairs = "|".join(f"{key}:{value}" for key, value in counted.items())
    prefix = f"{pairs}|{interval_recipe('lines')}|unrolled:{version('unrolled')}"
    shorter = f"|order:{orders}" if orders < WORDS else ""
    recipes = (
        Recipe("bleu", f"{prefix}|{words.get_signature()}{shorter}"),
        Recipe("chrf", f"{prefix}|{letters.get_signature()}"),
    )
    return (
        measured(recipes[0], ngram_counts(said, true, orders=orders), bleu, values[0]),
        measured(recipes[1], chrf_counts(outputs, references), chrf, values[1]),
    )


def bleu_orders(references: Sequence[Sequence[str]]) -> int:
    """The longest n-grams that BLEU counts: 4, or fewer where no reference has so many tokens.

    Else the best output possible, which is the reference, would have a BLEU of 0.
    """
    return min(WORDS, max(1, *map(len, references)))


def bleu_tokens(tokenize: str) -> Split:
    """How sacrebleu cuts a text into the tokens that BLEU counts."""
    cut = _bleu_metric(tokenize, WORDS).tokenizer
    return lambda line: cut(line.rstrip()).split()


def _bleu_metric(tokenize: str, orders: int) -> "BLEU":
    from sacrebleu.metrics.bleu import BLEU

    if tokenize not in TOKENIZERS:
        raise not_one_of("tokenize", tokenize, TOKENIZERS)
    return BLEU(tokenize=tokenize, force=True, max_ngram_order=orders)  # force: without warnings


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
        measured(Recipe("exact_match", recipe), exact, share),
        measured(Recipe("token_accuracy", recipe), counts, share),
    )


def _same(said: Sequence[str], true: Sequence[str]) -> int:
    return sum(a == b for a, b in zip(said, true, strict=False))


def share(sums: Floats) -> Floats:
    """Right ones over all (R, 2); where there was nothing to say, all is right."""
    right, whole = sums.T
    return np.where(whole > 0, right / np.maximum(whole, 1.0), 1.0)  # (R,)


# ------------------------------------------------------------------ edits


def _by_edits(
    outputs: Lines, references: Lines, counted: Mapping[str, object]
) -> tuple[Measure, ...]:
    said, true = ([line.split() for line in lines] for lines in (outputs, references))
    letters = ([" ".join(words) for words in lines] for lines in (said, true))
    kinds = {
        "wer": ({"unit": "word"}, edit_counts(said, true)),
        "cer": ({"unit": "character"}, edit_counts(*letters)),
        "per": ({"unit": "word", "place": "any"}, any_order_counts(said, true)),
    }
    return tuple(
        measured(
            Recipe(name, signature({**counted, **how}, resampled="lines"), higher_is_better=False),
            counts,
            error_rate,
        )
        for name, (how, counts) in kinds.items()
    )
