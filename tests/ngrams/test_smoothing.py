import math
import random
from dataclasses import replace

import numpy as np
import pytest
from ngrams import WORDS, Formulas, counted, random_lines, step

from unrolled.ngrams.build import table_of
from unrolled.ngrams.counts import count_ngrams
from unrolled.ngrams.settings import NgramSettings
from unrolled.ngrams.smoothing import discounts_of, estimate
from unrolled.text.tokens import PAD, START, TextEncoder

pytestmark = [pytest.mark.arithmetic, pytest.mark.slow]

NORMALISED = ("mle", "add", "absolute", "kn", "mkn")


def contexts(order, seed, count=25):
    """Contexts of all lengths, of seen and unseen words; where they are short, the line begins."""
    chance = random.Random(seed)
    yield ["<s>"]
    for _ in range(count):
        words = chance.choices([*WORDS, "<unk>"], k=chance.randint(1, order + 1))
        yield words if len(words) >= order - 1 and chance.random() < 0.7 else ["<s>", *words]


@pytest.mark.parametrize("order", range(1, 8))
@pytest.mark.parametrize("smoothing", [*NORMALISED, "stupid"])
def test_probabilities_are_those_of_the_formulas(smoothing, order):
    lines = random_lines(order)
    model, formulas = counted(lines, order, smoothing), Formulas(lines, order, smoothing)
    assert formulas.vocabulary == sorted({*model.encoder.vocabulary.tokens} - {"<pad>", "<s>"})
    for context in contexts(order, order):
        found = step(model, *context)
        expected = {w: formulas(w, context) for w in formulas.vocabulary}
        if smoothing == "stupid":  # a step makes probabilities of the scores
            total = sum(expected.values())
            expected = {w: p / total for w, p in expected.items()}
        for word, p in expected.items():
            assert found[word] == pytest.approx(p, rel=1e-10, abs=1e-300), (context, word)


@pytest.mark.parametrize("order", [1, 2, 4])
@pytest.mark.parametrize("smoothing", NORMALISED)
def test_a_closed_vocabulary_leaves_nothing_for_other_words(smoothing, order):
    lines = random_lines(order)
    model = counted(lines, order, smoothing, vocabulary="closed")
    formulas = Formulas(lines, order, smoothing, closed=True)
    assert not model.network.knows_unknown
    for context in contexts(order, order):
        found = step(model, *context)
        assert math.fsum(found.values()) == pytest.approx(1.0, abs=1e-12)
        assert found["<unk>"] == 0.0
        for word in formulas.vocabulary:
            assert found[word] == pytest.approx(formulas(word, context), rel=1e-10, abs=1e-300)


def test_a_text_that_names_the_unknown_word_makes_it_one_like_any_other():
    lines = ["a <unk> b", "b a <unk>"]
    tables = [counted(lines, 2, vocabulary=kind).network.table for kind in ("open", "closed")]
    for one, other in zip(*(table.levels for table in tables), strict=True):
        np.testing.assert_array_equal(one.log_p, other.log_p)


@pytest.mark.parametrize("order", [2, 3, 5])
@pytest.mark.parametrize("smoothing", ["absolute", "kn", "mkn"])
def test_pruned_probabilities_are_those_of_the_formulas(smoothing, order):
    lines = random_lines(order, count=80)
    prune = [0, 1] if order == 2 else [0, 1, 2]
    cutoffs = (prune + prune[-1:] * order)[:order]
    model = counted(lines, order, smoothing, prune=prune)
    formulas = Formulas(lines, order, smoothing, cutoffs=cutoffs)
    whole = counted(lines, order, smoothing)
    assert sum(model.network.facts.sizes) < sum(whole.network.facts.sizes)
    for context in contexts(order, order):
        found = step(model, *context)
        assert sum(found.values()) == pytest.approx(1.0, abs=1e-12)
        for word in formulas.vocabulary:
            assert found[word] == pytest.approx(formulas(word, context), rel=1e-10)


