from collections import Counter

import pytest

from unrolled.lab.window_limit import DID, OPENED, corpus, window_limit

pytestmark = [pytest.mark.arithmetic, pytest.mark.trains]

NEAR = ("4-gram", "window of 3")
FAR = ("window of 12", "rnn")


def test_nothing_near_the_last_word_tells_which_it_is():
    lines = corpus(4000, seed=3)
    ends = Counter(line.split()[-1] for line in lines)
    assert set(ends.values()) == {2000}
    assert all(OPENED[line.split()[2]] == line.split()[-1] for line in lines)
    for part in DID:
        near = Counter(line.split()[-1] for line in lines if f" {part} " in line)
        expected = near.total() / 2
        chi = sum((count - expected) ** 2 / expected for count in near.values())
        assert chi < 10.83  # p > 0.001 at 1 degree
    assert corpus(50, seed=3) == corpus(50, seed=3)
    assert corpus(50, seed=3) != corpus(50, seed=4)


@pytest.mark.row("B12")
def test_a_short_window_is_at_chance_and_a_memory_is_not(tmp_path):
    found = window_limit(tmp_path)
    assert found.keys() == {*NEAR, *FAR}
    for name in NEAR:
        assert found[name] == 0.5  # the same choice every time, and half of the lines are right
    for name in FAR:
        assert found[name] >= 0.95
