import math

import numpy as np
import pytest

from unrolled.evaluate.perplexity import Counted, perplexity_scores
from unrolled.evaluate.score import named
from unrolled.tasks.shared.token_baselines import nats_of_lines, uniform_nats, unigram_nats
from unrolled.text.tokens import PAD, START, TextEncoder

pytestmark = pytest.mark.arithmetic

COUNTED = Counted(lines=3, tokens=10, unknown=1, characters=40, level="word", context="line")


def scores(nats, tokens, counted=COUNTED):
    return perplexity_scores(np.array(nats, float), np.array(tokens), counted)


@pytest.mark.row("N2")
def test_perplexity_of_a_uniform_choice_among_ten_is_ten():
    values = scores([5 * math.log(10), 3 * math.log(10), 2 * math.log(10)], [5, 3, 2])
    assert named(values, "perplexity").value == pytest.approx(10.0, rel=1e-14)
    assert 2 ** math.log(10) == pytest.approx(4.93, abs=0.01)  # the power of 2 needs bits


@pytest.mark.row("N2")
def test_three_forms_of_perplexity_agree():
    probabilities = np.array([0.5, 0.1, 0.25, 0.03])
    nats = -np.log(probabilities)
    value = named(scores([nats.sum()], [4]), "perplexity").value
    assert value == pytest.approx(np.prod(1 / probabilities) ** (1 / 4), rel=1e-14)
    assert value == pytest.approx(2 ** np.mean(-np.log2(probabilities)), rel=1e-14)


@pytest.mark.row("N1")
def test_the_mean_is_over_tokens_not_over_lines():
    assert named(scores([9.0, 1.0, 0.0], [1, 8, 1]), "cross_entropy").value == 1.0


def test_bits_per_character_divide_by_characters():
    value = named(scores([10.0], [10]), "bits_per_character").value
    assert value == pytest.approx(10.0 / math.log(2) / 40)


def test_a_perplexity_beyond_all_numbers_is_a_number_and_no_exception():
    assert 1e307 < named(scores([1e6], [1]), "perplexity").value < math.inf


def test_baselines_are_probabilities_and_equal_their_formulas():
    encoder = TextEncoder.build(["a b a", "a c"], level="word", min_count=1)
    vocabulary = encoder.vocabulary
    for nats in (uniform_nats(vocabulary), unigram_nats(vocabulary)):
        assert np.exp(-nats).sum() == pytest.approx(1.0, abs=1e-12)
        assert np.isinf(nats[[PAD, START]]).all()
    # counts a 3, b 1, c 1, line ends 2, unknown 0; each plus one, over 7 + 5
    line = nats_of_lines(unigram_nats(vocabulary), encoder.encode_lines(["a x"]))
    assert line == pytest.approx([-math.log(4 / 12) - math.log(1 / 12) - math.log(3 / 12)])
