"""From counts to probabilities. With h a context, h' the same without its first token:

    mle        c(h w) / c(h ·)
    add        (c(h w) + δ) / (c(h ·) + δ V)
    stupid     c(h w) / c(h ·) where seen, else α S(w | h')      a score: it does not sum to one
    absolute   (c(h w) − D) / c(h ·) where seen, else β(h) P(w | h')
    kn, mkn    (a(h w) − D) / a(h ·) + γ(h) P(w | h')

c(h ·) counts h as a context, so it counts when a line ends. Below the highest order, Kneser–Ney
counts otherwise: a(h w) is how many different tokens precede h w; where none can, since h begins
with <s>, it is how often. Modified Kneser–Ney has one discount each for 1, 2, and 3 or more.
Chen & Goodman 1999, eqs. 15 to 26; Brants et al. 2007, eq. 5 (stupid). What is pruned gives its
counts to γ (Heafield et al. 2013).

Every P ends in the uniform distribution over the vocabulary, </s> and, if that is open or the text
holds it, <unk> included, <s> not. Kneser–Ney in C++: csrc/ngram_smoothing.hpp.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from unrolled.ngrams import kernels as ngram_kernels
from unrolled.ngrams.counts import Counts, Grams, spans
from unrolled.ngrams.scratch import Scratch
from unrolled.ngrams.settings import NgramSettings
from unrolled.text.tokens import PAD, START, UNK

Floats = NDArray[np.float64]
Flags = NDArray[np.bool_]

ADJUSTED = ("kn", "mkn")  # smoothings that count what precedes
MODIFIED_FALLBACK = (0.5, 1.0, 1.5)  # where a text is too small to tell
FALLBACK = (0.75, 0.75, 0.75)
LEAST_ROOM = 1e-9  # probability of unseen tokens below which their share cannot be told
AT_ONCE = 1 << 16  # n-grams: what is made of them on the way stays in the cache


class Estimate(NamedTuple):
    """The probabilities of one order, and the weights of its contexts."""

    p: Floats  # (N,) of each n-gram of this order
    back: Floats  # (prefixes,) what the order below is multiplied with after each prefix
    discounts: tuple[float, ...]  # of counts 1, 2, 3 or more; () where there are none
    fallback: bool  # whether these are not estimates, since the text is too small


class PrefixGroup(NamedTuple):
    """The n-grams of some prefixes that stand side by side."""

    counts: Counts  # (n,) raw or adjusted
    kept: Flags  # (n,) False where pruned
    lower: Floats  # (n,) probability in the order below
    sizes: Counts  # (P,) n-grams of each prefix
    opening: Flags  # (P,) whether the prefix begins with <s>

    def sums(self, values: NDArray[Any]) -> Floats:
        """Values (n,) summed for each prefix (P,)."""
        total = np.zeros(len(self.sizes))
        some = np.flatnonzero(self.sizes)
        starts = np.cumsum(self.sizes) - self.sizes
        if len(some):
            total[some] = np.add.reduceat(values, starts[some])
        return total

    def spread(self, values: NDArray[Any]) -> NDArray[Any]:
        """A value of each prefix (P,), for each of its n-grams (n,)."""
        return np.repeat(values, self.sizes)


class Recipe(NamedTuple):
    """What a rule must know beside the counts."""

    settings: NgramSettings
    discounts: tuple[float, ...]  # of counts 1, 2, 3 or more
    k: int  # the order it is for
    V: int  # tokens that can be predicted


Rule = Callable[
    [PrefixGroup, Recipe], tuple[Floats, Floats]
]  # probabilities (n,), prefix weights (P,)


def estimate(
    grams: Sequence[Grams], settings: NgramSettings, scratch: Scratch | None = None
) -> Iterator[Estimate]:
    """The estimates of each order, from the lowest to the highest."""
    scratch = scratch or Scratch()
    never = _never_predicted(grams[0], settings)
    lower = uniform(len(grams[0]), never)
    opening = slice(0, 0)  # the n-grams that begin with <s> stand side by side
    for k, level in enumerate(grams, 1):
        above = grams[k] if k < len(grams) and settings.smoothing in ADJUSTED else None
        ahead = _opening(level, opening) if k > 1 else slice(START, START + 1)
        count = _adjusted(level, above, ahead, scratch) if above else level.count
        count = _predictable(count) if k == 1 else count
        discounts, fallback = discounts_of(count, settings.smoothing)
        recipe = Recipe(settings, discounts, k, len(grams[0]) - len(never))
        p, back = _applied(recipe, level, count, lower, opening=opening, scratch=scratch)
        yield Estimate(p, back, discounts, fallback)
        lower, opening = p, ahead


def uniform(vocabulary_size: int, never: Sequence[int] = (PAD, START)) -> Floats:
    """The chances of tokens (V,) of which nothing is known but that some never come."""
    p = np.full(vocabulary_size, 1.0 / (vocabulary_size - len(never)))
    p[list(never)] = 0.0
    return p


def _never_predicted(unigrams: Grams, settings: NgramSettings) -> tuple[int, ...]:
    closed = settings.vocabulary == "closed" and unigrams.count[UNK] == 0
    return (PAD, START, UNK) if closed else (PAD, START)


def discounts_of(count: Counts, smoothing: str) -> tuple[tuple[float, ...], bool]:
    """What to take from counts of 1, 2, and 3 or more; and whether that had to be guessed.

    Chen & Goodman 1999, eq. 17 (one for all, from n-grams seen once and twice) and eq. 26.
    """
    if smoothing not in ("absolute", *ADJUSTED):
        return (), False
    n1, n2, n3, n4 = (int(np.count_nonzero(count == c)) for c in (1, 2, 3, 4))
    if smoothing != "mkn":
        single = n1 / (n1 + 2 * n2) if n1 and n2 else 0.0
        return ((single,) * 3, False) if single else (FALLBACK, True)
    if not (n1 and n2 and n3):
        return MODIFIED_FALLBACK, True
    y = n1 / (n1 + 2 * n2)
    found = (1 - 2 * y * n2 / n1, 2 - 3 * y * n3 / n2, 3 - 4 * y * n4 / n3)
    fits = all(0.0 < d <= j for j, d in enumerate(found, 1))
    return (found, False) if fits else (MODIFIED_FALLBACK, True)


def _opening(level: Grams, prefixes: slice) -> slice:
    """The n-grams whose prefix is one of these."""
    return slice(int(level.begin[prefixes.start]), int(level.begin[prefixes.stop]))


def _adjusted(level: Grams, above: Grams, opening: slice, scratch: Scratch) -> Counts:
    """How many different tokens precede each n-gram (N,); how often it opens a line."""
    count = scratch.zeros(len(level), np.int64)
    for start in range(0, len(above), AT_ONCE):
        np.add.at(count, above.suffix[start : start + AT_ONCE], 1)
    count[opening] = level.count[opening]
    return count


def _predictable(count: Counts) -> Counts:
    """Counts of single tokens (V,), without those that nothing predicts."""
    count = np.array(count)
    count[[PAD, START]] = 0
    return count


def _applied(
    recipe: Recipe, level: Grams, count: Counts, lower: Floats, *, opening: slice, scratch: Scratch
) -> tuple[Floats, Floats]:
    """The recipe's rule over a whole order, some prefixes at a time."""
    rule, cutoff = RULES[recipe.settings.smoothing], recipe.settings.cutoffs[recipe.k - 1]
    prefixes = len(level.begin) - 1
    p, back = scratch.empty(len(level), np.float64), scratch.empty(prefixes, np.float64)
    kernel = ngram_kernels.INTERPOLATED if rule is _interpolated else None
    if kernel is not None and level.suffix.dtype == np.int32:
        suffix, discounts = level.suffix if recipe.k > 1 else None, [0.0, *recipe.discounts]
        kernel(count, level.count, suffix, level.begin, lower, cutoff, discounts, p, back)
        return p, back
    for first, last in spans(level.begin, min(AT_ONCE, scratch.block or AT_ONCE)):
        here = slice(int(level.begin[first]), int(level.begin[last]))
        group = PrefixGroup(
            count[here],
            level.count[here] > cutoff if cutoff else np.ones(here.stop - here.start, bool),
            lower[level.suffix[here]] if recipe.k > 1 else lower,
            np.diff(level.begin[first : last + 1]),
            _marked(first, last, opening),
        )
        p[here], weights = rule(group, recipe)
        back[first:last] = np.where(group.sizes > 0, weights, 1.0)
    return p, back


