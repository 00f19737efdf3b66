"""BLEU: the worked example to the digit, sacrebleu's numbers everywhere else."""

import math

import numpy as np
import pytest
from sacrebleu.metrics import BLEU

from unrolled.evaluate.bleu import Ngram, as_text, closest, corpus_bleu, explain

pytestmark = pytest.mark.arithmetic

CANDIDATE = ["the", "cat", "the", "cat", "on", "the", "mat"]
REFERENCES = [
    ["the", "cat", "is", "on", "the", "mat"],
    ["there", "is", "a", "cat", "on", "the", "mat"],
]


def fractions(bleu):
    return [(precision.clipped, precision.total) for precision in bleu.precisions]


def sacrebleu_of(hypotheses, references, orders=4):
    """Another's answer; rows of references with fewer of them are filled up with None."""
    K = max(map(len, references))
    columns = [[" ".join(row[k]) if k < len(row) else None for row in references] for k in range(K)]
    metric = BLEU(tokenize="none", smooth_method="none", force=True, max_ngram_order=orders)
    return metric.corpus_score([" ".join(tokens) for tokens in hypotheses], columns)


# ------------------------------------------------------------------ the worked example


@pytest.mark.row("N3")
def test_the_example_is_clipped_by_the_most_in_one_reference():
    steps = explain(CANDIDATE, REFERENCES)
    assert steps.ngrams[0] == (
        Ngram(("the",), 3, 2),
        Ngram(("cat",), 2, 1),
        Ngram(("on",), 1, 1),
        Ngram(("mat",), 1, 1),
    )
    assert steps.ngrams[1][:2] == (Ngram(("the", "cat"), 2, 1), Ngram(("cat", "the"), 1, 0))
    assert [ngram.clipped for ngram in steps.ngrams[0]] == [2, 1, 1, 1]
    assert fractions(steps.bleu) == [(5, 7), (4, 6), (2, 5), (1, 4)]
    assert [precision.found for precision in steps.bleu.precisions] == [7, 5, 2, 1]


@pytest.mark.row("N4")
def test_the_examples_bleu():
    bleu = explain(CANDIDATE, REFERENCES).bleu
    assert (bleu.candidate_length, bleu.reference_length, bleu.brevity_penalty) == (7, 7, 1.0)
    assert bleu.value == pytest.approx(0.46714, abs=5e-6)
    assert bleu.value == pytest.approx((5 / 7 * 4 / 6 * 2 / 5 * 1 / 4) ** (1 / 4), rel=1e-14)
    two = explain(CANDIDATE, REFERENCES, orders=2).bleu
    assert two.value == pytest.approx(0.69007, abs=5e-6)


def test_without_the_clip_one_word_said_again_and_again_would_be_right():
    precision = explain(["the"] * 7, REFERENCES).bleu.precisions[0]
    assert (precision.found, precision.clipped, precision.total) == (7, 2, 7)


# ------------------------------------------------------------------ another's answer


def random_corpus(generator):
    """Few words, so that much matches; lengths from 0; some references repeat."""
    words = [chr(ord("a") + k) for k in range(generator.integers(1, 7))]
    longest = generator.integers(1, 30)

    def sentence():
        return list(generator.choice(words, size=generator.integers(0, longest + 1)))

    count = generator.integers(1, 8)
    hypotheses = [sentence() for _ in range(count)]
    references = [[sentence() for _ in range(generator.integers(1, 4))] for _ in range(count)]
    return hypotheses, references


@pytest.mark.row("N4", "N6")
def test_random_corpora_get_sacrebleus_numbers():
    generator = np.random.default_rng(0)
    values, lengths = [], []
    for _ in range(1000):
        hypotheses, references = random_corpus(generator)
        ours, theirs = corpus_bleu(hypotheses, references), sacrebleu_of(hypotheses, references)
        assert fractions(ours) == list(zip(theirs.counts, theirs.totals, strict=True))
        assert ours.candidate_length == theirs.sys_len
        assert ours.reference_length == theirs.ref_len
        if ours.candidate_length:
            assert ours.brevity_penalty == pytest.approx(theirs.bp, rel=1e-14)
        assert 100.0 * ours.value == pytest.approx(theirs.score, abs=1e-6)
        assert 0.0 <= ours.value <= 1.0
        values.append(ours.value)
        lengths.append(ours.candidate_length)
    assert 0 in lengths  # all of these occurred
    assert 1 in lengths
    assert 0.0 in values
    assert sum(value > 0 for value in values) > 300


