import os
import re
import subprocess
import sys
from itertools import chain

import numpy as np
import pytest
from hypothesis import given
from hypothesis import settings as trials
from hypothesis import strategies as st

from unrolled.errors import ConfigError
from unrolled.text import words
from unrolled.text.tokens import (
    END,
    PAD,
    START,
    UNK,
    CharTokeniser,
    TextEncoder,
    Vocabulary,
    WordTokeniser,
)

WORLD = [
    "Hayatın anlamı nedir? İstanbul'da.",
    "زندگی می‌خواهم، سلام!",
    "日本語の文章です。「はい」",
    "family 👩‍👩‍👧‍👦 ❤️ 👍🏽!",
    "हिन्दी में लिखा है।",
    "state-of-the-art isn't (really) 3.14 % of l·l",
]
SETTINGS = [
    {"level": "char"},
    {"level": "word"},
    {"level": "word", "splitter": "unicode"},
    {"level": "bpe", "max_size": 300},
]
TEXT = st.text(st.characters(exclude_categories=["Cs"]))
GLUED = st.text(st.sampled_from("aé￭ \t.,'-_\u0301\u200c日🙂\x85"))


def collapsed(text: str) -> str:
    return " ".join(text.split())


@pytest.mark.row("A7")
@trials(deadline=None, max_examples=300)
@given(TEXT)
def test_characters_come_back(text):
    assert CharTokeniser().join(CharTokeniser().split(text)) == text


@pytest.mark.row("A7")
@trials(deadline=None, max_examples=500)
@given(TEXT | GLUED)
def test_words_come_back_but_for_white_space(text):
    for splitter in ("space", "unicode"):
        tokeniser = WordTokeniser(splitter)
        tokens = tokeniser.split(text)
        assert tokeniser.join(tokens) == collapsed(text)
        assert all(token.split() == [token] for token in tokens)


@pytest.mark.parametrize(
    ("text", "tokens"),
    [
        ("Hello, world!", ["Hello", "￭,", "world", "￭!"]),
        ('He said: "no" .', ["He", "said", "￭:", '"', "￭no", '￭"', "."]),
        ("isn't state-of-the-art", ["isn't", "state-of-the-art"]),
        ("rock 'n' roll- ", ["rock", "'", "￭n", "￭'", "roll", "￭-"]),
        ("a--b", ["a", "￭-", "￭-", "￭b"]),
        ("3.14 x_1", ["3", "￭.", "￭14", "x_1"]),
        ("می‌خواهم", ["می‌خواهم"]),
        ("हिन्दी है।", ["हिन्दी", "है", "￭।"]),
        ("e\u0301te\u0301", ["e\u0301te\u0301"]),
        ("￭ a￭b ￭c ￭￭", ["￭", "a", "￭￭", "￭b", "￭", "￭c", "￭", "￭￭"]),
        ("", []),
        (" \t\u3000", []),
    ],
)
def test_unicode_words(text, tokens):
    tokeniser = WordTokeniser("unicode")
    assert tokeniser.split(text) == tokens
    assert tokeniser.join(tokens) == collapsed(text)


def test_a_text_may_begin_in_the_middle_of_a_word():
    assert WordTokeniser("unicode").join(["￭!", "ok"]) == "! ok"


def test_words_in_lower_case():
    assert WordTokeniser(lowercase=True).split("The CAT") == ["the", "cat"]
    assert WordTokeniser("unicode", lowercase=True).split("The CAT.") == ["the", "cat", "￭."]


@pytest.mark.row("A1", "A7")
@pytest.mark.parametrize("settings", SETTINGS)
def test_text_of_the_world_comes_back(settings):
    encoder = TextEncoder.build(WORLD, **settings)
    for line in WORLD:
        ids = encoder.encode(line)
        assert ids.dtype == np.int32
        assert ids.min() > END
        assert encoder.decode(ids) == line
    encoded = encoder.encode_lines(WORLD)
    assert encoder.decode(encoded.ids) == "".join(f"{line}\n" for line in WORLD)


