import copy
import json
import random
import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tokenizers import Tokenizer

from unrolled.errors import ConfigError, DataError
from unrolled.text import bpe
from unrolled.text.bpe import BpeTokeniser, byte_symbols, panic_guard

LINES = ["the cat sat on the mat", "the cat, the hat", "hayatın anlamı nedir", "日本語 日本"] * 3
TRAINED = BpeTokeniser.train(LINES, 300)
GOOD = json.loads(TRAINED.to_json())


def test_training_learns_the_commonest_pieces():
    assert len(TRAINED.tokens) <= 300
    assert set(TRAINED.tokens[:256]) == byte_symbols()
    assert "Ġthe" in TRAINED.tokens
    assert TRAINED.split("the cat") == ["the", "Ġcat"]


def test_the_byte_symbols_are_the_librarys():
    from tokenizers.pre_tokenizers import ByteLevel

    assert byte_symbols() == set(ByteLevel.alphabet())


def test_training_stops_at_pairs_that_are_too_rare():
    assert len(BpeTokeniser.train(["ab ab cd"], 1000).tokens) == 256 + 1
    assert len(BpeTokeniser.train(LINES, 1000, min_count=10_000).tokens) == 256


@settings(deadline=None, max_examples=300)
@given(st.text(st.characters(exclude_categories=["Cs"])))
def test_any_text_comes_back(text):
    assert TRAINED.join(TRAINED.split(text)) == text


def test_ids_are_places_in_tokens():
    (ids,) = TRAINED.ids(["the cat zzz"])
    assert [TRAINED.tokens[i] for i in ids] == TRAINED.split("the cat zzz")


def test_json_round_trip_and_the_library_reads_it_too():
    again = BpeTokeniser.from_json(TRAINED.to_json())
    assert again.to_json() == TRAINED.to_json()
    theirs = Tokenizer.from_str(TRAINED.to_json())
    for line in [*LINES, "unseen ünseen 🙂\n\t x"]:
        assert again.split(line) == TRAINED.split(line) == theirs.encode(line).tokens


def test_half_a_character_is_shown_as_such():
    assert TRAINED.join([TRAINED.split("é")[0]]) == "�"


@pytest.mark.parametrize("size", [0, 255, 5_000_001])
def test_size_outside(size):
    with pytest.raises(ConfigError) as caught:
        BpeTokeniser.train(LINES, size)
    assert str(caught.value) == (
        f"tokens.max_size is {size}, but with tokens.level = bpe it must be from 256 (one token "
        "for each byte) to 5000000."
    )


def test_half_a_surrogate_pair_is_no_text():
    for attempt in (
        lambda: TRAINED.split("ab\ud800"),
        lambda: TRAINED.ids(["ok", "ab\ud800"]),
        lambda: BpeTokeniser.train(["ab\ud800"], 300),
    ):
        with pytest.raises(DataError, match=r"<text>, column 3: the character U\+D800 is half of"):
            attempt()


def test_a_panic_of_the_library_becomes_a_value_error():
    hostile = {
        **GOOD,
        "truncation": {
            "direction": "Right",
            "max_length": 1,
            "strategy": "LongestFirst",
            "stride": 5,
        },
    }
    with (
        pytest.raises(ValueError, match="the tokenizers library refused: `stride` must"),
        panic_guard(),
    ):
        Tokenizer.from_str(json.dumps(hostile)).encode("aaaa bbbb")


def test_the_guard_lets_interrupts_through():
    with pytest.raises(KeyboardInterrupt), panic_guard():
        raise KeyboardInterrupt


def edited(edit) -> str:
    value = copy.deepcopy(GOOD)
    edit(value)
    return json.dumps(value)


def swap_in_vocab(value, old, new):
    vocab = value["model"]["vocab"]
    vocab[new] = vocab.pop(old)


