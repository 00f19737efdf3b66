"""Character n-grams and their numbers, against fastText's algorithm letter by letter."""

import pytest

from unrolled.text.subwords import Subwords

KNOWN = [1087600]


def plain(word, least, most, buckets):
    """As fastText's Dictionary::computeSubwords and Dictionary::hash go about it."""
    text, numbers = f"<{word}>", []
    for start in range(len(text)):
        for length in range(least, most + 1):
            gram = text[start : start + length]
            if len(gram) == length and gram not in ("<", ">"):
                value = 2166136261
                for byte in gram.encode():
                    value ^= byte if byte < 128 else 0xFFFFFF00 | byte
                    value = value * 16777619 % 2**32
                numbers.append(value % buckets)
    return sorted(numbers)


@pytest.mark.parametrize(
    ("least", "most", "buckets"), [(3, 6, 2_000_000), (1, 2, 50), (1, 1, 7), (5, 9, 1)]
)
def test_numbers_are_fasttexts(least, most, buckets):
    words = ["the", "a", "", "banana", "äöß", "naïve", "日本語", "x" * 30]
    numbers, starts = Subwords(least, most, buckets).of(words)
    for k, word in enumerate(words):
        found = sorted(numbers[starts[k] : starts[k + 1]].tolist())
        assert found == plain(word, least, most, buckets)


def test_a_known_number():
    """Computed by fastText 0.9.2: fasttext.FastText.get_subwords of "<a>", 2,000,000 buckets."""
    numbers, starts = Subwords(3, 6, 2_000_000).of(["a"])
    assert (numbers.tolist(), starts.tolist()) == (KNOWN, [0, 1])
