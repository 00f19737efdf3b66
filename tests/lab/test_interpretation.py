import pytest

from unrolled.lab.interpretation import WAIT, delayed, delayed_copy

pytestmark = [pytest.mark.arithmetic, pytest.mark.trains]


@pytest.mark.parametrize(
    ("delay", "said"),
    [(0, "abcd"), (1, "-abc"), (3, "---a"), (5, "----"), (-1, "bcd-"), (-9, "----")],
)
def test_what_is_said_at_each_word(delay, said):
    assert delayed("abcd", delay) == list(said)
    assert WAIT == "-"


@pytest.mark.row("J14")
def test_a_word_can_be_said_late_but_not_before_it_is_heard():
    found = delayed_copy((-1, 1), symbols=5, length=12, sentences=240, epochs=10)
    assert found[1] > 0.99
    assert found[-1] == pytest.approx(1 / 5, abs=0.08)  # chance
    assert found == delayed_copy((-1, 1), symbols=5, length=12, sentences=240, epochs=10)
