import json
import re

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from unrolled.errors import ConfigError
from unrolled.text import vocabulary as module
from unrolled.text.tokens import END, PAD, SPECIALS, START, UNK, TextEncoder, Vocabulary, one_hot

COUNTS = {"the": 5, "cat": 2, "a": 2, "mat": 1}


@pytest.mark.row("A6")
def test_special_tokens_have_fixed_ids():
    assert (PAD, UNK, START, END) == (0, 1, 2, 3)
    assert Vocabulary.build({}).tokens == SPECIALS == ("<pad>", "<unk>", "<s>", "</s>")


def test_order_is_by_count_then_by_token():
    built = Vocabulary.build(COUNTS, ends=7)
    assert built.tokens[4:] == ("the", "a", "cat", "mat")
    assert built.counts == (0, 0, 0, 7, 5, 2, 2, 1)


def test_order_of_counting_does_not_matter():
    backwards = dict(reversed(COUNTS.items()))
    assert Vocabulary.build(COUNTS).to_json() == Vocabulary.build(backwards).to_json()


@pytest.mark.parametrize(
    ("limits", "kept", "unknown"),
    [
        ({"min_count": 2}, ("the", "a", "cat"), 1),
        ({"min_count": 6}, (), 10),
        ({"max_size": 1}, ("the",), 5),
        ({"max_size": 2}, ("the", "a"), 3),
        ({"max_size": 9}, ("the", "a", "cat", "mat"), 0),
        ({"min_count": 2, "max_size": 2}, ("the", "a"), 3),
    ],
)
def test_what_is_left_out_counts_as_unknown(limits, kept, unknown):
    built = Vocabulary.build(COUNTS, **limits)
    assert built.tokens[4:] == kept
    assert built.counts[UNK] == unknown
    assert sum(built.counts) == sum(COUNTS.values())


def test_literal_special_tokens_in_a_text():
    built = Vocabulary.build({"a": 1, "<unk>": 3, "<s>": 2, "</s>": 1, "<pad>": 1}, ends=2)
    assert built.tokens == (*SPECIALS, "a")
    assert built.counts == (0, 7, 0, 2, 1)
    assert built.encode(["<unk>", "<pad>", "<s>", "</s>", "a"]).tolist() == [UNK] * 4 + [4]
    assert "<unk>" in built
    assert not any(control in built for control in ("<pad>", "<s>", "</s>"))


def test_encode_and_decode():
    built = Vocabulary.build(COUNTS)
    ids = built.encode(["the", "cat", "flew"])
    assert ids.dtype == np.int32
    assert ids.tolist() == [4, 6, UNK]
    assert built.decode(ids) == ["the", "cat", "<unk>"]
    assert built.decode(range(len(built))) == list(built.tokens)
    assert built.encode([]).shape == (0,)
    assert ("cat" in built, "dog" in built, len(built)) == (True, False, 8)


@pytest.mark.parametrize("wrong", [-1, 8])
def test_decode_refuses_ids_outside(wrong):
    with pytest.raises(ValueError, match=rf"token id {wrong} is outside 0\.\.7"):
        Vocabulary.build(COUNTS).decode([4, wrong])


@pytest.mark.parametrize("setting", ["min_count", "max_size"])
def test_limits_below_one(setting):
    with pytest.raises(ConfigError, match=rf"tokens\.{setting} is 0, but must be at least 1\."):
        Vocabulary.build(COUNTS, **{setting: 0})


def test_a_vocabulary_that_could_not_be_loaded_is_not_built(monkeypatch):
    monkeypatch.setattr(module, "MAX_SIZE", 3)
    with pytest.raises(ConfigError, match=r"the text has 4 different tokens, but at most 3 are"):
        Vocabulary.build(COUNTS)
    assert len(Vocabulary.build(COUNTS, max_size=3)) == 7


@settings(deadline=None, max_examples=200)
@given(st.dictionaries(st.text(st.characters(), min_size=1, max_size=1), st.integers(1, 2**50)))
def test_json_round_trip(counts):
    built = Vocabulary.build(counts, ends=3)
    text = built.to_json()
    text.encode("utf-8")  # even half a surrogate pair
    again = Vocabulary.from_json(text)
    assert (again.tokens, again.counts) == (built.tokens, built.counts)
    assert again.to_json() == text