@pytest.mark.row("B1", "B5", "B6", "B7")
@pytest.mark.parametrize("smoothing", NORMALISED)
@pytest.mark.parametrize("level", ["word", "char"])
def test_chances_sum_to_one_after_seen_and_unseen_contexts(smoothing, level):
    words = [f"w{i}" for i in range(400)]
    lines = random_lines(3, count=400, words=words, longest=30)
    model = counted(lines, 5, smoothing, level=level)
    chance, names = np.random.default_rng(1), model.encoder.vocabulary.tokens
    for _ in range(50):
        size = int(chance.integers(1, 6))
        context = [names[i] for i in chance.integers(3, len(names), size)]
        start = int(chance.integers(len(lines)))
        seen = ["<s>", *(list(lines[start]) if level == "char" else lines[start].split())][:size]
        for given in (context, seen):
            assert math.fsum(step(model, *given).values()) == pytest.approx(1.0, abs=1e-9)


@pytest.mark.row("B5")
def test_the_worked_example_is_exact():
    """Of 1000 "students opened their", 400 go on with books and 100 with exams."""
    lines = ["students opened their books"] * 400 + ["students opened their exams"] * 100
    lines += ["students opened their minds"] * 500
    encoder = TextEncoder.build(lines, level="word")
    grams = count_ngrams(encoder.encode_lines(lines).ids, 4, len(encoder.vocabulary))
    exact = list(estimate(grams, NgramSettings(order=4, smoothing="mle")))[-1].p
    assert {0.4, 0.1, 0.5} < {*exact.tolist()}
    found = step(counted(lines, 4, "mle"), "students", "opened", "their")
    assert (found["books"], found["exams"]) == pytest.approx((0.4, 0.1), rel=1e-15)


@pytest.mark.row("B5")
def test_a_word_that_ends_a_line_counts_as_a_context():
    """Of "a b a" half of what follows a would be lost if the line's end did not count."""
    found = step(counted(["a b a"], 2, "mle"), "a")
    assert (found["b"], found["</s>"]) == (0.5, 0.5)


@pytest.mark.row("B7")
def test_an_unseen_context_gives_way_to_the_longest_seen_one():
    model = counted(["a b c", "d b e", "d f"], 4, "mle")
    assert step(model, "f", "d", "b") == step(model, "d", "b") != step(model, "b")
    assert step(model, "c", "c", "b") == step(model, "b")


@pytest.mark.row("B6")
def test_add_delta_goes_from_counts_to_equal_chances():
    lines = random_lines(5)
    least, most = counted(lines, 2, "add", delta=1e-9), counted(lines, 2, "add", delta=1e9)
    exact = counted(lines, 2, "mle")
    for word in ("a", "b", "</s>", "<unk>"):
        assert step(least, "a")[word] == pytest.approx(step(exact, "a")[word], abs=1e-9)
        assert step(most, "a")[word] == pytest.approx(1 / 8, abs=1e-6)
    assert min(step(least, "a")[word] for word in (*WORDS, "<unk>", "</s>")) > 0.0


@pytest.mark.row("B6")
def test_add_delta_has_delta_v_in_its_denominator():
    """a and b follow x; c never does. V is a, b, c, x, </s> and <unk>."""
    found = step(counted(["x a", "x b", "x a", "c"], 2, "add", delta=1.0), "x")
    assert found["a"] == pytest.approx((2 + 1) / (3 + 6))
    assert found["c"] == pytest.approx(1 / 9)


@pytest.mark.row("B7")
def test_stupid_scores_sum_to_anything():
    model = counted(random_lines(4), 3, "stupid")
    log_p = [score.log_probability for score in model.score(["a b", "b a", "f f f"])]
    formulas = Formulas(random_lines(4), 3, "stupid")
    for line, found in zip(("a b", "b a", "f f f"), log_p, strict=True):
        tokens = ["<s>", *line.split(), "</s>"]
        parts = [formulas(tokens[i], tokens[:i]) for i in range(1, len(tokens))]
        assert found == pytest.approx(math.log(math.prod(parts)), rel=1e-12)
    total = sum(formulas(word, ["<s>", "a"]) for word in formulas.vocabulary)
    assert abs(total - 1.0) > 0.01
    assert "normalised:no" in model.network.recipe


