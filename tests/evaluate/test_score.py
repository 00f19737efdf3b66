import numpy as np
import pytest

from unrolled.errors import ConfigError, NumericError
from unrolled.evaluate.bootstrap import Estimate
from unrolled.evaluate.perplexity import Counted, perplexity_scores
from unrolled.evaluate.score import Score, better, named

pytestmark = pytest.mark.arithmetic

COUNTED = Counted(lines=3, tokens=10, unknown=1, characters=40, level="word", context="line")


def scores(nats, tokens, counted=COUNTED):
    return perplexity_scores(np.array(nats, float), np.array(tokens), counted)


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


@pytest.mark.parametrize("place", range(3))
def test_a_score_is_a_number_and_so_are_the_ends_of_its_interval(place):
    values = [2.0, 1.0, 3.0]
    assert Score.of("loss", Estimate(*values), "recipe").value == 2.0
    values[place] = float("nan")
    with pytest.raises(NumericError, match="The loss is not a number: what the model says grows"):
        Score.of("loss", Estimate(*values), "recipe")