GOOD = {"tokens": [*SPECIALS, "a", "b"], "counts": [0, 0, 0, 2, 3, 1]}


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "this is not valid JSON"),
        ('{"tokens": [', "this is not valid JSON"),
        ("[" * 100_000, "this is not valid JSON"),
        ('{"tokens": [], "tokens": [], "counts": []}', "a key appears twice"),
        ("[]", "the keys must be ['counts', 'tokens'], but found 'list'"),
        ('{"tokens": []}', "the keys must be ['counts', 'tokens'], but found ['tokens']"),
        (json.dumps({**GOOD, "x": 1}), "the keys must be ['counts', 'tokens'], but found"),
        (json.dumps({**GOOD, "tokens": "abcdef"}), "the tokens must be a list of strings"),
        (json.dumps({**GOOD, "tokens": [*SPECIALS, 1, 2]}), "the tokens must be a list of strings"),
        (json.dumps({**GOOD, "tokens": list("abcdef")}), "the first tokens must be ('<pad>'"),
        (json.dumps({**GOOD, "tokens": [*SPECIALS, "a", "a"]}), "the token 'a' appears twice"),
        (json.dumps({**GOOD, "tokens": [*SPECIALS, "a", "<s>"]}), "the token '<s>' appears twice"),
        (json.dumps({**GOOD, "counts": [0] * 5}), "one count for each of 6 tokens, but found 5"),
        (json.dumps({**GOOD, "counts": 6}), "one count for each of 6 tokens, but found int"),
        (json.dumps({**GOOD, "counts": [0, 0, 0, 2, -3, 1]}), "a count is -3, but must be a whole"),
        (json.dumps({**GOOD, "counts": [0, 0, 0, 2, 2**63, 1]}), "a count is 9223372036854775808,"),
        (json.dumps({**GOOD, "counts": [0, 0, 0, 2, 1.5, 1]}), "a count is 1.5, but must be a"),
        (json.dumps({**GOOD, "counts": [0, 0, 0, True, 1, 1]}), "a count is True, but must be a"),
        (json.dumps({**GOOD, "counts": [0, 0, 0, float("nan"), 1, 1]}), "a count is nan, but"),
        ('{"tokens": [], "counts": [' + "9" * 10_000 + "]}", "this is not valid JSON"),
    ],
)
def test_hostile_files_are_refused_with_the_reason(text, reason):
    with pytest.raises(ValueError, match=re.escape(reason)) as caught:
        Vocabulary.from_json(text)
    assert len(str(caught.value)) < 400


def test_too_many_tokens_are_refused(monkeypatch):
    monkeypatch.setattr(module, "MAX_SIZE", 1)
    with pytest.raises(ValueError, match="there are 6 tokens, but at most 1 are allowed"):
        Vocabulary.from_json(json.dumps(GOOD))


@pytest.mark.row("A2")
def test_one_hot_rows_of_the_notes():
    words = ["i", "we", "go", "school"]
    assert one_hot(words.index("we"), 4).tolist() == [0, 1, 0, 0]
    sentence = [words.index(word) for word in ("i", "go", "school")]
    assert one_hot(sentence, 4).tolist() == [[1, 0, 0, 0], [0, 0, 1, 0], [0, 0, 0, 1]]
    sentences = ["I want a glass of orange juice", "I want a glass of apple juice"]
    built = TextEncoder.build(sentences, level="word").vocabulary
    assert set(built.tokens[len(SPECIALS) :]) == set(" ".join(sentences).split())
    assert len(built) - len(SPECIALS) == 8


def test_one_hot_refuses_ids_outside():
    with pytest.raises(ValueError, match=r"token id 4 is outside 0\.\.3"):
        one_hot([1, 4], 4)


@pytest.mark.row("A3")
@settings(deadline=None)
@given(st.integers(2, 300).flatmap(lambda n: st.tuples(st.just(n), *[st.integers(0, n - 1)] * 2)))
def test_distinct_one_hots_are_all_equally_far_apart(sizes):
    size, a, b = sizes
    x, y = one_hot([a, b], size).astype(np.float64)
    assert x @ y == (a == b)
    assert np.linalg.norm(x - y) == (0.0 if a == b else np.sqrt(2.0))
