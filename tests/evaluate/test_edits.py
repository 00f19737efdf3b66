"""Edits, counted for many lines at once, are those of the table that every textbook has."""

import numpy as np
import pytest

from unrolled.evaluate.edits import NUMBERS_AT_ONCE, any_order_counts, edit_counts, error_rate


def distance(a, b):
    """Wagner and Fischer's table, place by place."""
    table = [[i + j if not i * j else 0 for j in range(len(b) + 1)] for i in range(len(a) + 1)]
    for i, one in enumerate(a, 1):
        for j, other in enumerate(b, 1):
            ways = table[i - 1][j] + 1, table[i][j - 1] + 1, table[i - 1][j - 1] + (one != other)
            table[i][j] = min(ways)
    return table[-1][-1]


def random_lines(seed, count=60, longest=12):
    generator = np.random.default_rng(seed)
    return ["".join(generator.choice([*"abc"], generator.integers(longest))) for _ in range(count)]


def test_known_distances():
    said = [[*"kitten"], [*"Saturday"], [], [*"abc"], [*"same"]]
    true = [[*"sitting"], [*"Sunday"], [*"abc"], [], [*"same"]]
    assert edit_counts(said, true).tolist() == [[3, 7], [3, 6], [3, 3], [3, 0], [0, 4]]


@pytest.mark.parametrize("at_once", [1, 40, NUMBERS_AT_ONCE])
def test_distances_are_the_tables(at_once, monkeypatch):
    monkeypatch.setattr("unrolled.evaluate.edits.NUMBERS_AT_ONCE", at_once)
    said, true = random_lines(1), random_lines(2)
    expected = [[distance(a, b), len(b)] for a, b in zip(said, true, strict=True)]
    assert edit_counts(said, true).tolist() == expected


def test_words_may_stand_anywhere():
    said = [["a", "b", "c", "d"], ["b", "a"], ["a", "a", "a"], [], ["x"]]
    true = [["d", "c", "b", "a"], ["a", "b", "c"], ["a", "b"], ["a"], []]
    assert any_order_counts(said, true).tolist() == [[0, 4], [1, 3], [2, 2], [1, 1], [1, 0]]
    ordered, free = edit_counts(said, true), any_order_counts(said, true)
    assert (free[:, 0] <= ordered[:, 0]).all()


def test_a_rate_is_taken_over_all_lines_and_may_exceed_one():
    sums = edit_counts([["a", "b"], ["x", "y", "z"]], [["a"], ["q"]]).sum(axis=0)
    assert error_rate(sums[None]).tolist() == [(1 + 3) / 2]
    assert edit_counts([], []).shape == any_order_counts([], []).shape == (0, 2)