def _marked(first: int, last: int, opening: slice) -> Flags:
    places = np.arange(first, last)
    return np.asarray((places >= opening.start) & (places < opening.stop))


# ------------------------------------------------------------------ one rule a smoothing


def _mle(group: PrefixGroup, recipe: Recipe) -> tuple[Floats, Floats]:
    """Nothing is left for what was not seen."""
    return _shares(group), np.zeros(len(group.sizes))


def _add(group: PrefixGroup, recipe: Recipe) -> tuple[Floats, Floats]:
    """The whole context counts, or none: shorter ones serve only where a line opens."""
    delta = recipe.settings.add_delta
    whole = group.opening | (recipe.k == recipe.settings.order)
    total = group.sums(group.counts) + delta * recipe.V
    p = np.where(group.spread(whole), (group.counts + delta) / group.spread(total), 1.0 / recipe.V)
    back = np.where(whole, delta * recipe.V / total, 1.0)
    return np.where(group.lower > 0.0, p, 0.0), back


def _stupid(group: PrefixGroup, recipe: Recipe) -> tuple[Floats, Floats]:
    factor = recipe.settings.stupid_factor
    score = np.where(group.counts > 0, _shares(group), factor * group.lower)
    return score, np.full(len(group.sizes), factor)


def _absolute(group: PrefixGroup, recipe: Recipe) -> tuple[Floats, Floats]:
    """What is taken goes to the unseen alone; if they have hardly any chance, to all."""
    mixed, left = _interpolated(group, recipe)
    if recipe.k == 1:
        return mixed, left
    room = 1.0 - group.sums(np.where(group.kept, group.lower, 0.0))
    narrow = room < LEAST_ROOM
    discounted = mixed - group.spread(left) * group.lower
    return np.where(group.spread(narrow), mixed, discounted), left / np.where(narrow, 1.0, room)


def _interpolated(group: PrefixGroup, recipe: Recipe) -> tuple[Floats, Floats]:
    taken = np.array([0.0, *recipe.discounts])[np.minimum(group.counts, 3)]
    total = np.maximum(group.sums(group.counts), 1.0)
    left = group.sums(np.where(group.kept, taken, group.counts)) / total
    own = (group.counts - taken) / group.spread(total)
    return own + group.spread(left) * group.lower, left


def _shares(group: PrefixGroup) -> Floats:
    return np.asarray(group.counts / group.spread(np.maximum(group.sums(group.counts), 1.0)))


RULES: dict[str, Rule] = {
    "mle": _mle,
    "add": _add,
    "stupid": _stupid,
    "absolute": _absolute,
    "kn": _interpolated,
    "mkn": _interpolated,
}
