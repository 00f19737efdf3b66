"""The made language of letters and sounds."""

import pytest

from unrolled.errors import ConfigError
from unrolled.text.spelling import pronounced, spelling_pairs


@pytest.mark.parametrize(
    ("word", "sounds"),
    [
        ("cat", "K AE T"),
        ("cite", "S AY T"),
        ("gem", "JH EH M"),
        ("got", "G AA T"),
        ("shell", "SH EH L"),
        ("tree", "T R IY"),
        ("bake", "B EY K"),
        ("baker", "B AE K EH R"),
        ("bring", "B R IH NG"),
        ("city", "S IH T IY"),
        ("yet", "Y EH T"),
        ("moon", "M UW N"),
    ],
)
def test_sounds_follow_from_letters_and_their_neighbours(word, sounds):
    assert " ".join(pronounced(word)) == sounds


def test_words_differ_and_the_same_seed_makes_the_same(tmp_path):
    pairs = spelling_pairs(2000, seed=3)
    assert len({word for word, _ in pairs}) == 2000
    assert pairs == spelling_pairs(2000, seed=3)
    assert pairs[:500] == spelling_pairs(500, seed=3)
    assert pairs != spelling_pairs(2000, seed=4)


def test_exceptions_are_a_share_and_break_one_sound():
    def broken(exceptions):
        pairs = spelling_pairs(3000, seed=1, exceptions=exceptions)
        return [
            sum(
                a != b for a, b in zip(pronounced("".join(word.split())), said.split(), strict=True)
            )
            for word, said in pairs
        ]

    assert set(broken(0.0)) == {0}
    some = broken(0.2)
    assert set(some) == {0, 1}
    assert 0.12 < sum(some) / len(some) < 0.22  # some take the sound's own place


@pytest.mark.parametrize("options", [{"count": -1}, {"count": 1, "exceptions": 2.0}])
def test_what_cannot_be_made_is_refused(options):
    with pytest.raises(ConfigError):
        spelling_pairs(**options, seed=1)