def test_an_unknown_word_has_a_chance_where_none_was_seen():
    lines = random_lines(6)
    for smoothing in ("add", "absolute", "kn", "mkn"):
        assert step(counted(lines, 3, smoothing), "a")["<unk>"] > 0.0
    assert step(counted(lines, 3, "mle"), "a")["<unk>"] == 0.0


def test_rare_words_count_as_unknown_when_the_vocabulary_leaves_them_out():
    model = counted(["a b", "a c", "a b", "a d"], 2, "mle", tokens={"min_count": 2})
    assert step(model, "a")["<unk>"] == 0.5


def test_nothing_predicts_padding_or_a_start():
    for smoothing in (*NORMALISED, "stupid"):
        found = step(counted(random_lines(7), 3, smoothing), "a", "b")
        assert found["<pad>"] == found["<s>"] == 0.0


def test_discounts_of_a_large_text_are_those_of_the_equations():
    count = np.repeat([1, 2, 3, 4, 9], [100, 40, 20, 12, 30])
    y = 100 / 180
    expected = (1 - 2 * y * 0.4, 2 - 3 * y * 0.5, 3 - 4 * y * 0.6)
    assert discounts_of(count, "mkn") == (pytest.approx(expected), False)
    assert discounts_of(count, "kn") == (pytest.approx((y, y, y)), False)


@pytest.mark.parametrize(
    "counts", [[], [1], [1, 1, 2], [2, 3, 4], [1, 2, 3, 3, 3, 3], [1, 2, 3, 4, 4, 4, 4, 4, 4]]
)
def test_a_text_too_small_for_discounts_gets_fixed_ones(counts):
    assert discounts_of(np.array(counts, dtype=np.int64), "mkn") == ((0.5, 1.0, 1.5), True)


def test_a_text_of_one_line_is_enough():
    for smoothing in NORMALISED:
        model = counted(["to be or not to be"], 7, smoothing)
        assert math.fsum(step(model, "to", "be").values()) == pytest.approx(1.0, abs=1e-12)


@pytest.mark.parametrize("smoothing", ["mle", "stupid"])
def test_counts_beyond_32_bits_are_exact(smoothing):
    lines = random_lines(8)
    encoder = TextEncoder.build(lines, level="word")
    settings = NgramSettings(order=3, smoothing=smoothing)
    grams = count_ngrams(encoder.encode_lines(lines).ids, 3, len(encoder.vocabulary))
    huge = [replace(level, count=level.count * 2**40) for level in grams]
    for a, b in zip(*(table_of(g, settings)[0].levels for g in (grams, huge)), strict=True):
        np.testing.assert_array_equal(a.log_p, b.log_p)
        np.testing.assert_array_equal(a.log_b, b.log_b)


def test_discounts_do_not_notice_counts_beyond_32_bits():
    """Raised by 2^33, a count stays in the class of 3 or more and keeps its share."""
    lines = random_lines(9, count=200)
    encoder = TextEncoder.build(lines, level="word")
    grams = count_ngrams(encoder.encode_lines(lines).ids, 2, len(encoder.vocabulary))
    often = grams[1].count > 4
    raised = replace(grams[1], count=np.where(often, grams[1].count + 2**33, grams[1].count))
    table, discounts = table_of([grams[0], raised], NgramSettings(order=2))
    assert discounts[1] == table_of(grams, NgramSettings(order=2))[1][1]
    p = np.exp(table.levels[1].log_p)
    parents = np.repeat(np.arange(len(raised.begin) - 1), np.diff(raised.begin))
    shared = np.bincount(parents[often], minlength=len(grams[0]))  # such words after each prefix
    assert p[often] == pytest.approx(1.0 / shared[parents[often]], rel=1e-7)


def test_padding_and_start_have_no_share_in_equal_chances():
    table, _ = table_of(
        count_ngrams(np.array([4, 3], dtype=np.int32), 1, 6),
        NgramSettings(order=1, smoothing="add"),
    )
    p = np.exp(table.levels[0].log_p)
    assert p[[PAD, START]] == pytest.approx([0.0, 0.0], abs=1e-90)
    assert p[[1, 3, 4, 5]] == pytest.approx([1 / 6, 2 / 6, 2 / 6, 1 / 6])
