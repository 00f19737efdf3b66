from itertools import pairwise, product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from unrolled.text.schemes import (
    SCHEMES,
    Span,
    find_scheme,
    first_break,
    legal_moves,
    may_follow,
    spans,
    write_spans,
)

EXAMPLE = [Span(0, 2, "PER"), Span(3, 4, "ORG"), Span(4, 5, "LOC"), Span(5, 8, "LOC")]
TAGS = {
    "iob1": "I-PER I-PER O I-ORG I-LOC B-LOC I-LOC I-LOC",
    "iob2": "B-PER I-PER O B-ORG B-LOC B-LOC I-LOC I-LOC",
    "iobes": "B-PER E-PER O S-ORG S-LOC B-LOC I-LOC E-LOC",
}
every_scheme = pytest.mark.parametrize("scheme", SCHEMES)
ALL_TAGS = ["O", *(f"{prefix}-{label}" for prefix in "BIES" for label in ("PER", "X-Y"))]


@st.composite
def sentences(draw) -> tuple[list[Span], int]:
    """Spans side by side, with or without words between them."""
    found, place = [], 0
    for gap, size, label in draw(
        st.lists(st.tuples(st.integers(0, 2), st.integers(1, 4), st.sampled_from("AB")))
    ):
        found.append(Span(place + gap, place + gap + size, label))
        place += gap + size
    return found, place + draw(st.integers(0, 2))


@every_scheme
def test_the_example_in_every_scheme(scheme):
    tags = TAGS[scheme].split()
    assert spans(tags) == EXAMPLE
    assert write_spans(EXAMPLE, 8, scheme) == tags
    assert first_break(tags, scheme) is None
    assert find_scheme([tags]) == scheme


@given(sentences(), st.sampled_from(SCHEMES))
def test_spans_come_back_from_their_tags(sentence, scheme):
    found, length = sentence
    tags = write_spans(found, length, scheme)
    assert len(tags) == length
    assert spans(tags) == found
    assert first_break(tags, scheme) is None


@given(st.lists(st.sampled_from(ALL_TAGS), max_size=8), st.sampled_from(SCHEMES))
def test_tags_that_keep_to_a_scheme_come_back_from_their_spans(tags, scheme):
    if first_break(tags, scheme) is None:
        assert write_spans(spans(tags), len(tags), scheme) == tags
    else:
        assert write_spans(spans(tags), len(tags), scheme) != tags


def conlleval(tags: list[str]) -> list[Span]:
    """The two rules of the shared tasks' script, one condition a line."""

    def ends(a, b, type_a, type_b):
        return (
            (a, b) in {("B", "B"), ("B", "S"), ("B", "O"), ("I", "B"), ("I", "S"), ("I", "O")}
            or a in ("E", "S")
            or (a != "O" and type_a != type_b)
        )

    def starts(a, b, type_a, type_b):
        return (
            b in ("B", "S")
            or (a, b) in {("E", "E"), ("E", "I"), ("S", "E"), ("S", "I"), ("O", "E"), ("O", "I")}
            or (b != "O" and type_a != type_b)
        )

    found, begin = [], 0
    pairs = [tag.partition("-")[::2] for tag in ["O", *tags, "O"]]
    for place, ((a, type_a), (b, type_b)) in enumerate(pairwise(pairs)):
        if ends(a, b, type_a, type_b):
            found.append(Span(begin, place, type_a))
        if starts(a, b, type_a, type_b):
            begin = place
    return found


def test_spans_of_every_short_sentence_are_those_of_conlleval():
    for length in range(6):
        for tags in product(ALL_TAGS[:8], repeat=length):
            assert spans(tags) == conlleval(list(tags))


@pytest.mark.parametrize(
    ("tags", "scheme", "place"),
    [
        ("O I-PER", "iob2", 1),
        ("B-PER I-ORG", "iob2", 1),
        ("B-PER I-PER", "iob1", 0),
        ("I-PER B-ORG", "iob1", 1),
        ("I-PER B-PER", "iob1", None),
        ("B-PER O", "iobes", 1),
        ("B-PER", "iobes", 1),  # the end of the sentence breaks it
        ("E-PER", "iobes", 0),
        ("S-PER I-PER", "iobes", 1),
        ("B-PER E-ORG", "iobes", 1),
        ("S-PER", "iob2", 0),
        ("NOUN", "iob2", 0),
        ("B-", "iob2", 0),
        ("", "iobes", None),
    ],
)
def test_the_first_tag_that_breaks_a_scheme(tags, scheme, place):
    assert first_break(tags.split(), scheme) == place


@pytest.mark.parametrize(
    ("sentences", "scheme"),
    [
        (["NOUN VERB"], None),
        (["O O"], None),
        (["B-PER NOUN"], None),
        (["I-PER O", "O B-PER"], "iob2"),  # as many sentences break the one as the other
        (["I-PER O", "O B-PER", "I-PER I-PER"], "iob1"),
        (["I-PER O"], "iob1"),
        (["B-PER O"], "iob2"),
        (["S-PER O"], "iobes"),
        ([], None),
    ],
)
def test_schemes_are_told_apart(sentences, scheme):
    assert find_scheme([tags.split() for tags in sentences]) == scheme


@every_scheme
def test_moves_allow_what_the_scheme_writes_and_nothing_else(scheme):
    moves = legal_moves(ALL_TAGS[:5], scheme)
    assert moves.between.shape == (5, 5)
    for a, b in product(range(5), repeat=2):
        assert moves.between[a, b] == may_follow(scheme, ALL_TAGS[a], ALL_TAGS[b])
    if scheme == "iobes":
        tags = ["O", "B-A", "I-A", "E-A", "S-A"]
        expected = np.array(
            [[c == "1" for c in row] for row in ["11001", "00110", "00110", "11001", "11001"]]
        )
        assert np.array_equal(legal_moves(tags, scheme).between, expected)
        assert legal_moves(tags, scheme).first.tolist() == [True, True, False, False, True]
        assert legal_moves(tags, scheme).last.tolist() == [True, False, False, True, True]


def test_tags_without_a_label_mark_spans_of_one_kind():
    tags = ["B", "I", "O", "B", "B"]
    assert find_scheme([tags]) == "iob2"
    assert spans(tags) == [Span(0, 2, ""), Span(3, 4, ""), Span(4, 5, "")]
    for scheme in ("iob1", "iob2", "iobes"):
        assert spans(write_spans(spans(tags), 5, scheme)) == spans(tags)
    assert write_spans(spans(tags), 5, "iobes") == ["B", "E", "O", "S", "S"]
    assert find_scheme([["B", "I", "NN"]]) is None
    assert find_scheme([["B-", "O"]]) is None
