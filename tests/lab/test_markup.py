"""Markup that models write: the documents, the checker, and what is closed."""

import random

import pytest

from unrolled.lab.markup import KINDS, Closed, closed, markup

pytestmark = [pytest.mark.arithmetic, pytest.mark.trains]


@pytest.mark.parametrize("kind", KINDS)
def test_what_is_made_is_well_formed(kind):
    chance = random.Random(3)
    for _ in range(300):
        text = KINDS[kind].made(chance)
        found = closed(text, KINDS[kind].mark)
        assert found.well_formed, text
        assert found.opened == found.closed


@pytest.mark.parametrize(
    ("kind", "text", "expected"),
    [
        ("xml", "<b> rat </b>", Closed(1, 1, True)),
        ("xml", "<b> <list> rat </b> </list>", Closed(2, 1, False)),
        ("xml", "rat </b>", Closed(0, 0, False)),
        ("xml", "<b> <b> rat </b>", Closed(2, 1, False)),
        ("latex", r"\begin{quote} \emph{ a } $ x $ \end{quote}", Closed(3, 3, True)),
        ("latex", r"\begin{quote} a \end{center}", Closed(1, 0, False)),
        ("latex", "$ x", Closed(1, 0, False)),
        ("wiki", "== a == [[ b ]] {{ c }} ''' d '''", Closed(4, 4, True)),
        ("wiki", "[[ b }}", Closed(1, 0, False)),
        ("poem", "دل بهار / من یار", Closed(1, 1, True)),
        ("poem", "دل بهار / من جهان", Closed(2, 0, False)),
    ],
)
def test_the_stack_counts_what_is_closed(kind, text, expected):
    assert closed(text, KINDS[kind].mark) == expected


@pytest.mark.row("I5")
def test_couplets_of_a_network_rhyme_and_those_of_an_n_gram_model_do_not():
    found = markup(kinds=["poem"], documents=4000, epochs=8, written=150)
    counted, network = found.shares
    assert (counted.model, network.model) == ("5-gram", "lstm")
    assert network.closed >= 0.85
    assert counted.closed <= 0.7
    assert network.example.encode("utf-8").decode("utf-8") == network.example
    assert "well-formed" in found.text()
    assert len(found.as_json()) == 2
    assert found.chart().to_dict()


@pytest.mark.row("I5")
@pytest.mark.slow
def test_a_network_closes_the_elements_that_it_opens():
    counted, network = markup(kinds=["xml"], epochs=16).shares
    assert network.closed >= 0.9
    assert counted.closed <= 0.6
