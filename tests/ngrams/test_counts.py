import numpy as np
import pytest
from ngrams import ngram_counts, random_lines

from unrolled.ngrams import counts as module
from unrolled.ngrams import kernels as ngram_kernels
from unrolled.ngrams.counts import count_ngrams, spans
from unrolled.ngrams.scratch import Scratch
from unrolled.text.tokens import END, START, TextEncoder

pytestmark = pytest.mark.arithmetic

LINE = "the students opened their"
FIELDS = ("words", "begin", "suffix", "count")
needs_kernel = pytest.mark.skipif(ngram_kernels.COUNTER is None, reason="nothing is compiled here")


@pytest.fixture(params=[pytest.param("kernel", marks=needs_kernel), "numpy"], autouse=True)
def way(request, monkeypatch):
    """All that is said of counting holds for the kernel and for its twin."""
    if request.param == "numpy":
        monkeypatch.setattr(ngram_kernels, "COUNTER", None)
    return request.param


def encoded(lines):
    encoder = TextEncoder.build(lines, level="word")
    return encoder.vocabulary, encoder.encode_lines(lines).ids


def as_words(grams, vocabulary):
    """N-grams of all orders with their counts, as tuples of words."""
    found, rows = {}, [()]
    for level in grams:
        parents = np.repeat(np.arange(len(level.begin) - 1), np.diff(level.begin)).tolist()
        words = vocabulary.decode(level.words)
        rows = [(*rows[p], w) for p, w in zip(parents, words, strict=True)]
        assert len(set(rows)) == len(rows)
        found |= {r: n for r, n in zip(rows, level.count.tolist(), strict=True) if n}
    return found


@pytest.mark.row("B3")
def test_a_sentence_has_one_n_gram_less_of_each_order():
    """4 unigrams, 3 bigrams, 2 trigrams, 1 four-gram, when <s> and </s> are left out."""
    vocabulary, ids = encoded([LINE])
    found = as_words(count_ngrams(ids, 4, len(vocabulary)), vocabulary)
    inside = [gram for gram in found if "<s>" not in gram and "</s>" not in gram]
    assert [sum(len(gram) == k for gram in inside) for k in (1, 2, 3, 4)] == [4, 3, 2, 1]


@pytest.mark.parametrize("order", range(1, 8))
@pytest.mark.parametrize("seed", range(3))
def test_counts_are_those_of_a_dictionary(order, seed):
    lines = random_lines(seed)
    vocabulary, ids = encoded(lines)
    found = as_words(count_ngrams(ids, order, len(vocabulary)), vocabulary)
    assert found == dict(ngram_counts(lines, order))


def test_a_suffix_is_the_same_n_gram_without_its_first_token():
    vocabulary, ids = encoded(random_lines(1))
    grams = count_ngrams(ids, 4, len(vocabulary))
    rows = [()]
    for below, level in zip([None, *grams], grams, strict=False):
        parents = np.repeat(np.arange(len(level.begin) - 1), np.diff(level.begin)).tolist()
        longer = [(*rows[p], w) for p, w in zip(parents, level.words.tolist(), strict=True)]
        if below is not None:
            assert [rows[s] for s in level.suffix.tolist()] == [row[1:] for row in longer]
        rows = longer


@pytest.mark.parametrize("memory", [1, 3000])
def test_blocks_of_any_size_give_the_same(memory, tmp_path, monkeypatch):
    vocabulary, ids = encoded(random_lines(2, count=300))
    whole = count_ngrams(ids, 5, len(vocabulary))
    monkeypatch.setattr(module, "BLOCK", 64)
    pieces = count_ngrams(ids, 5, len(vocabulary), Scratch(memory, tmp_path))
    for a, b in zip(whole, pieces, strict=True):
        for name in FIELDS:
            np.testing.assert_array_equal(getattr(a, name), getattr(b, name))
    assert not list(tmp_path.iterdir())


def test_the_order_may_be_longer_than_any_line():
    vocabulary, ids = encoded(["a b", "", "c"])
    grams = count_ngrams(ids, 7, len(vocabulary))
    assert [len(level) for level in grams[1:]] == [6, 3, 1, 0, 0, 0]


def test_empty_lines_are_a_start_and_an_end():
    vocabulary, ids = encoded(["", "a", ""])
    bigrams = count_ngrams(ids, 2, len(vocabulary))[1]
    openings = slice(*bigrams.begin[[START, START + 1]].tolist())
    pairs = zip(bigrams.words[openings].tolist(), bigrams.count[openings].tolist(), strict=True)
    assert dict(pairs) == {END: 2, 4: 1}


def test_a_large_vocabulary_and_long_groups_fit_into_the_keys():
    """Five million words, and one that comes more often than a block holds."""
    rare, often = 4, 5_000_003
    ids = np.where(np.random.default_rng(1).random(1_200_000) < 0.05, rare, often).astype(np.int32)
    ids[-1] = END
    bigrams = count_ngrams(ids, 2, 5_000_004)[1]
    for first in (rare, often):
        here = slice(*bigrams.begin[[first, first + 1]].tolist())
        followers = ids[1:][ids[:-1] == first]
        words, counts = np.unique(followers, return_counts=True)
        assert bigrams.words[here].tolist() == words.tolist()
        assert bigrams.count[here].tolist() == counts.tolist()
    assert np.count_nonzero(ids == often) > module.BLOCK


@pytest.mark.parametrize("at_once", [1, 3, 100])
def test_spans_cover_all_groups(at_once):
    begin = np.array([0, 0, 2, 2, 9, 10, 10])
    found = list(spans(begin, at_once))
    assert [first for first, _ in found] == [0, *(last for _, last in found[:-1])]
    assert found[-1][1] == 6
    assert all(begin[b] - begin[a] <= at_once or b - a == 1 for a, b in found)
