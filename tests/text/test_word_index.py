import sys
import time

import numpy as np
import pytest

from unrolled.text import word_index
from unrolled.text.word_index import PlainIndex, WordIndex

COMPILED = word_index.KERNEL is not PlainIndex
KERNELS = [PlainIndex, *([word_index.KERNEL] if COMPILED else [])]


@pytest.fixture(params=KERNELS, ids=lambda kernel: kernel.__module__)
def index(request, monkeypatch):
    monkeypatch.setattr(word_index, "KERNEL", request.param)
    return WordIndex


def test_words_are_numbered_as_they_come(index):
    words = index()
    ids, lengths = words.read(["the cat  the", "", " a cat\t", "\n"])
    assert (ids.tolist(), lengths.tolist()) == ([0, 1, 0, 2, 1], [3, 0, 2, 0])
    assert (ids.dtype, lengths.dtype) == (np.int32, np.int64)
    assert words.words() == ["the", "cat", "a"]


def test_unknown_words_can_be_kept_out(index):
    words = index(["the", "cat"])
    ids, _ = words.read(["the dog saw the cat"], unknown=9)
    assert ids.tolist() == [0, 9, 9, 0, 1]
    assert words.words() == ["the", "cat"]


def test_many_words_of_all_lengths_are_told_apart(index):
    texts = [f"{'é' * (i % 23)}{i}" for i in range(5000)]
    words = index()
    ids, _ = words.read([" ".join(texts)])
    assert ids.tolist() == list(range(5000))
    assert words.read([" ".join(reversed(texts))], unknown=0)[0].tolist() == ids[::-1].tolist()
    assert words.words() == texts


def test_words_of_about_eight_bytes_are_told_apart(index):
    """These are compared at once, whatever follows: a space, a line's end, NUL or a long letter."""
    letters = ["abcdefghi"[:size] for size in range(1, 10)]
    strange = [f"{word}{mark}" for word in letters for mark in ("\0", "\0\0", "\x01", "é", "￭")]
    texts = [*letters, *strange, *(f"\0{word}" for word in letters)]
    for apart in (" ", "  ", "\t", "\n", "\u3000"):
        words = index()
        ids, _ = words.read([apart.join(texts), *texts, *(f"{word} " for word in texts)])
        assert ids.tolist() == [*range(len(texts))] * 3
        assert words.words() == texts


def test_words_are_parted_where_python_parts_them(index):
    """Every code point between two letters, and at both ends."""
    chars = [chr(c) for c in range(sys.maxunicode + 1)]
    lines = [f"{char}a{char}{char}b{char}" for char in chars]
    words = index()
    for start in range(0, len(lines), 100_000):
        block = lines[start : start + 100_000]
        _, lengths = words.read(block, unknown=0)
        assert lengths.tolist() == [len(line.split()) for line in block]


def test_half_a_surrogate_pair_is_a_letter_like_any(index):
    words = index()
    ids, _ = words.read(["a \ud800b a", "\ud800b"])
    assert ids.tolist() == [0, 1, 0, 1]
    assert words.words() == ["a", "\ud800b"]


def test_nothing_is_read_from_nothing(index):
    ids, lengths = index().read([])
    assert (ids.tolist(), lengths.tolist()) == ([], [])


def unmixed(hashes):
    """What the factors of splitmix64, without a secret, make these hashes of."""
    for shift, factor in ((31, 0x94D049BB133111EB), (27, 0xBF58476D1CE4E5B9)):
        undone = hashes.copy()
        for _ in range(64 // shift):
            undone = hashes ^ undone >> np.uint64(shift)
        hashes = undone * np.uint64(pow(factor, -1, 2**64))
    return hashes


def crowding_words(count):
    """Words of eight letters that a table with these known factors would put into one place."""
    chance, found = np.random.default_rng(1), []
    while sum(map(len, found)) < count:
        hashes = chance.integers(0, 2**50, 4_000_000, dtype=np.uint64)
        heads = unmixed(hashes) ^ np.uint64(8 * 0x9E3779B97F4A7C15 % 2**64)
        letters = heads.view(np.uint8).reshape(-1, 8)
        found.append(letters[((letters > 0x20) & (letters < 0x7F)).all(axis=1)])
    return [row.tobytes().decode() for row in np.concatenate(found)[:count]]


@pytest.mark.slow
@pytest.mark.skipif(not COMPILED, reason="there is no table")
def test_no_text_can_be_made_to_crowd_the_table():
    crafted = crowding_words(12_000)
    plain = [f"{number:08x}" for number in range(12_000)]

    def seconds(words):
        began = time.process_time()
        WordIndex().read([" ".join(words)])
        return time.process_time() - began

    pairs = [(seconds(crafted), seconds(plain)) for _ in range(5)]
    assert min(a for a, _ in pairs) < 10 * min(b for _, b in pairs)
    assert WordIndex(crafted).words() == list(dict.fromkeys(crafted))
