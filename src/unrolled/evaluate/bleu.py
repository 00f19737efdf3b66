"""BLEU step by step (Papineni et al. 2002), on texts that are tokens already.

clipped count   min(how often the candidate has an n-gram, how often any one reference has it)
p_n             Σ clipped counts / Σ counts, over the n-grams of all candidates
BP              1 if c ≥ r, else exp(1 − r/c); c tokens of the candidates, r those of the closest
                references: of two as close, the shorter
BLEU            BP · exp(Σ_{n=1..N} (1/N) log p_n), in 0..1; 0 where some p_n is 0 or c is 0

Counts are summed over the corpus first: BLEU is no mean over sentences. Nothing is smoothed but
where `smoothed` says so.
For scores to report, see evaluate/translation.py.
"""

import math
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

ORDERS = 4
Tokens = Sequence[str]


@dataclass(frozen=True)
class Precision:
    """How many of a candidate's n-grams are right."""

    n: int
    found: int  # in any reference, however often: what p_n would count without the clip
    clipped: int
    total: int

    @property
    def value(self) -> float:
        """p_n; 0 where there is no n-gram."""
        return self.clipped / self.total if self.total else 0.0


@dataclass(frozen=True)
class Bleu:
    """The counts that BLEU is made of, and BLEU."""

    precisions: tuple[Precision, ...]  # of order 1 to N
    candidate_length: int  # c
    reference_length: int  # r

    @property
    def brevity_penalty(self) -> float:
        """BP: a candidate that says little could have every n-gram right."""
        c, r = self.candidate_length, self.reference_length
        return math.exp(1.0 - max(1.0, r / c)) if c else 0.0

    @property
    def geometric_mean(self) -> float:
        """Of the precisions."""
        values = [precision.value for precision in self.precisions]
        return math.exp(sum(map(math.log, values)) / len(values)) if all(values) else 0.0

    @property
    def value(self) -> float:
        """BLEU, 0 to 1."""
        return self.brevity_penalty * self.geometric_mean

    @property
    def smoothed(self) -> float:
        """The same as reports have it (sacrebleu's "exp"): the k-th p_n of 0 counts 1/2^k right.

        Still 0 where no token is right, or where the candidate has no n-gram of some order.
        """
        if not all(p.total for p in self.precisions) or not self.precisions[0].clipped:
            return 0.0
        missed, logs = 0, 0.0
        for precision in self.precisions:
            missed += not precision.clipped
            logs += math.log((precision.clipped or 0.5**missed) / precision.total)
        return self.brevity_penalty * math.exp(logs / len(self.precisions))


@dataclass(frozen=True)
class Ngram:
    """One n-gram of a candidate."""

    tokens: tuple[str, ...]
    count: int  # in the candidate
    most: int  # in any one reference

    @property
    def clipped(self) -> int:
        """What counts of it."""
        return min(self.count, self.most)


@dataclass(frozen=True)
class BleuSteps:
    """All that BLEU of one sentence is made of."""

    candidate: tuple[str, ...]
    references: tuple[tuple[str, ...], ...]
    ngrams: tuple[tuple[Ngram, ...], ...]  # of order 1 to N, each as it first occurs
    bleu: Bleu


def explain(hypothesis: Tokens, references: Sequence[Tokens], *, orders: int = ORDERS) -> BleuSteps:
    """BLEU of one sentence with one or more references, every step kept."""
    if not references:
        raise ValueError("BLEU needs at least one reference, but there is none")
    ngrams = tuple(_ngrams(hypothesis, references, n) for n in range(1, orders + 1))
    precisions = (_precision(n, found) for n, found in enumerate(ngrams, 1))
    bleu = Bleu(tuple(precisions), len(hypothesis), closest(len(hypothesis), references))
    return BleuSteps(tuple(hypothesis), tuple(map(tuple, references)), ngrams, bleu)


def corpus_bleu(
    hypotheses: Sequence[Tokens], references: Sequence[Sequence[Tokens]], *, orders: int = ORDERS
) -> Bleu:
    """BLEU of many sentences; `references[i]` are those of `hypotheses[i]`."""
    pairs = zip(hypotheses, references, strict=True)
    parts = [explain(said, true, orders=orders).bleu for said, true in pairs]
    by_order = (tuple(part.precisions[n] for part in parts) for n in range(orders))
    return Bleu(
        tuple(_sum(n, precisions) for n, precisions in enumerate(by_order, 1)),
        sum(part.candidate_length for part in parts),
        sum(part.reference_length for part in parts),
    )