@pytest.mark.parametrize("settings", SETTINGS)
def test_lines_are_encoded_as_each_by_itself(settings, monkeypatch):
    monkeypatch.setattr(words, "CHUNK", 40)
    lines = [*WORLD, "", "unseen Ω words\nand a line end", "", "x"]
    encoder = TextEncoder.build(WORLD, **settings)
    encoded = encoder.encode_lines(iter(lines))
    expected = [[*encoder.encode(line).tolist(), END] for line in lines]
    assert encoded.ids.tolist() == list(chain.from_iterable(expected))
    assert encoded.lengths.tolist() == [len(row) for row in expected]
    assert encoded.starts.tolist() == [0, *np.cumsum(encoded.lengths)[:-1].tolist()]
    assert (encoded.ids.dtype, encoded.lengths.dtype) == (np.int32, np.int64)
    assert len(encoded) == len(lines)
    assert encoded.characters == sum(len(line) + 1 for line in lines)
    assert encoded.unknown == sum(row.count(UNK) for row in expected)
    assert (encoded.unknown > 0) == (settings["level"] != "bpe")


@pytest.mark.parametrize("settings", SETTINGS)
def test_no_lines(settings):
    encoder = TextEncoder.build([], **settings)
    encoded = encoder.encode_lines([])
    assert (len(encoded), encoded.ids.tolist(), encoded.characters) == (0, [], 0)
    assert encoder.encode("").tolist() == []
    assert encoder.decode([]) == ""


@pytest.mark.parametrize("settings", SETTINGS)
def test_counts_are_those_of_the_encoded_text(settings):
    encoder = TextEncoder.build(WORLD, **settings)
    encoded = encoder.encode_lines(WORLD)
    assert np.bincount(encoded.ids, minlength=len(encoder.vocabulary)).tolist() == list(
        encoder.vocabulary.counts
    )


@pytest.mark.parametrize("settings", SETTINGS[:3])
def test_counts_with_rare_tokens_left_out(settings):
    encoder = TextEncoder.build(WORLD, **settings, min_count=2, max_size=5)
    encoded = encoder.encode_lines(WORLD)
    counts = np.bincount(encoded.ids, minlength=len(encoder.vocabulary)).tolist()
    assert counts == list(encoder.vocabulary.counts)
    assert len(encoder.vocabulary) <= 9
    assert encoded.unknown == encoder.vocabulary.counts[UNK] > 0


@pytest.mark.parametrize("settings", SETTINGS)
def test_lower_case_at_every_level(settings):
    encoder = TextEncoder.build(["The CAT"], lowercase=True, **settings)
    assert encoder.decode(encoder.encode("THE cat")) == "the cat"
    assert UNK not in encoder.encode("tHe")
    encoded = encoder.encode_lines(["İT"])
    assert encoded.characters == 3  # as given; in lower case it is one longer


def test_an_iterator_of_lines_will_do():
    for settings in SETTINGS:
        a, b = TextEncoder.build(iter(WORLD), **settings), TextEncoder.build(WORLD, **settings)
        assert a.files() == b.files()


def test_special_ids_in_decoding():
    encoder = TextEncoder.build(["the cat"], level="word")
    the, cat = encoder.encode("the cat")
    ids = [START, the, UNK, cat, END, PAD, the, END]
    assert encoder.decode(ids) == "the <unk> cat\nthe\n"
    chars = TextEncoder.build(["ab"], level="char")
    assert chars.decode([START, *chars.encode("a?b"), END, PAD]) == "a<unk>b\n"
    pieces = TextEncoder.build(["ab"], level="bpe", max_size=256)
    assert pieces.decode([START, *pieces.encode("a"), UNK, END, PAD]) == "a<unk>\n"


@pytest.mark.parametrize("settings", SETTINGS)
def test_text_never_gives_control_ids(settings):
    encoder = TextEncoder.build(["a <s> b </s> <pad> <unk>"], **settings)
    assert not {PAD, START, END} & set(encoder.encode("<s> a </s> <pad> <unk>").tolist())


def test_unknown_word_is_the_unknown_token():
    encoder = TextEncoder.build(["a <unk> b <unk>"], level="word")
    assert encoder.vocabulary.counts[UNK] == 2
    assert encoder.encode("<unk> <s> zzz").tolist() == [UNK] * 3


