import pytest

from unrolled.errors import ConfigError
from unrolled.text.tokens import UNK
from unrolled.text.word_encoder import MAX_CHARACTERS, EncodedWords, WordEncoder

SENTENCES = [["The", "rat", "ate", "the", "rat", "in", "1996"], ["THE", "rat", "1987"]]


def words_of(encoder: WordEncoder, encoded: EncodedWords) -> list[list[str]]:
    tokens = encoder.words.decode(encoded.words)
    return [tokens[end - n : end] for end, n in zip(encoded.ends, encoded.lengths, strict=True)]


def forms_of(encoder: WordEncoder, encoded: EncodedWords) -> list[str]:
    characters = encoder.characters.decode(encoded.characters)
    pairs = zip(encoded.form_ends, encoded.form_lengths, strict=True)
    return ["".join(characters[end - n : end]) for end, n in pairs]


def test_words_come_back_and_each_form_stands_once():
    encoder = WordEncoder.build(SENTENCES)
    encoded = encoder.encode(SENTENCES)
    assert words_of(encoder, encoded) == SENTENCES
    shown = forms_of(encoder, encoded)
    assert len(shown) == 8  # The rat ate the in 1996 THE 1987
    assert [shown[form] for form in encoded.forms][1:4] == ["rat", "ate", "the"]
    assert encoded.unknown == 0


def test_lower_case_words_keep_the_case_of_their_characters():
    encoder = WordEncoder.build(SENTENCES, lowercase=True, zero_digits=True)
    encoded = encoder.encode(SENTENCES)
    assert words_of(encoder, encoded) == [
        ["the", "rat", "ate", "the", "rat", "in", "0000"],
        ["the", "rat", "0000"],
    ]
    shown = forms_of(encoder, encoded)
    assert [shown[form] for form in encoded.forms[7:]] == ["T<unk><unk>", "rat", "0000"]
    counts = dict(zip(encoder.words.tokens, encoder.words.counts, strict=True))
    assert (counts["the"], counts["0000"], counts["rat"]) == (3, 2, 3)
    assert encoder.knows("tHe")
    assert not encoder.knows("cheese")


def test_rare_words_and_characters_are_unknown():
    encoder = WordEncoder.build(SENTENCES, min_count=2)
    encoded = encoder.encode([["rat", "in", "Zürich"]])
    assert words_of(encoder, encoded) == [["rat", "<unk>", "<unk>"]]
    assert forms_of(encoder, encoded)[2] == "<unk><unk>r<unk><unk>h"
    assert encoded.unknown == 2


def test_more_words_are_known_with_a_count_of_0():
    encoder = WordEncoder.build(SENTENCES, more=["cheese", "rat", "cheese", "<s>"])
    assert encoder.words.tokens[-1] == "cheese"
    assert encoder.words.counts[-1] == 0
    assert encoder.words.tokens.count("rat") == 1


def test_long_and_empty_forms():
    encoder = WordEncoder.build([["aabb"]])
    encoded = encoder.encode([["a" * 100 + "b" * 10_000, "", "ab"], []])
    shown = forms_of(encoder, encoded)
    assert shown == ["a" * 32 + "b" * 32, "<unk>", "ab"]
    assert max(encoded.form_lengths) == MAX_CHARACTERS
    assert encoded.lengths.tolist() == [3, 0]
    assert encoded.words.tolist() == [UNK, UNK, UNK]


def test_no_sentence_at_all():
    encoded = WordEncoder.build(SENTENCES).encode([])
    assert (len(encoded), encoded.unknown) == (0, 0)


def test_files_bring_it_back():
    encoder = WordEncoder.build(SENTENCES, lowercase=True)
    again = WordEncoder.from_files(encoder.files(), lowercase=True, zero_digits=False)
    assert again.files() == encoder.files()
    assert again.encode(SENTENCES).words.tolist() == encoder.encode(SENTENCES).words.tolist()


def test_a_missing_or_damaged_file_is_named():
    files = WordEncoder.build(SENTENCES).files()
    with pytest.raises(ValueError, match=r"characters\.json: this is not valid JSON"):
        WordEncoder.from_files(
            files | {"characters.json": b"{"}, lowercase=False, zero_digits=False
        )
    del files["vocab.json"]
    with pytest.raises(ValueError, match=r"vocab\.json is missing"):
        WordEncoder.from_files(files, lowercase=False, zero_digits=False)


def test_a_wrong_size_is_named():
    with pytest.raises(ConfigError, match=r"tokens\.max_size is 0, but must be at least 1"):
        WordEncoder.build(SENTENCES, max_size=0)