def closest(length: int, references: Sequence[Tokens]) -> int:
    """The length of the reference closest to this one; of two as close, the shorter."""
    return min(map(len, references), key=lambda other: (abs(other - length), other))


def _grams(tokens: Tokens, n: int) -> Iterator[tuple[str, ...]]:
    return zip(*(tokens[start:] for start in range(n)), strict=False)


def _ngrams(hypothesis: Tokens, references: Sequence[Tokens], n: int) -> tuple[Ngram, ...]:
    there = [Counter(_grams(reference, n)) for reference in references]
    own = Counter(_grams(hypothesis, n))
    return tuple(
        Ngram(gram, count, max(counts[gram] for counts in there)) for gram, count in own.items()
    )


def _precision(n: int, ngrams: Sequence[Ngram]) -> Precision:
    return Precision(
        n,
        sum(ngram.count for ngram in ngrams if ngram.most),
        sum(ngram.clipped for ngram in ngrams),
        sum(ngram.count for ngram in ngrams),
    )


def _sum(n: int, parts: Sequence[Precision]) -> Precision:
    return Precision(
        n,
        sum(part.found for part in parts),
        sum(part.clipped for part in parts),
        sum(part.total for part in parts),
    )


# ------------------------------------------------------------------ for a reader


def as_text(steps: BleuSteps) -> str:
    """The steps as a page to read."""
    orders = zip(steps.bleu.precisions, steps.ngrams, strict=True)
    tables = [_table(precision, ngrams) for precision, ngrams in orders]
    return "\n\n".join([_sentences(steps), *tables, _penalty(steps.bleu), _result(steps.bleu)])


def _sentences(steps: BleuSteps) -> str:
    lines = [f"candidate    {' '.join(steps.candidate)}   ({_tokens(len(steps.candidate))})"]
    for number, reference in enumerate(steps.references, 1):
        lines.append(f"reference {number}  {' '.join(reference)}   ({_tokens(len(reference))})")
    return "\n".join(lines)


def _tokens(count: int) -> str:
    return "1 token" if count == 1 else f"{count} tokens"


def _table(precision: Precision, ngrams: Sequence[Ngram]) -> str:
    """One order: a row an n-gram, then its precision."""
    n = precision.n
    if not ngrams:
        return f"p{n} = 0: the candidate has no {n}-gram"
    texts = [" ".join(ngram.tokens) for ngram in ngrams]
    width = max(map(len, [*texts, "1-gram"]))
    lines = [f"{f'{n}-gram':{width}}  in candidate  most in one reference  counts"]
    for text, ngram in zip(texts, ngrams, strict=True):
        lines.append(f"{text:{width}}  {ngram.count:12}  {ngram.most:21}  {ngram.clipped:6}")
    unclipped = f"   (without the clip {precision.found}/{precision.total})"
    clip = unclipped if precision.found != precision.clipped else ""
    lines.append(f"p{n} = {precision.clipped}/{precision.total} = {precision.value:.5f}{clip}")
    return "\n".join(lines)


def _penalty(bleu: Bleu) -> str:
    c, r = bleu.candidate_length, bleu.reference_length
    lengths = f"c = {_tokens(c)}, the closest reference has r = {r}"
    if not c:
        return f"{lengths}: nothing is said, BP = 0"
    if c >= r:
        return f"{lengths}: not too short, BP = 1"
    return f"{lengths}: too short, BP = exp(1 − {r}/{c}) = {bleu.brevity_penalty:.5f}"


def _result(bleu: Bleu) -> str:
    orders = len(bleu.precisions)
    product = " · ".join(f"p{precision.n}" for precision in bleu.precisions)
    numbers = " · ".join(f"{p.clipped}/{p.total}" if p.total else "0" for p in bleu.precisions)
    line = f"BLEU-{orders} = BP · ({product})^(1/{orders}) = "
    line += f"{bleu.brevity_penalty:.5g} · ({numbers})^(1/{orders}) = {bleu.value:.5f}"
    if not bleu.smoothed or bleu.value:
        return line
    return f"{line}\nwith the k-th 0 counted as 1/2^k, as in reports: {bleu.smoothed:.5f}"
