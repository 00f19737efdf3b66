import json

import pytest

from unrolled.errors import DataError
from unrolled.text.conll import TaggedSentence, read_tagged
from unrolled.text.tagset import (
    TagSet,
    check_overlap,
    check_tag_set,
    count_unseen,
    inner_tags,
    span_scheme,
)
from unrolled.text.word_encoder import WordEncoder

SPANS = "a I-X\nb I-X\nc O\n\na I-X\na B-X\nd I-Y\n"
TAGS = "run V\nrun N\nrun N\nthe D\n\nold A\nthe D\nold N\n"


def read(text: str) -> list[TaggedSentence]:
    return read_tagged(text.split("\n"), source="in.txt")


def tag_set(text: str, scheme: str | None) -> tuple[TagSet, WordEncoder]:
    sentences = read(text)
    encoder = WordEncoder.build([sentence.words for sentence in sentences])
    return TagSet.build(sentences, encoder, scheme), encoder


def test_spans_are_iobes_inside_and_as_read_outside():
    tags, _ = tag_set(SPANS, "iob1")
    assert tags.tags == ("B-X", "E-X", "O", "S-X", "S-Y")
    ids = tags.encode(read(SPANS))
    assert [tags.tags[i] for i in ids] == ["B-X", "E-X", "O", "S-X", "S-X", "S-Y"]
    assert tags.decode(ids[:3]) == ["I-X", "I-X", "O"]
    assert tags.decode(ids[3:]) == ["I-X", "B-X", "I-Y"]


def test_other_tags_stay_as_they_are():
    tags, _ = tag_set(TAGS, None)
    assert tags.tags == ("A", "D", "N", "V")
    assert tags.decode(tags.encode(read(TAGS))[:4]) == ["V", "N", "N", "D"]
    assert inner_tags(["B-X", "O"], None) == ["B-X", "O"]


def test_the_usual_tag_is_the_commonest_and_the_first_among_equals():
    tags, encoder = tag_set(TAGS, None)
    usual = {word: tags.tags[tags.most_frequent[i]] for i, word in enumerate(encoder.words.tokens)}
    assert (usual["run"], usual["the"], usual["old"]) == ("N", "D", "A")
    assert usual["<unk>"] == "N"  # the commonest of all
    assert len(tags.most_frequent) == len(encoder.words)


def test_json_brings_it_back():
    for text, scheme in ((SPANS, "iob1"), (TAGS, None)):
        tags, encoder = tag_set(text, scheme)
        assert TagSet.from_json(tags.to_json(), words=len(encoder.words)) == tags


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"usual": [0, 9]}, "one most frequent tag for each of 8 words"),
        ({"usual": [0] * 7 + [4]}, r"a most frequent tag is outside 0\.\.3"),
        ({"usual": [0] * 7 + [True]}, r"a most frequent tag is outside 0\.\.3"),
        ({"tags": ["A", ""]}, "strings in code point order, each once"),
        ({"scheme": None}, "the scheme is None"),
        ({"extra": 1}, "the keys must be"),
    ],
)
def test_anything_else_is_refused(change, message):
    tags, _ = tag_set(TAGS, None)
    value = {**json.loads(tags.to_json()), **change}
    with pytest.raises(ValueError, match=message):
        TagSet.from_json(json.dumps(value), words=8)


def test_a_scheme_is_found_or_named():
    assert span_scheme(read(SPANS), "auto", source="in.txt") == ("iob1", 0)
    assert span_scheme(read(TAGS), "auto", source="in.txt") == (None, 0)
    assert span_scheme(read(SPANS), "none", source="in.txt") == (None, 0)
    mostly = read("a B-X\n\n" * 39 + "a I-X\n")
    assert span_scheme(mostly, "auto", source="in.txt") == ("iob2", 1)
    with pytest.raises(DataError, match=r"in\.txt, line 79: I-X after the beginning"):
        span_scheme(mostly, "iob2", source="in.txt")


def test_one_tag_is_nothing_to_choose_from():
    tags, _ = tag_set("a N\nb N\n", None)
    with pytest.raises(DataError, match=r"in\.txt: every word has the tag 'N', but a tagger"):
        check_tag_set(tags, source="in.txt")


def test_too_many_tags_point_to_a_wrong_column():
    tags = TagSet(tuple(map(str, range(10_001))), None, ())
    with pytest.raises(DataError, match="has 10001 different tags, but at most 10000"):
        check_tag_set(tags, source="in.txt")


def test_tags_that_training_did_not_have():
    tags, _ = tag_set(SPANS, "iob1")
    assert count_unseen(tags, read("a I-Z\nb I-Z\nc O\n")) == {"B-Z": 1, "E-Z": 1}


def test_a_file_of_other_tags_alone_is_refused():
    tags, _ = tag_set(SPANS, "iob1")
    check_overlap(tags, read("a I-Z\nc O\n"), source="in.txt")
    message = r"in\.txt: has the tags \['S-Z'\], but the model knows others alone: \['B-X'"
    with pytest.raises(DataError, match=message):
        check_overlap(tags, read("a I-Z\n"), source="in.txt")
