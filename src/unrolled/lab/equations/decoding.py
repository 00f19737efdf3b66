"""Decoding, and BLEU."""

import math
from typing import Any

import numpy as np

from unrolled.evaluate.bleu import Bleu, explain
from unrolled.lab.equations.entry import Book, Off
from unrolled.lab.equations.tools import apart

book = Book("Decoding and BLEU")


@book.equation(
    "M7",
    "003 eq 20–21",
    "log ∏ p = Σ log p: 10,000 steps of p = 0.1 have a score, the product is 0",
    tex=r"\log\prod_t p_t=\sum_t\log p_t",
    code="unrolled.decode.sequences.greedy",
    how="exact number",
)
def no_underflow() -> Off:
    import torch

    from unrolled.decode.sequences import greedy

    class Even:
        """Ten tokens, each as likely as another; the first is the likeliest by its place."""

        def step(self, token: Any, state: Any) -> Any:
            return torch.full((len(token), 10), 0.1, dtype=torch.float64).log(), state

        def select(self, state: Any, rows: Any) -> Any:
            return state

    T, first = 10_000, torch.zeros(1, dtype=torch.long)
    (found,) = greedy(Even(), None, first, end=9, limits=torch.tensor([T]))
    product = float(np.full(T, 0.1).prod())
    return Off(apart(found.log_probability, -T * math.log(10)) + product)


@book.equation(
    "M6",
    "000 Finishing up; 003 eq 22",
    "score = log P / T^α; α = 0 is the sum, α = 1 the mean",
    tex=r"\frac{1}{T^{\alpha}}\sum_t\log P(y_t\mid y_{<t},x)",
    code="unrolled.decode.hypothesis.normalised",
    rows=("M5",),
)
def length_normalisation() -> Off:
    from unrolled.decode.hypothesis import normalised

    found = [normalised(-6.0, 4, alpha) for alpha in (0.0, 1.0, 0.5)]
    return Off(apart(found, [-6.0, -1.5, -3.0]))


@book.erratum(
    "E70",
    "000 §15.1.3",
    "C",
    printed="“choosing the shortest one is a problem”",
    says="the sum of log-probabilities favours short outputs; so one divides by T^α",
    code="unrolled.decode.hypothesis.normalised",
)
def sums_favour_the_short() -> Off:
    """Two outputs of equally likely tokens: neither is better."""
    from unrolled.decode.hypothesis import normalised

    short, long = 2 * math.log(0.5), 6 * math.log(0.5)
    fair = abs(normalised(short, 2, 1.0) - normalised(long, 6, 1.0))
    return Off(fair, abs(short - long), "by sums, 2 tokens beat 6 by 2.8 nats")


@book.equation(
    "M9",
    "003 §3.1",
    "P(y*) ≤ P(ŷ) blames the model, else the search: 7.21e-8 against 1.09e-7 is the model's fault",
    tex=r"P(y^*\mid x)\le P(\hat{y}\mid x)\Rightarrow\text{model}",
    code="unrolled.decode.audit.verdict",
    how="exact number",
)
def who_is_to_blame() -> Off:
    from unrolled.decode.audit import verdict

    right = (verdict(math.log(7.21e-8), math.log(1.09e-7)), verdict(-1.0, -2.0))
    return Off(float(right != ("model", "search")))


@book.equation(
    "N3",
    "000 §15.2.1–2",
    "clipped precision: an n-gram counts at most as often as in one reference: 5/7, 4/6, 2/5, 1/4",
    tex=r"p_n=\frac{\sum\min(c,\max_r c_r)}{\sum c}",
    code="unrolled.evaluate.bleu.explain",
    how="exact number",
    rows=("N4",),
)
def clipped_precisions() -> Off:
    bleu = _example()
    values = [precision.value for precision in bleu.precisions]
    return Off(apart(values, [5 / 7, 4 / 6, 2 / 5, 1 / 4]) + abs(bleu.value - _product(values)))


def _product(values: list[float]) -> float:
    return math.exp(sum(math.log(value) for value in values) / len(values))


# The example of the note: one candidate and two references.
HYPOTHESIS = "the cat the cat on the mat"
REFERENCES = ("the cat is on the mat", "there is a cat on the mat")


def _example() -> Bleu:
    return explain(HYPOTHESIS.split(), [text.split() for text in REFERENCES]).bleu


@book.erratum(
    "E30",
    "000 §15.2.1–2",
    "M",
    printed="unigrams 7/7, bigrams 5/6: unclipped, over all references together",
    says="clipped by the most in any one reference: 5/7, 4/6",
    printed_tex=r"p_1=7/7,\;p_2=5/6",
    tex=r"p_1=5/7,\;p_2=4/6",
    code="unrolled.evaluate.bleu.explain",
)
def clip_the_counts() -> Off:
    """“the the the …” must not be a perfect translation."""
    first, second, *_ = _example().precisions
    the = explain(["the"] * 7, [text.split() for text in REFERENCES], orders=1).bleu.precisions[0]
    seen = f"“the” seven times has {the.found}/7 as printed, {the.clipped}/7 clipped"
    return Off(
        apart([first.value, second.value], [5 / 7, 4 / 6]),
        apart([first.found / 7, second.found / 6], [5 / 7, 4 / 6]),
        seen,
    )


@book.equation(
    "N5",
    "000 §15.2.3",
    "BP = 1 if c > r, else exp(1 − r/c); 1 at c = r, 0 for nothing",
    tex=r"\mathrm{BP}=\min(1,e^{1-r/c})",
    code="unrolled.evaluate.bleu.Bleu.brevity_penalty",
    how="exact number",
)
def brevity_penalty() -> Off:
    found = [Bleu((), c, r).brevity_penalty for c, r in ((5, 5), (9, 5), (4, 8), (0, 5))]
    return Off(apart(found, [1.0, 1.0, math.exp(-1.0), 0.0]))


@book.erratum(
    "E31",
    "000 §15.2.3–4",
    "M",
    printed="weights w_n = 1/n, Σ to n; r is the “best match lengths”; p_n = 0 and c = 0 ignored",
    says="w_n = 1/N; r the sum of the closest reference lengths; BLEU is 0 where a p_n or c is 0",
    printed_tex=r"w_n=\frac{1}{n}",
    tex=r"w_n=\frac{1}{N}",
    code="unrolled.evaluate.bleu.Bleu",
)
def weights_of_bleu() -> Off:
    n = np.arange(1, 5)
    printed, correct = float((1 / n).sum()), float((np.ones(4) / 4).sum())
    nothing = explain(["dog"], [["cat"]]).bleu.value + explain([], [["cat"]]).bleu.value
    seen = f"the weights must sum to 1; 1/n sums to {printed:.3f}"
    return Off(abs(correct - 1) + nothing, abs(printed - 1), seen)


book.remark(
    "E56",
    "003 §3.1",
    "C",
    printed="“sample y(1)”; beam search “can solve this issue”; larger B finds better solutions",
    says="the B best, without chance; still inexact; a metric often falls for large B (M8)",
)
book.remark(
    "E29",
    "000 §15, eq 83",
    "T",
    printed="J(1) twice; “t+1th generated sentence”; y = [y₁ … x_m]",
    says="J(T); word; y_m",
)
