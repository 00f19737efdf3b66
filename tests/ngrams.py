"""N-gram models from a few lines, and their probabilities by the formulas, one at a time."""

import random
from collections import Counter
from functools import cache

import numpy as np

from unrolled.config import settings_for
from unrolled.tasks.ngram.model import count_model
from unrolled.tasks.ngram.settings import NgramRun
from unrolled.text.tokens import TextEncoder

WORDS = ["a", "b", "c", "d", "e", "f"]


def counted(lines, order, smoothing="mkn", *, scratch=None, level="word", tokens=None, **settings):
    """A model of lines of text."""
    overrides = {"model.order": order, "model.smoothing": smoothing, "tokens.level": level}
    overrides |= {f"model.{name}": value for name, value in settings.items()}
    encoder = TextEncoder.build(lines, level=level, **(tokens or {}))
    ids = encoder.encode_lines(lines).ids
    return count_model(settings_for(NgramRun, overrides=overrides), encoder, ids, scratch)


def random_lines(seed, count=40, words=WORDS, longest=9):
    """Lines of words of which some are much commoner than others; some lines are empty."""
    chance = random.Random(seed)
    weights = [1.0 / (i + 1) for i in range(len(words))]
    return [
        " ".join(chance.choices(words, weights, k=chance.randint(0, longest))) for _ in range(count)
    ]


def ngram_counts(lines, order):
    """How often each n-gram of each order comes, as tuples of words."""
    found = Counter()
    for line in lines:
        tokens = ["<s>", *line.split(), "</s>"]
        for k in range(1, order + 1):
            found.update(tuple(tokens[i : i + k]) for i in range(len(tokens) - k + 1))
    return found


class Formulas:
    """P(word | context) by the definitions, with dictionaries and sums over the vocabulary."""

    def __init__(
        self, lines, order, smoothing, *, delta=1.0, factor=0.4, cutoffs=None, closed=False
    ):
        self.order, self.smoothing, self.delta, self.factor = order, smoothing, delta, factor
        self.cutoffs = cutoffs or (0,) * order
        self.c = ngram_counts(lines, order)
        words = {gram[0] for gram in self.c if len(gram) == 1}
        self.vocabulary = sorted((words | ({*()} if closed else {"<unk>"})) - {"<s>"})
        self.a = {gram: self.adjusted(gram) for gram in self.c}
        self.p = cache(self._p)

    def adjusted(self, gram):
        if gram == ("<s>",):
            return 0
        kneser_ney = self.smoothing in ("kn", "mkn")
        if not kneser_ney or len(gram) == self.order or gram[0] == "<s>":
            return self.c[gram]
        return len({g[0] for g in self.c if len(g) == len(gram) + 1 and g[1:] == gram})

    def discounts(self, k):
        values = [n for gram, n in self.a.items() if len(gram) == k]
        n1, n2, n3, n4 = (values.count(i) for i in (1, 2, 3, 4))
        if self.smoothing == "mkn":
            if n1 and n2 and n3:
                y = n1 / (n1 + 2 * n2)
                found = (1 - 2 * y * n2 / n1, 2 - 3 * y * n3 / n2, 3 - 4 * y * n4 / n3)
                if all(0 < d <= j for d, j in zip(found, (1, 2, 3), strict=True)):
                    return found
            return 0.5, 1.0, 1.5
        return ((n1 / (n1 + 2 * n2)) if n1 and n2 else 0.75,) * 3

    def after(self, context):
        """Counts of what follows a context."""
        k = len(context) + 1
        return {
            g[-1]: n
            for g, n in self.a.items()
            if len(g) == k and g[:-1] == context and g != ("<s>",)
        }

    def __call__(self, word, context):
        return self.p(word, tuple(context)[max(0, len(context) - self.order + 1) :])

    def _p(self, word, context):
        return getattr(self, f"_{self.smoothing}")(word, context)

    def lower(self, word, context):
        return self.p(word, context[1:]) if context else 1.0 / len(self.vocabulary)

    def _mle(self, word, context):
        seen = self.after(context)
        return seen.get(word, 0) / sum(seen.values()) if seen else self.lower(word, context)

    def _add(self, word, context):
        seen = self.after(context)
        V = len(self.vocabulary)
        return (seen.get(word, 0) + self.delta) / (sum(seen.values()) + self.delta * V)

    def _stupid(self, word, context):
        seen = self.after(context)
        if word in seen:
            return seen[word] / sum(seen.values())
        return self.factor * self.lower(word, context)

    def _mkn(self, word, context):
        seen, k = self.after(context), len(context) + 1
        if not seen:
            return self.lower(word, context)
        taken, left, total = self.taken(context)
        kept = word in seen and self.c[(*context, word)] > self.cutoffs[k - 1]
        own = (seen[word] - taken[word]) / total if kept else 0.0
        return own + left * self.lower(word, context)

    _kn = _mkn

    def taken(self, context):
        """What is taken from each word, its share of all, and all."""
        seen, k = self.after(context), len(context) + 1
        d = self.discounts(k)
        taken = {w: d[min(n, 3) - 1] for w, n in seen.items()}
        pruned = {w for w in seen if self.c[(*context, w)] <= self.cutoffs[k - 1]}
        left = sum(n if w in pruned else taken[w] for w, n in seen.items())
        total = sum(seen.values())
        return taken, left / total, total

    def _absolute(self, word, context):
        seen, k = self.after(context), len(context) + 1
        if not seen or not context:
            return self._mkn(word, context)
        taken, left, total = self.taken(context)
        kept = {w for w in seen if self.c[(*context, w)] > self.cutoffs[k - 1]}
        room = 1.0 - sum(self.lower(w, context) for w in kept)
        if room < 1e-9:
            return self._mkn(word, context)
        if word in kept:
            return (seen[word] - taken[word]) / total
        return left / room * self.lower(word, context)


def step(model, *context):
    """The chances of all tokens after a context of words, by name."""
    import torch

    names = model.encoder.vocabulary.tokens
    ids = torch.tensor([[names.index(word) for word in context]])
    log_p, _ = model.network.step(ids[:, -1], model.network.read(ids[:, :-1]))
    return dict(zip(names, np.exp(log_p[0].numpy()).tolist(), strict=True))
