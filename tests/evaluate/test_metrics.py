import math

import numpy as np
import pytest

from unrolled.errors import ConfigError
from unrolled.evaluate.baselines import nats_of_lines, uniform_nats, unigram_nats
from unrolled.evaluate.metrics import Counted, better, named, resampled_ratio, surprise_scores
from unrolled.text.tokens import PAD, START, TextEncoder

pytestmark = pytest.mark.arithmetic

COUNTED = Counted(lines=3, tokens=10, unknown=1, characters=40, level="word", context="line")


def scores(nats, tokens, counted=COUNTED):
    return surprise_scores(np.array(nats, float), np.array(tokens), counted)


def test_perplexity_of_a_uniform_choice_among_ten_is_ten():
    values = scores([5 * math.log(10), 3 * math.log(10), 2 * math.log(10)], [5, 3, 2])
    assert named(values, "perplexity").value == pytest.approx(10.0, rel=1e-14)
    assert 2 ** math.log(10) == pytest.approx(4.93, abs=0.01)  # the power of 2 needs bits


def test_three_forms_of_perplexity_agree():
    probabilities = np.array([0.5, 0.1, 0.25, 0.03])
    nats = -np.log(probabilities)
    value = named(scores([nats.sum()], [4]), "perplexity").value
    assert value == pytest.approx(np.prod(1 / probabilities) ** (1 / 4), rel=1e-14)
    assert value == pytest.approx(2 ** np.mean(-np.log2(probabilities)), rel=1e-14)


def test_the_mean_is_over_tokens_not_over_lines():
    assert named(scores([9.0, 1.0, 0.0], [1, 8, 1]), "cross_entropy").value == 1.0


def test_bits_per_character_divide_by_characters():
    value = named(scores([10.0], [10]), "bits_per_character").value
    assert value == pytest.approx(10.0 / math.log(2) / 40)


def test_the_interval_is_the_bootstraps():
    generator = np.random.default_rng(5)
    counts = generator.integers(5, 30, size=400)
    amounts = counts * 2.0 + generator.normal(size=400)
    value, low, high = resampled_ratio(amounts, counts)
    ratios = [
        amounts[rows].sum() / counts[rows].sum()
        for rows in np.random.default_rng(0).integers(400, size=(1000, 400))
    ]
    spread = np.std(ratios)
    assert low < value < high
    assert high - low == pytest.approx(2 * 1.96 * spread, rel=0.1)


def test_the_signature_tells_what_was_counted():
    signature = scores([1.0], [10])[0].signature
    for part in ("tokens:10", "end:counted", "unknown:1", "base:e", "level:word", "characters:40"):
        assert part in signature.split("|")


def test_unlike_counts_are_not_compared():
    mine = scores([1.0], [10])
    other = scores([2.0], [10], COUNTED._replace(tokens=11))
    with pytest.raises(
        ConfigError, match=r"perplexity cannot be compared: one counts tokens:10, the"
    ):
        better(mine[0], other[0])
    with pytest.raises(ConfigError, match="perplexity and cross_entropy are unlike measures"):
        better(mine[0], mine[1])
    assert better(named(mine, "bits_per_character"), named(other, "bits_per_character"))
    assert better(mine[0], scores([2.0], [10], COUNTED._replace(context="stream"))[0])


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
