"""The compiled n-gram kernels beside what does the same in numpy."""

from typing import Any

import numpy as np
import pytest
from ngrams import counted, random_lines

from unrolled.ngrams import kernels as ngram_kernels
from unrolled.ngrams.counts import count_ngrams
from unrolled.ngrams.query import kernel_of, line_nats, nats_of_lines
from unrolled.ngrams.settings import NgramSettings
from unrolled.ngrams.smoothing import estimate
from unrolled.text.tokens import END, TextEncoder

pytestmark = [
    pytest.mark.skipif(ngram_kernels.TABLE is None, reason="nothing is compiled here"),
    pytest.mark.arithmetic,
]

SMOOTHINGS = ("mle", "add", "stupid", "absolute", "kn", "mkn")
FIELDS = ("words", "begin", "suffix", "count")


@pytest.mark.parametrize("smoothing", SMOOTHINGS)
@pytest.mark.parametrize("order", [1, 2, 5, 16])
def test_reading_equals_its_twin(smoothing, order):
    words = [f"w{i}" for i in range(60)]
    model = counted(random_lines(1, count=300, words=words), order, smoothing)
    lines = random_lines(2, count=900, words=[*words, "new"], longest=60)
    encoded = model.encoder.encode_lines(lines)
    table = model.network.table
    expected = nats_of_lines(table, encoded.ids)
    for threads in (1, 2, 3):
        nats = np.empty(len(encoded.ids))
        kernel_of(table).nats(encoded.ids, nats, threads)
        np.testing.assert_allclose(nats, expected, rtol=1e-14, atol=0.0)


def test_without_kernels_lines_are_read_in_numpy(monkeypatch):
    model = counted(random_lines(1), 3)
    ids = model.encoder.encode_lines(random_lines(2)).ids
    compiled = line_nats(model.network.table, ids)
    monkeypatch.setattr(ngram_kernels, "TABLE", None)
    np.testing.assert_allclose(line_nats(model.network.table, ids), compiled, rtol=1e-14, atol=0.0)


def test_reading_refuses_what_does_not_fit():
    table = counted(["a b", "b a"], 3).network.table
    kernel = kernel_of(table)
    for ids, out in (([4, 99, 3], np.empty(3)), ([-1], np.empty(1))):
        with pytest.raises(IndexError, match="outside the vocabulary"):
            kernel.nats(np.array(ids, dtype=np.int32), out, 1)
    with pytest.raises(ValueError, match="differ in length"):
        kernel.nats(np.array([4], dtype=np.int32), np.empty(2), 1)
    fields = [list(field) for field in zip(*table.levels, strict=True)]
    fields[3][0] = fields[3][0][:-1]
    with pytest.raises(ValueError, match="unequal lengths"):
        ngram_kernels.TABLE(*fields, 0.0)


def test_a_damaged_table_is_refused_and_not_followed():
    table = counted(random_lines(1), 3).network.table
    chance = np.random.default_rng(1)
    ids = chance.integers(0, 9, 2000).astype(np.int32)

    def kernel(damage: slice) -> Any:
        levels = []
        for level in table.levels:
            begin = level.begin.copy()
            begin[damage] = chance.integers(-9, 2**62, len(begin[damage]))
            levels.append(level._replace(begin=begin))
        return kernel_of(type(table)(tuple(levels)))

    for damage in (slice(0, 1), slice(-1, None), slice(None)):
        with pytest.raises(ValueError, match="n-gram table is damaged"):
            kernel(damage)
    with pytest.raises(ValueError, match="damaged: continuations lie outside their level"):
        kernel(slice(1, -1)).nats(ids, np.empty(2000), 1)
    kernel(slice(0, 0)).nats(ids, np.empty(2000), 1)


@pytest.mark.parametrize("vocabulary_size", [5, 200, 300, 70_000])
def test_counting_equals_its_twin(vocabulary_size, monkeypatch):
    """Prefixes with one place and with thousands, tokens of one to three bytes."""
    chance = np.random.default_rng(vocabulary_size)
    ids = (vocabulary_size * chance.random(20_000) ** 4).astype(np.int32)
    ids[ids < END] = END  # a text has none of the other special tokens
    ids[-1] = END
    found = count_ngrams(ids, 5, vocabulary_size)
    monkeypatch.setattr(ngram_kernels, "COUNTER", None)
    for a, b in zip(found, count_ngrams(ids, 5, vocabulary_size), strict=True):
        for name in FIELDS:
            np.testing.assert_array_equal(getattr(a, name), getattr(b, name))
            assert getattr(a, name).dtype == getattr(b, name).dtype


def test_counting_refuses_what_does_not_fit():
    for ids in ([4, 5], [4, 9, END], [-1, END], []):
        with pytest.raises(ValueError, match="ids of its vocabulary"):
            ngram_kernels.COUNTER(np.array(ids, dtype=np.int32), 6)
    ids = np.array([4, 5, END], dtype=np.int32)
    counter, places = ngram_kernels.COUNTER(ids, 6), np.zeros(3, np.int32)
    with pytest.raises(ValueError, match="unequal lengths"):
        counter.by_token_before(np.zeros(5, np.int64), places)
    words, count = np.arange(6, dtype=np.int32), np.ones(6, np.int64)
    out = [np.zeros(3, np.int32), np.zeros(3, np.int64), np.zeros(3, np.int32), np.zeros(7, int)]
    with pytest.raises(ValueError, match="more or fewer places"):
        counter.level(words, count, ids, places, None, *out)
    with pytest.raises(ValueError, match="unequal lengths"):
        counter.level(words, count, ids, places, None, *out[:3], np.zeros(6, int))


