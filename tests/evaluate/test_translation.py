"""Scores of made texts are sacrebleu's, and so is every resample behind the intervals."""

import logging
from collections import Counter

import numpy as np
import pytest
from sacrebleu.metrics import BLEU, CHRF

from unrolled.errors import ConfigError
from unrolled.evaluate.bleu import explain
from unrolled.evaluate.bootstrap import resamples
from unrolled.evaluate.score import better, named
from unrolled.evaluate.translation import (
    bleu,
    bleu_orders,
    bleu_tokens,
    chrf,
    chrf_counts,
    ngram_counts,
    translation_measures,
)

pytestmark = [pytest.mark.arithmetic, pytest.mark.slow]

COUNTED = {"examples": 40, "tokens": 300}
WORDS = ["ab", "cd", "abc", "d,", "é", "東京", "X.", "don't"]


def made(seed, count=40, longest=9):
    """Outputs and references that share much; some of both are empty or of one word."""
    generator = np.random.default_rng(seed)
    references = [
        " ".join(generator.choice(WORDS, size=generator.integers(0, longest))) for _ in range(count)
    ]
    outputs = []
    for reference in references:
        kept = [w for w in reference.split() if generator.random() < 0.8]
        outputs.append(" ".join([*kept, *generator.choice(WORDS, size=generator.integers(0, 3))]))
    return outputs, references


def scores(outputs, references, **options):
    found = translation_measures(outputs, references, counted=COUNTED, **options)
    return [measure.score for measure in found]


# ------------------------------------------------------------------ BLEU and chrF


@pytest.mark.parametrize("tokenize", ["none", "13a", "char", "intl", "zh"])
def test_bleu_and_chrf_are_sacrebleus(tokenize):
    for seed in range(5):
        outputs, references = made(seed)
        values = scores(outputs, references, tokenize=tokenize)
        theirs = BLEU(tokenize=tokenize, force=True).corpus_score(outputs, [references])
        assert named(values, "bleu").value == pytest.approx(theirs.score, abs=1e-9)
        theirs = CHRF().corpus_score(outputs, [references])
        assert named(values, "chrf").value == pytest.approx(theirs.score, abs=1e-9)


@pytest.mark.parametrize("longest", [2, 4, 9])
def test_every_resample_has_sacrebleus_value(longest):
    """Short lines too: orders without matches, without n-grams, and nothing at all."""
    outputs, references = made(1, count=12, longest=longest)
    words = ngram_counts(*([s.split() for s in side] for side in (outputs, references)), orders=4)
    letters = chrf_counts(outputs, references)
    weights = next(iter(resamples(12)))[:150]
    weights = np.concatenate([weights, np.eye(12)])  # each line alone, too
    ours = bleu(np.tensordot(weights, words, axes=1)), chrf(np.tensordot(weights, letters, axes=1))
    for row, (own_bleu, own_chrf) in zip(weights, zip(*ours, strict=True), strict=True):
        lines = np.repeat(np.arange(12), row.astype(int))
        said, true = [outputs[i] for i in lines], [[references[i] for i in lines]]
        theirs = BLEU(tokenize="none", force=True).corpus_score(said, true).score
        assert own_bleu == pytest.approx(theirs, abs=1e-9)
        assert own_chrf == pytest.approx(CHRF().corpus_score(said, true).score, abs=1e-9)
    assert (ours[0] > 0).any() == (longest > 2)
    assert (ours[0] == 0).any()


@pytest.mark.parametrize("tokenize", ["none", "13a", "char", "intl", "zh"])
@pytest.mark.parametrize(
    "output",
    [
        "The  cat's mat, 3.5 m. wide - so-\n",
        " the cat\u00a0sat &quot;here&quot; <skipped> 東京 .",
        "the cat sat",
        "xx yy zz vv ww",
        "cat",
        " ",
    ],
)
def test_of_one_line_every_resample_is_the_line(output, tokenize):
    """So the counts behind the interval are cut from the text as sacrebleu's are."""
    for score in scores(
        [output], ["The cat sat &quot;here, 3.5 m - so- 東京 ."], tokenize=tokenize
    ):
        assert (score.low, score.high) == pytest.approx((score.value,) * 2, abs=1e-9)


