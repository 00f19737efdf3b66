"""Differences of two models: sacrebleu's chances, and those of all draws that there are."""

from itertools import product

import numpy as np
import pytest
from sacrebleu.metrics import BLEU
from sacrebleu.significance import PairedTest

from unrolled.errors import ConfigError
from unrolled.evaluate.bootstrap import Estimate, resamples
from unrolled.evaluate.compare import RESAMPLES, SWAPS, compare, difference
from unrolled.evaluate.labels import label_measures
from unrolled.evaluate.measure import ratio_measure
from unrolled.evaluate.perplexity import Counted, perplexity_measures
from unrolled.evaluate.score import Score
from unrolled.evaluate.translation import translation_measures

pytestmark = pytest.mark.arithmetic
COUNTED = {"examples": 40, "level": "word"}


def near(chance, drawn):
    """What may lie between a chance and its share of so many draws: four deviations."""
    return 4 * (chance * (1 - chance) / drawn) ** 0.5 + 1 / drawn


def shares(right, whole, signature="examples:5"):
    score = Score.of("accuracy", Estimate(sum(right) / sum(whole), 0.0, 1.0), signature)
    return ratio_measure(score, np.array(right), np.array(whole))


FIRST, OTHER = shares([3, 0, 1, 4, 2], [4, 3, 2, 4, 5]), shares([4, 2, 1, 3, 4], [4, 3, 2, 4, 5])


def rate(rows, counts):
    right, whole = np.array(counts)[rows].sum(axis=0)
    return right / whole


def test_the_chance_of_a_resample_is_that_of_all_resamples():
    a, b = FIRST.counts, OTHER.counts
    drawn = np.array([rate([*rows], b) - rate([*rows], a) for rows in product(range(5), repeat=5)])
    found = difference(FIRST, OTHER)
    assert found.difference == pytest.approx(4 / 18, rel=1e-14)
    exact = np.mean(np.abs(drawn - drawn.mean()) >= found.difference - 1e-12)
    assert 0.01 < exact < 0.5
    assert found.p_bootstrap == pytest.approx(exact, abs=near(exact, RESAMPLES))
    assert (found.low, found.high) == pytest.approx(np.quantile(drawn, [0.025, 0.975]), abs=0.06)


def test_the_chance_of_swaps_is_that_of_all_swaps():
    a, b = FIRST.counts, OTHER.counts
    apart = []
    for swapped in product([False, True], repeat=5):
        pairs = [(b[k], a[k]) if swap else (a[k], b[k]) for k, swap in enumerate(swapped)]
        one, other = (np.array(side).sum(axis=0) for side in zip(*pairs, strict=True))
        apart.append(abs(other[0] / other[1] - one[0] / one[1]))
    exact = np.mean(np.array(apart) >= 4 / 18 - 1e-12)
    assert 0.01 < exact < 0.5
    found = difference(FIRST, OTHER).p_randomisation
    assert found == pytest.approx(exact, abs=near(exact, SWAPS))


def made(seed, count=40):
    generator = np.random.default_rng(seed)
    words = [*"abcdefgh"]
    references = [" ".join(generator.choice(words, 8)) for _ in range(count)]

    def spoilt(share):
        return [
            " ".join(w if generator.random() > share else "x" for w in line.split())
            for line in references
        ]

    return spoilt(0.25), spoilt(0.31), references


@pytest.mark.slow
def test_swaps_of_bleu_have_sacrebleus_chance():
    one, other, references = made(3)
    first, second = (translation_measures(o, references, counted=COUNTED)[0] for o in (one, other))
    ours = difference(first, second)
    metric, systems = {"BLEU": BLEU(force=True)}, [("one", one), ("other", other)]
    theirs = PairedTest(systems, metric, [references], test_type="ar", n_samples=4000)()[1]
    chance = theirs["BLEU"][1].p_value
    assert 0.01 < chance < 0.9
    assert ours.p_randomisation == pytest.approx(chance, abs=near(chance, 4000) + 0.01)
    assert ours.difference == pytest.approx(theirs["BLEU"][1].score - theirs["BLEU"][0].score)


def test_resamples_of_labels_are_those_of_the_labels_themselves():
    """A measure of summed counts is the measure of the examples that were drawn."""
    generator = np.random.default_rng(1)
    probabilities = generator.dirichlet([1, 1, 1], size=20)
    targets = generator.integers(3, size=20)
    options = {"counted": COUNTED, "first": "accuracy"}
    measures = label_measures(probabilities, targets, **options)
    weights = next(resamples(20))[:4]
    for measure in measures:
        for row, value in zip(weights, measure.values(weights), strict=True):
            rows = np.repeat(np.arange(20), row.astype(int))
            again = label_measures(probabilities[rows], targets[rows], **options)
            (expected,) = (m.score.value for m in again if m.score.name == measure.score.name)
            assert value == pytest.approx(expected, rel=1e-12), measure.score.name


def test_language_models_of_unlike_tokens_are_compared_by_characters_alone():
    nats, characters = np.array([4.0, 6.0, 2.0]), [10, 12, 4]

    def measures(tokens, level):
        counted = Counted(3, sum(tokens), 0, 26, level, "line")
        return perplexity_measures(nats, np.array(tokens), characters, counted)

    found = compare({"words": measures([2, 3, 1], "word"), "letters": measures([9, 11, 3], "char")})
    assert [each.measure for each in found.compared] == ["bits_per_character"]
    assert found.compared[0].differences["letters"][:3] == pytest.approx([0.0] * 3, abs=1e-14)
    assert found.compared[0].differences["letters"].p_randomisation == 1.0
    assert "perplexity of letters: two values of perplexity cannot be compared" in found.text()
    assert found.as_json()["measures"][0]["models"].keys() == {"words", "letters"}


def test_what_cannot_be_compared_is_refused_with_the_reason():
    other = shares([1, 1], [2, 2], "examples:2")
    with pytest.raises(ConfigError, match="a, b cannot be compared: accuracy of b: two values of"):
        compare({"a": [FIRST], "b": [other]})
    with pytest.raises(ConfigError, match="b is of another kind and has no such measure"):
        compare({"a": [FIRST], "b": []})
    with pytest.raises(ConfigError, match="no measure that can be taken line by line"):
        compare({"a": [], "b": []})


def test_a_table_has_a_row_a_model():
    text = compare({"a": [FIRST], "b": [OTHER]}).text().splitlines()
    assert text[0].split() == ["accuracy", "score", "difference", "p", "boot", "p", "rand"]
    assert text[1].split()[0] == "a"
    assert text[2].split()[4] == "+0.222"
    paths = compare({"x/a": [FIRST], "y/b": [OTHER]}).text().splitlines()
    assert [line.split()[0] for line in paths[1:3]] == ["a", "b"]
    same = compare({"x/a": [FIRST], "y/a": [OTHER]}).text().splitlines()
    assert [line.split()[0] for line in same[1:3]] == ["x/a", "y/a"]
    assert max(map(len, text)) <= 80
