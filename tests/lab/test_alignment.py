from itertools import product

import numpy as np
import pytest

from unrolled.lab.alignment import (
    UNITS,
    Aligned,
    alignment_error_rate,
    alignments,
    compared,
    diagonals,
    fertile_pairs,
)

pytestmark = [pytest.mark.arithmetic, pytest.mark.trains]


@pytest.mark.parametrize("seed", range(20))
def test_error_rate_by_counting_cells(seed):
    random = np.random.default_rng(seed)
    sure, other, found = random.random((3, 4, 5)) < random.random((3, 1, 1))
    possible = sure | other
    right = wanted = there = 0
    for cell in product(range(4), range(5)):
        right += int(found[cell] and sure[cell]) + int(found[cell] and possible[cell])
        wanted += int(sure[cell])
        there += int(found[cell])
    sets = [set(map(tuple, np.argwhere(table).tolist())) for table in (sure, other, found)]
    expected = 1 - right / (wanted + there) if wanted + there else 0.0
    assert alignment_error_rate(*sets) == pytest.approx(expected, abs=1e-15)


def test_error_rate_of_what_is_right_possible_and_wrong():
    sure, possible = {(0, 0), (1, 1)}, {(0, 0), (1, 1), (1, 2)}
    assert alignment_error_rate(sure, possible, sure) == 0.0
    assert alignment_error_rate(sure, possible, possible) == 0.0
    assert alignment_error_rate(sure, possible, {(0, 2)}) == 1.0
    assert alignment_error_rate(sure, possible, set()) == 1.0
    assert alignment_error_rate(sure, sure, possible) == pytest.approx(1 - 4 / 5)  # 1 − F1


def test_gold_links_join_words_of_one_unit():
    pairs = fertile_pairs(200, symbols=3, units=(1, 5), seed=1)
    assert pairs == fertile_pairs(200, symbols=3, units=(1, 5), seed=1)
    source_letter = {"one-one": "s", "one-many": "f", "many-one": "mn"}
    target_shape = {"one-one": "t0", "one-many": "t0ab", "many-one": "c0"}
    for pair in pairs:
        source, target = pair.source.split(), pair.target.split()
        assert not pair.links["none"]
        for kind in source_letter:
            for t, s in pair.links[kind]:
                assert source[s][0] in source_letter[kind]
                assert target[t][0] == target_shape[kind][0]
                assert source[s][1] == target[t][1]  # the number of the unit
        links = set().union(*pair.links.values())
        assert {t for t, _ in links} == set(range(len(target)))
        assert {s for _, s in links} == {s for s, word in enumerate(source) if word[0] != "z"}
        times = {word: [t for t, _ in links].count(word) for word in range(len(target))}
        assert all(times[t] == (2 if word[0] == "c" else 1) for t, word in enumerate(target))


def test_recall_is_told_by_kind():
    kinds = {kind: set() for kind in UNITS}
    gold = [
        Aligned("s0 m1 n1", "t0 c1", {**kinds, "one-one": {(0, 0)}, "many-one": {(1, 1), (1, 2)}}),
        Aligned("f2", "t2a t2b", {**kinds, "one-many": {(0, 0), (1, 0)}}),
    ]
    found = compared(gold, [{(0, 0), (1, 2), (0, 1)}, {(0, 0), (1, 0)}])
    assert found.recall == {"one-one": 1.0, "one-many": 1.0, "many-one": 0.5}
    assert found.error_rate == pytest.approx(1 - 8 / 10)


@pytest.mark.row("L14")
def test_a_copy_is_looked_at_along_the_diagonals():
    for shares in diagonals(pairs=900, epochs=8, seeds=(1,)).values():
        assert shares[0] >= 0.95


@pytest.mark.row("L15")
def test_attention_finds_links_that_a_straight_line_does_not():
    found = alignments(pairs=900, epochs=10, seed=1)
    attended, straight = found["attention"], found["straight line"]
    assert attended.error_rate < 0.3 < straight.error_rate
    assert attended.recall["one-one"] > 0.9
