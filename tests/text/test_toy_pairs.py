"""Made pairs are what they say they are."""

from collections import Counter

import pytest

from unrolled.errors import ConfigError
from unrolled.text.toy_pairs import KINDS, toy_pairs


def made(kind, count=300, *, symbols=7, lengths=(2, 5), seed=1):
    return toy_pairs(kind, count, symbols=symbols, lengths=lengths, seed=seed)


def test_copy_and_reverse():
    assert all(source == target for source, target in made("copy"))
    for source, target in made("reverse"):
        assert target.split() == list(reversed(source.split()))


def test_a_dictionary_translates_each_symbol_always_the_same_and_none_alike():
    found = {}
    for source, target in made("dictionary"):
        for a, b in zip(source.split(), target.split(), strict=True):
            assert found.setdefault(a, b) == b
    assert {*found} == {f"s{i}" for i in range(7)}
    assert {*found.values()} == {f"t{i}" for i in range(7)}
    words = [int(found[f"s{i}"][1:]) for i in range(7)]
    assert words != sorted(words)


def test_the_dictionary_is_the_same_for_any_count_and_another_for_another_seed():
    def dictionary(**given):
        pairs = made("dictionary", **given)
        return {a: b for s, t in pairs for a, b in zip(s.split(), t.split(), strict=True)}

    assert dictionary(count=300) == dictionary(count=500)
    assert dictionary(seed=1) != dictionary(seed=2)


def test_every_length_asked_for_is_there_as_often_as_any_other():
    sizes = Counter(len(source.split()) for source, _ in made("copy", 4000))
    assert {*sizes} == {2, 3, 4, 5}
    assert all(abs(n - 1000) < 5 * 28 for n in sizes.values())  # five standard deviations
    assert made("copy", 3, lengths=(0, 0)) == [("", "")] * 3


@pytest.mark.parametrize("kind", KINDS)
def test_the_same_seed_gives_the_same_pairs(kind):
    assert made(kind) == made(kind)
    assert made(kind) != made(kind, seed=2)
    assert len(made(kind)) == 300
    assert made(kind, 0) == []


def test_what_cannot_be_made_is_refused():
    with pytest.raises(ConfigError, match=r"kind is 'sort', but must be one of copy, dictionary"):
        made("sort")
    with pytest.raises(ConfigError, match="count is -1, but must be 0 or more"):
        made("copy", -1)
    with pytest.raises(ConfigError, match="symbols is 0, but must be 1 or more"):
        made("copy", symbols=0)
    for wrong in ((3, 2), (-1, 2)):
        with pytest.raises(ConfigError, match=r"lengths is \(.*\), but must be the shortest and"):
            made("copy", lengths=wrong)