@pytest.mark.parametrize("orders", [1, 2, 3, 6])
def test_other_orders_get_sacrebleus_numbers(orders):
    generator = np.random.default_rng(orders)
    for _ in range(50):
        hypotheses, references = random_corpus(generator)
        theirs = sacrebleu_of(hypotheses, references, orders)
        ours = corpus_bleu(hypotheses, references, orders=orders)
        assert 100.0 * ours.value == pytest.approx(theirs.score, abs=1e-6)


def test_the_counts_are_summed_before_the_quotients_are_taken():
    hypotheses = [list("abcde"), list("xy")]
    references = [[list("abcde")], [list("pq")]]
    value = corpus_bleu(hypotheses, references).value
    assert value == pytest.approx((5 / 7 * 4 / 5 * 3 / 3 * 2 / 2) ** 0.25, rel=1e-14)


# ------------------------------------------------------------------ the ends of the scale


def test_a_candidate_equal_to_a_reference_has_one():
    assert explain(list("abcd"), [["z"], list("abcd")]).bleu.value == 1.0


@pytest.mark.row("N6")
@pytest.mark.parametrize("candidate", [[], ["a"], ["z"], list("zyxwv"), list("azbzcz")])
def test_an_order_without_a_match_makes_bleu_zero(candidate):
    assert explain(candidate, [list("abcde")]).bleu.value == 0.0


@pytest.mark.row("N5")
def test_the_penalty_is_one_from_equal_length_on_and_zero_for_nothing():
    reference = [list("abcd")]
    penalties = [explain(["a"] * c, reference).bleu.brevity_penalty for c in (0, 1, 3, 4, 5)]
    assert penalties == pytest.approx([0.0, math.exp(-3), math.exp(-1 / 3), 1.0, 1.0], rel=1e-15)


def test_of_two_references_as_close_the_shorter_counts():
    assert closest(5, [["x"] * 6, ["x"] * 4, ["x"] * 9]) == 4
    assert closest(8, [["x"] * 6, ["x"] * 4, ["x"] * 9]) == 9


def test_no_reference_or_too_few_are_refused():
    with pytest.raises(ValueError, match="BLEU needs at least one reference, but there is none"):
        explain(["a"], [])
    with pytest.raises(ValueError, match="shorter"):
        corpus_bleu([["a"], ["b"]], [[["a"]]])


# ------------------------------------------------------------------ the page to read


def test_the_page_shows_every_step():
    text = as_text(explain(CANDIDATE, REFERENCES))
    assert "reference 2  there is a cat on the mat   (7 tokens)" in text
    assert "the                3                      2       2" in text
    assert "p1 = 5/7 = 0.71429   (without the clip 7/7)" in text
    assert "p3 = 2/5 = 0.40000\n" in text
    assert "c = 7 tokens, the closest reference has r = 7: not too short, BP = 1" in text
    assert text.endswith("= 1 · (5/7 · 4/6 · 2/5 · 1/4)^(1/4) = 0.46714")


def test_the_page_of_a_short_candidate_and_of_none():
    short = as_text(explain(["cat"], REFERENCES))
    assert "(1 token)" in short
    assert "too short, BP = exp(1 − 6/1) = 0.00674" in short
    assert "p2 = 0: the candidate has no 2-gram" in short
    assert short.endswith("0.0067379 · (1/1 · 0 · 0 · 0)^(1/4) = 0.00000")
    assert "r = 6: nothing is said, BP = 0" in as_text(explain([], REFERENCES))
