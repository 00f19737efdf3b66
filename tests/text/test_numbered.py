"""Words by number: the kernel's reading of letters beside Python's."""

import random
import sys

import pytest

from unrolled.text import word_index
from unrolled.text.numbered import BEYOND, LINE_END, NumberedWords
from unrolled.text.word_index import PlainIndex

TEXT = (
    "The cat saw 2 cows.\nÄpfel, Don't stop!\n\nİstanbul ſ ΣΑΣ ﬁn\nnaïveté incomprehensibilities\n"
)
HALVES = range(0xD800, 0xE000)


def read(text, *, splitter="letters", lowercase=True, pieces=1):
    """What is read of a text in so many pieces: the words of each line."""
    reader = NumberedWords(splitter, lowercase=lowercase)
    lines = [line + b"\n" for line in text.encode().split(b"\n")[:-1]]
    size = -(-len(lines) // pieces)
    blocks = [b"".join(lines[k : k + size]) for k in range(0, len(lines), size)]
    pairs = list(reader.pieces(blocks))
    words, found = reader.words(), []
    for numbers, lengths in pairs:
        assert lengths.sum() == len(numbers)
        ids = iter(numbers.tolist())
        found += [[words[next(ids)] for _ in range(length)] for length in lengths.tolist()]
    return found


def words_of(line, *, lowercase):
    """Python's own letters: one that would become two when made small stays as it is."""
    small = [c.lower() if lowercase and len(c.lower()) == 1 else c for c in line]
    return "".join(c if c.isalpha() else " " for c in small).split()


@pytest.fixture(params=["compiled", "plain"], autouse=True)
def kernel(request, monkeypatch):
    if request.param == "plain":
        monkeypatch.setattr(word_index, "KERNEL", PlainIndex)
    elif word_index.KERNEL is PlainIndex:
        pytest.skip("no compiled kernels")


both_cases = pytest.mark.parametrize("lowercase", [True, False])


@both_cases
@pytest.mark.parametrize("pieces", [1, 3])
def test_letters_are_read_as_python_knows_them(lowercase, pieces):
    expected = [words_of(line, lowercase=lowercase) for line in TEXT.split("\n")[:-1]]
    assert read(TEXT, lowercase=lowercase, pieces=pieces) == expected
    assert expected[0] == ["the" if lowercase else "The", "cat", "saw", "cows"]


@both_cases
def test_every_code_point_is_a_letter_or_parts_words(lowercase):
    codes = [*range(BEYOND + 100), *range(BEYOND + 100, sys.maxunicode + 1, 997)]
    chars = [chr(c) for c in codes if c not in HALVES and c != LINE_END]
    lines = [f"{char}a{char}{char}bcdefghi{char}" for char in chars]
    found = read("".join(f"{line}\n" for line in lines), lowercase=lowercase)
    wrong = [
        line
        for line, words in zip(lines, found, strict=True)
        if words != words_of(line, lowercase=lowercase)
    ]
    assert not wrong


@both_cases
def test_words_of_every_length_beside_everything_that_ends_them(lowercase):
    """Eight letters are looked at in one go, wherever words begin and a text ends."""
    chance = random.Random(1)
    ends = [" ", "  ", ", ", "\n", "\n\n", ".\n", "\t", "—", "é", "3", "İ", "\u0301", "𝒳", "`", "{"]
    text = ""
    for size in range(20):
        for end in ends:
            word = "".join(chance.choice("abyzABYZ@[`{") for _ in range(size))
            text += word + end + word.upper() + chance.choice(ends)
    for cut in range(12):
        part = text[cut:] + "\n" + "a" * cut + "\n"
        lines = part.split("\n")[:-1]
        expected = [words_of(line, lowercase=lowercase) for line in lines]
        assert read(part, lowercase=lowercase) == expected


def test_white_space_alone_parts_words_where_that_is_asked_for():
    found = read("Don't  stop ΟΔΟΣ\n\n42\n", splitter="space")
    assert found == [["don't", "stop", "οδος"], [], ["42"]]


def test_nothing_is_read_from_no_blocks():
    assert list(NumberedWords().pieces([])) == []
