from collections import Counter

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from unrolled.text.tokens import PAD
from unrolled.text.word_batch import WordBatch, WordBatches
from unrolled.text.word_encoder import WordEncoder

SENTENCES = st.lists(
    st.lists(st.text("abC", min_size=1, max_size=4), max_size=12), min_size=1, max_size=40
)


def sentences_of(encoder: WordEncoder, batch: WordBatch) -> list[tuple[str, ...]]:
    """Each sentence read back from the characters of its forms."""
    spelled = [
        "".join(encoder.characters.decode(row[:length]))
        for row, length in zip(batch.forms.numpy(), batch.form_lengths.tolist(), strict=True)
    ]
    rows = zip(batch.form_index.tolist(), batch.lengths.tolist(), strict=True)
    return [tuple(spelled[form] for form in row[:length]) for row, length in rows]


@given(SENTENCES, st.integers(1, 60), st.integers(0, 3))
def test_every_word_and_its_characters_are_in_one_batch(sentences, budget, epoch):
    encoder = WordEncoder.build([*sentences, ["aa", "bb", "CC"]])
    data = WordBatches(encoder.encode(sentences), batch_tokens=budget)
    seen: list[tuple[str, ...]] = []
    for batch in data.epoch(5, epoch):
        read = sentences_of(encoder, batch)
        words = [
            tuple(encoder.words.decode(row[:length]))
            for row, length in zip(batch.words.numpy(), batch.lengths.tolist(), strict=True)
        ]
        assert read == words
        seen += read
        assert batch.words.numel() <= budget or len(batch.lengths) == 1
        distinct = {form for sentence in read for form in sentence}
        assert len(batch.forms) == len(distinct)  # each form once
        assert bool((batch.words[~batch.mask] == PAD).all())
        assert bool((batch.form_index[~batch.mask] == 0).all())
        assert torch.equal(batch.mask.sum(1), batch.lengths)
    assert Counter(seen) == Counter(map(tuple, sentences))


def test_order_is_a_pure_function_of_seed_and_epoch():
    sentences = [["a"] * (1 + n % 7) for n in range(200)]
    encoder = WordEncoder.build(sentences)
    data = WordBatches(encoder.encode(sentences), batch_tokens=20)
    first, again = data.epoch(1, 2), data.epoch(1, 2)
    for index in reversed(range(len(first))):
        assert torch.equal(first[index].words, again[index].words)
    lengths = [[len(batch.lengths) for batch in data.epoch(1, epoch)] for epoch in (2, 3)]
    assert lengths[0] != lengths[1]


def test_a_batch_in_numbers():
    encoder = WordEncoder.build([["ab", "b", "ab"], ["b"], ["ab"]])
    data = WordBatches(encoder.encode([["b", "ab", "b"], ["ab"]]), batch_tokens=100)
    batch = data.build(np.array([1, 0]))
    a, b = encoder.characters.encode("ab").tolist()
    ab_word, b_word = encoder.words.encode(["ab", "b"]).tolist()
    assert batch.words.tolist() == [[ab_word, PAD, PAD], [b_word, ab_word, b_word]]
    assert batch.forms.tolist() == [[b, PAD], [a, b]]
    assert batch.form_lengths.tolist() == [1, 2]
    assert batch.form_index.tolist() == [[1, 0, 0], [0, 1, 0]]
    assert data.padding_share(0, 0) == pytest.approx(2 / 6)


def test_a_batch_of_empty_sentences_has_no_forms():
    encoder = WordEncoder.build([["ab"]])
    batch = WordBatches(encoder.encode([[], []]), batch_tokens=9).build(np.array([0, 1]))
    assert batch.words.shape == (2, 0)
    assert len(batch.forms) == 0