def test_ngram_counts_equal_counters():
    outputs, references = made(2)
    said, true = ([line.split() for line in lines] for lines in (outputs, references))
    counts = ngram_counts(said, true, orders=4)
    for i, n in np.ndindex(40, 4):
        a, b = (
            Counter(zip(*(x[k:] for k in range(n + 1)), strict=False)) for x in (said[i], true[i])
        )
        assert counts[i, n].tolist() == [a.total(), b.total(), (a & b).total()]


def test_lines_without_a_token_have_no_ngrams():
    assert not ngram_counts([[], []], [[], []], orders=3).any()


def test_the_interval_is_the_quantiles_of_the_resamples():
    outputs, references = made(3)
    score = named(scores(outputs, references, tokenize="none"), "bleu")
    words = ngram_counts(*([s.split() for s in side] for side in (outputs, references)), orders=4)
    generator, values = np.random.default_rng(0), []
    for _ in range(1000):
        values.append(bleu(words[generator.integers(40, size=40)].sum(axis=0)[None])[0])
    assert (score.low, score.high) == pytest.approx(np.quantile(values, [0.025, 0.975]), rel=1e-12)
    theirs = BLEU(tokenize="none", force=True).corpus_score(outputs, [references], n_bootstrap=1000)
    spread = (score.high - score.low) / 2
    assert spread == pytest.approx(theirs._ci, rel=0.15)  # of other resamples


# ------------------------------------------------------------------ tokens in their places


def test_exact_match_and_token_accuracy_are_shares():
    outputs = ["a b c", "a b", "x a b c", "", "a  b "]
    references = ["a b c", "a b c", "a b c", "a", "a b"]
    values = scores(outputs, references)
    assert named(values, "exact_match").value == 2 / 5
    # right places 3, 2, 0, 0, 2; places of the longer 3, 3, 4, 1, 2
    assert named(values, "token_accuracy").value == pytest.approx(7 / 13, rel=1e-15)


def test_tokens_are_what_split_makes_of_a_text():
    values = scores(["abc", "a b"], ["abd", "a b"], split=list)
    assert named(values, "token_accuracy").value == pytest.approx(5 / 6, rel=1e-15)
    assert named(values, "exact_match").value == 0.5


def test_the_interval_of_a_share_is_the_bootstraps():
    generator = np.random.default_rng(4)
    outputs = ["a" if right else "b" for right in generator.random(400) < 0.7]
    score = named(scores(outputs, ["a"] * 400), "exact_match")
    spread = np.sqrt(score.value * (1 - score.value) / 400)
    assert score.low < score.value < score.high
    assert score.high - score.low == pytest.approx(2 * 1.96 * spread, rel=0.1)


def test_nothing_said_where_nothing_was_to_say_is_right():
    values = scores(["", ""], ["", " "])
    assert [(score.name, score.value) for score in values] == [
        ("bleu", 0.0),
        ("chrf", 0.0),
        ("exact_match", 1.0),
        ("token_accuracy", 1.0),
        ("wer", 0.0),
        ("cer", 0.0),
        ("per", 0.0),
    ]


# ------------------------------------------------------------------ as a whole


def test_the_measure_asked_for_comes_first():
    names = [score.name for score in scores(*made(0), first="token_accuracy")]
    assert names == ["token_accuracy", "bleu", "chrf", "exact_match", "wer", "cer", "per"]
    assert scores(*made(0))[0].name == "bleu"