HOSTILE = [
    (lambda v: v.pop("decoder"), "the keys must be"),
    (lambda v: v.update(extra=1), "the keys must be"),
    (lambda v: v.update(model=[]), "the model must have the keys"),
    (lambda v: v["model"].pop("dropout"), "the model must have the keys"),
    (lambda v: v["model"].update(extra=1), "the model must have the keys"),
    (lambda v: v["model"].update(type="WordPiece"), "type must be BPE, but is 'WordPiece'"),
    (lambda v: v["model"].update(dropout=0.5), "dropout must be None, but is 0.5"),
    (lambda v: v["model"].update(unk_token="x"), "unk_token must be None"),
    (lambda v: v["model"].update(fuse_unk=0), "fuse_unk must be False, but is 0"),
    (lambda v: v.update(version="2.0"), "version must be 1.0"),
    (lambda v: v.update(normalizer={"type": "Lowercase"}), "normalizer must be None"),
    (lambda v: v.update(added_tokens=[{"id": 0}]), "added_tokens must be []"),
    (lambda v: v.update(truncation={"max_length": 1, "stride": 5}), "truncation must be None"),
    (lambda v: v.update(pre_tokenizer=None), "pre_tokenizer must be {'type': 'ByteLevel'"),
    (lambda v: v["pre_tokenizer"].update(use_regex=False), "pre_tokenizer must be"),
    (lambda v: v["decoder"].update(type="Fuse"), "decoder must be"),
    (lambda v: v["model"].update(vocab=[]), "must have 256 to 5000000 tokens, but is list"),
    (lambda v: v["model"].update(vocab={"a": 0}), "must have 256 to 5000000 tokens, but is 1"),
    (lambda v: v["model"]["vocab"].update(a=-1), "ids must be 0 to"),
    (lambda v: v["model"]["vocab"].update(a=2**64), "ids must be 0 to"),
    (lambda v: v["model"]["vocab"].update(a=True), "ids must be 0 to"),
    (lambda v: v["model"]["vocab"].update(a=[]), "ids must be 0 to"),
    (lambda v: v["model"]["vocab"].update(a=v["model"]["vocab"]["b"]), "ids must be 0 to"),
    (lambda v: swap_in_vocab(v, "a", "aaa"), "lacks the byte symbol 'a'"),
    (lambda v: v["model"]["vocab"].update({"": len(v["model"]["vocab"])}), "token '' is not"),
    (lambda v: v["model"]["vocab"].update({"日": len(v["model"]["vocab"])}), "token '日' is not"),
    (lambda v: v["model"].update(merges={}), "merges must be a list of at most"),
    (
        lambda v: v["model"]["merges"].append("a b"),
        "a merge must be a pair of strings, but is 'a b'",
    ),
    (lambda v: v["model"]["merges"].append(["a"]), "a merge must be a pair of strings"),
    (lambda v: v["model"]["merges"].append(["a", 1]), "a merge must be a pair of strings"),
    (lambda v: v["model"]["merges"].append(["z", "z"]), "the merge ['z', 'z'] uses or makes"),
    (lambda v: v["model"]["merges"].append(["", "a"]), "the merge ['', 'a'] uses or makes"),
    (lambda v: v["model"]["merges"].append(v["model"]["merges"][0]), "a merge appears twice"),
]


@pytest.mark.parametrize(("edit", "reason"), HOSTILE)
def test_hostile_files_are_refused_with_the_reason(edit, reason):
    with pytest.raises(ValueError, match=re.escape(reason)) as caught:
        BpeTokeniser.from_json(edited(edit))
    assert len(str(caught.value)) < 600


def test_sizes_are_bounded(monkeypatch):
    monkeypatch.setattr(bpe, "MAX_MERGES", 3)
    with pytest.raises(ValueError, match="the merges must be a list of at most 3 pairs"):
        BpeTokeniser.from_json(TRAINED.to_json())
    monkeypatch.setattr(bpe, "MAX_SIZE", 260)
    with pytest.raises(ValueError, match="the vocabulary must have 256 to 260 tokens, but is"):
        BpeTokeniser.from_json(TRAINED.to_json())


def test_damaged_files_give_a_tokeniser_or_a_value_error():
    source, text = random.Random(0), TRAINED.to_json()
    for _ in range(400):
        place, size = source.randrange(len(text)), source.randrange(4)
        broken = text[:place] + source.choice(['"', "0", "}", "[", "", "é"]) + text[place + size :]
        try:
            loaded = BpeTokeniser.from_json(broken)
        except ValueError:
            continue
        assert loaded.join(loaded.split("the cat 日")) == "the cat 日"