def level_arrays() -> dict[str, np.ndarray]:
    """A text of three tokens and all that its bigrams are counted from."""
    return {
        "below_words": np.arange(6, dtype=np.int32),
        "below_count": np.array([0, 0, 1, 1, 1, 1]),
        "here": np.array([4, 5, END], dtype=np.int32),
        "places": np.array([0, 1, 2], dtype=np.int32),
        "above": np.zeros(3, np.int32),
        "words": np.zeros(3, np.int32),
        "count": np.zeros(3, np.int64),
        "suffix": np.zeros(3, np.int32),
        "begin": np.zeros(7, np.int64),
    }


def test_counting_follows_no_index_out_of_the_text():
    counter = ngram_kernels.COUNTER(np.array([4, 5, END], dtype=np.int32), 6)
    assert counter.level(**level_arrays()) == (3, 2)
    for name, place, wrong, message in (
        ("places", 1, 3, "a place is none of the text's"),
        ("places", 0, -1, "a place is none of the text's"),
        ("here", 2, 6, "no n-gram of the order below"),
        ("here", 0, -1, "no n-gram of the order below"),
        ("below_count", 4, 2**40, "more or fewer places"),
        ("below_count", 5, -1, "more or fewer places"),
        ("below_count", 4, 0, "more or fewer places"),
    ):
        arrays = level_arrays()
        arrays[name][place] = wrong
        with pytest.raises(ValueError, match=message):
            counter.level(**arrays)
    for wrong in (2**40, -1, 3):
        free = np.full(6, wrong)
        with pytest.raises(ValueError, match="none of the text's"):
            counter.by_token_before(free, np.zeros(3, np.int32))


def test_a_text_that_has_changed_since_is_not_followed():
    ids = np.array([4, 5, END], dtype=np.int32)
    counter = ngram_kernels.COUNTER(ids, 6)
    ids[1] = 2**30
    with pytest.raises(ValueError, match="outside the vocabulary"):
        counter.level(**level_arrays())
    with pytest.raises(ValueError, match="outside the vocabulary"):
        counter.by_token_before(np.array([0, 0, 0, 1, 1, 2]), np.zeros(3, np.int32))


def test_a_table_without_the_special_tokens_is_refused():
    words, p = np.arange(3, dtype=np.int32), np.zeros(3)
    with pytest.raises(ValueError, match="the special ones among them"):
        ngram_kernels.TABLE([words], [p], [p], [np.zeros(4, np.int64)], 0.0)


@pytest.mark.parametrize("prune", [(), (0, 1, 2)])
@pytest.mark.parametrize("smoothing", ["kn", "mkn"])
def test_smoothing_equals_its_twin(smoothing, prune, monkeypatch):
    """Prefixes with 1, 8, 128 and more n-grams: numpy adds up each in another way."""
    words = [f"w{i}" for i in range(600)]
    lines = random_lines(3, count=3000, words=words, longest=20)
    encoder = TextEncoder.build(lines, level="word")
    grams = count_ngrams(encoder.encode_lines(lines).ids, 3, len(encoder.vocabulary))
    assert {1, 8, 129} <= {*np.diff(grams[1].begin).clip(max=129).tolist()}
    settings = NgramSettings(order=3, smoothing=smoothing, prune=prune)
    found = list(estimate(grams, settings))
    monkeypatch.setattr(ngram_kernels, "INTERPOLATED", None)
    for a, b in zip(found, estimate(grams, settings), strict=True):
        np.testing.assert_allclose(a.p, b.p, rtol=1e-15, atol=0.0)
        np.testing.assert_allclose(a.back, b.back, rtol=1e-15, atol=0.0)


def test_smoothing_refuses_what_does_not_fit():
    count, begin, p = np.ones(4, np.int64), np.array([0, 1, 4]), np.zeros(4)
    discounts, left = [0.0, 0.5, 1.0, 1.5], np.zeros(2)
    for broken in ([0, 5, 4], [1, 1, 4], [0, 1, 3]):
        with pytest.raises(ValueError, match="more or fewer n-grams"):
            ngram_kernels.INTERPOLATED(
                count, count, None, np.array(broken), p, 0, discounts, p, left
            )
    with pytest.raises(ValueError, match="unequal lengths"):
        ngram_kernels.INTERPOLATED(count, count[1:], None, begin, p, 0, discounts, p, left)
    far = np.array([0, 1, 2, 4], dtype=np.int32)
    with pytest.raises(ValueError, match="out of the order below"):
        ngram_kernels.INTERPOLATED(count, count, far, begin, p, 0, discounts, p, left)
    negative = np.full(4, -5)  # no discount stands before the first
    ngram_kernels.INTERPOLATED(negative, count, None, begin, p, 0, discounts, p, left)