def test_perfect_outputs_have_the_highest_scores():
    references = ["a b c d e", "f g h i"]
    for score in scores(references, references):
        top = 100.0 if score.name in ("bleu", "chrf") else 1.0 * score.higher_is_better
        assert (score.value, score.low, score.high) == pytest.approx((top, top, top), rel=1e-12)


def test_the_signature_holds_the_prefix_and_sacrebleus_own():
    outputs, references = made(0)
    values = scores(outputs, references, tokenize="none")
    metric = BLEU(tokenize="none", force=True)
    metric.corpus_score(outputs, [references])
    signature = named(values, "bleu").signature
    assert signature.startswith("examples:40|tokens:300|ci:bootstrap-1000-lines|unrolled:")
    assert signature.endswith(f"|{metric.get_signature()}")
    assert "case:mixed|eff:no|tok:none|smooth:exp|version:" in signature
    assert "nc:6|nw:0|space:no" in named(values, "chrf").signature
    assert "places:longer" in named(values, "token_accuracy").signature
    keys = [pair.split(":")[0] for pair in signature.split("|")]
    assert len(keys) == len({*keys})


def test_scores_of_unlike_tokens_are_not_compared():
    outputs, references = made(0)
    mine, other = (scores(outputs, references, tokenize=how)[0] for how in ("none", "13a"))
    with pytest.raises(ConfigError, match="bleu cannot be compared: one counts tok:none, the"):
        better(mine, other)
    for score in scores(references, references):
        assert better(score, named(scores(outputs, references), score.name))


def test_scores_are_the_same_each_time_and_nothing_is_logged(caplog):
    outputs, references = ([f"{line} ." for line in side] for side in made(5, count=120))
    with caplog.at_level(logging.DEBUG):
        assert scores(outputs, references) == scores(outputs, references)
    assert not caplog.records


def test_a_tokenizer_that_would_need_the_network_is_refused():
    with pytest.raises(ConfigError, match="tokenize is 'flores200', but must be one of 13a, char,"):
        scores(["a"], ["a"], tokenize="flores200")


@pytest.mark.parametrize(("outputs", "references"), [(["a"], ["a", "b"]), ([], [])])
def test_outputs_without_their_references_are_refused(outputs, references):
    message = f"there are {len(outputs)} outputs and {len(references)} references, but there must"
    with pytest.raises(ValueError, match=message):
        scores(outputs, references)


def test_error_rates_are_edits_over_the_references():
    values = scores(["b  a ", "x"], ["a b", "x y"])
    assert named(values, "wer").value == (2 + 1) / 4
    assert named(values, "cer").value == pytest.approx((2 + 2) / 6)
    assert named(values, "per").value == (0 + 1) / 4
    assert "unit:word|place:any" in named(values, "per").signature
    assert not named(values, "wer").higher_is_better


# ------------------------------------------------------------------ short texts, one at a time


@pytest.mark.parametrize("longest", [1, 2, 3])
def test_a_perfect_output_of_few_tokens_has_a_bleu_of_100(longest):
    references = ["a b c"[: 2 * longest - 1], "x"]
    found = named(scores(references, references), "bleu")
    assert found.value == pytest.approx(100.0, rel=1e-12)
    assert found.signature.endswith(f"|order:{longest}")
    with pytest.raises(ConfigError, match=f"one counts order:{longest}, the other order:None"):
        better(found, named(scores(["a b c d"] * 2, ["a b c d"] * 2), "bleu"))


@pytest.mark.parametrize("tokenize", ["none", "13a"])
def test_bleu_step_by_step_is_that_of_a_report_of_one_line(tokenize):
    for seed in range(4):
        for said, true in zip(*made(seed, longest=7), strict=True):
            if not true:
                continue
            ours = named(scores([said], [true], tokenize=tokenize), "bleu").value
            cut = bleu_tokens(tokenize)
            steps = explain(cut(said), [cut(true)], orders=bleu_orders([cut(true)]))
            assert 100.0 * steps.bleu.smoothed == pytest.approx(ours, abs=1e-9), (said, true)