@pytest.mark.row("A1")
@pytest.mark.parametrize("settings", SETTINGS)
def test_files_round_trip(settings):
    encoder = TextEncoder.build(WORLD, **settings)
    files = {**encoder.files(), "README.md": b"another file of the folder"}
    names = {"vocab.json", "tokenizer.json"} if settings["level"] == "bpe" else {"vocab.json"}
    assert set(encoder.files()) == names
    again = TextEncoder.from_files(
        files, level=encoder.level, splitter=encoder.splitter, lowercase=encoder.lowercase
    )
    assert again.files() == encoder.files()
    assert (again.level, again.splitter, again.lowercase) == (
        settings["level"],
        settings.get("splitter", "space"),
        False,
    )
    for line in WORLD:
        assert again.encode(line).tolist() == encoder.encode(line).tolist()


def vocabulary_file(*tokens: str) -> bytes:
    return Vocabulary.build(dict.fromkeys(tokens, 1)).to_json().encode()


@pytest.mark.parametrize(
    ("files", "level", "reason"),
    [
        ({}, "char", "vocab.json is missing"),
        ({"vocab.json": b"\xff"}, "char", "vocab.json: 'utf-8' codec can't decode"),
        ({"vocab.json": b"{"}, "char", "vocab.json: this is not valid JSON"),
        ({"vocab.json": vocabulary_file("ab")}, "char", "has not one character"),
        ({"vocab.json": vocabulary_file("")}, "char", "has not one character"),
        ({"vocab.json": vocabulary_file("a b")}, "word", "is empty or holds white space"),
        ({"vocab.json": vocabulary_file("")}, "word", "is empty or holds white space"),
        ({"vocab.json": vocabulary_file("a")}, "bpe", "tokenizer.json is missing"),
        (
            {"vocab.json": vocabulary_file("a"), "tokenizer.json": b"[]"},
            "bpe",
            "tokenizer.json: the",
        ),
        (
            {"vocab.json": vocabulary_file("a")},
            "wrod",
            "tokens.level is 'wrod', but must be one of",
        ),
    ],
)
def test_wrong_files_are_refused_with_the_reason(files, level, reason):
    with pytest.raises(ValueError, match=re.escape(reason)):
        TextEncoder.from_files(files, level=level, splitter="space", lowercase=False)


def test_the_two_files_must_belong_together():
    one = TextEncoder.build(["aa aa"], level="bpe", max_size=300)
    other = TextEncoder.build(["bb bb"], level="bpe", max_size=300)
    files = {**one.files(), "vocab.json": other.files()["vocab.json"]}
    with pytest.raises(ValueError, match="tokens are not those of the byte pair encoding"):
        TextEncoder.from_files(files, level="bpe", splitter="space", lowercase=False)


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"level": "wrd"}, r"tokens\.level is 'wrd', but must be one of bpe, char, word\. Did you"),
        ({"level": "word", "splitter": "x"}, r"tokens\.splitter is 'x', but must be one of space,"),
        ({"level": "bpe", "max_size": 0}, r"tokens\.max_size is 0, but with tokens\.level = bpe"),
        ({"level": "char", "max_size": 0}, r"tokens\.max_size is 0, but must be at least 1\."),
    ],
)
def test_wrong_settings(wrong, message):
    with pytest.raises(ConfigError, match=message):
        TextEncoder.build(WORLD, **wrong)


BUILD = """
import hashlib, sys
from unrolled.text.tokens import TextEncoder
lines = [f"word{i % 97} und{i % 31} {i}" for i in range(2000)]
digest = hashlib.sha256()
for level in ("char", "word", "bpe"):
    for name, data in TextEncoder.build(lines, level=level, max_size=400).files().items():
        digest.update(name.encode() + data)
print(digest.hexdigest())
"""


@pytest.mark.row("A1")
def test_the_same_text_gives_the_same_bytes_in_every_process():
    digests = set()
    for seed in ("0", "1", "random"):
        done = subprocess.run(
            [sys.executable, "-c", BUILD],
            env={**os.environ, "PYTHONHASHSEED": seed},
            capture_output=True,
            check=True,
        )
        digests.add(done.stdout)
    assert len(digests) == 1


def test_byte_pairs_are_shown_as_their_text():
    encoder = TextEncoder.build(["schläft gut", "schläft"] * 20, level="bpe", max_size=300)
    shown = encoder.shown(encoder.encode_lines(["schläft gut"]).ids)
    assert "".join(shown) == "schläft gut</s>"
    words = TextEncoder.build(["a b"], level="word")
    assert words.shown(words.encode("a b Q")) == ["a", "b", "<unk>"]
