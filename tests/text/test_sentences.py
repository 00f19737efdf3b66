"""Sentences by rules; joined, they are the text."""

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from unrolled.text.sentences import split_sentences
from unrolled.text.tokens import TextEncoder


@pytest.mark.parametrize(
    "marked",
    [
        "It was late. |He left.",
        "Dr. Smith met J. R. Jones at 3.14 p.m. on Jan. 5. |Why? |“Because!” he said. |(So.) |Yes.",
        "See Fig. 3 and No. 4, e.g. Paris. |It ended in 1987. |Then came 2.5 million.",
        "Wait... what? |No… |He lives in the U.S. |She does not.",
        "He joined the U.S. Army in 1990. |A U.N. Security Council vote. |Born in Washington D.C.",
        "It sells in the U.S. |The U.K. |But not here. |“He” left. |See U.S. 5 there.",
        'He asked "Why?" |Nobody knew.',
        "Is it I? |It is I. |He said so.",
        "これは本です。|それは？|「はい！」|終わり",
        "A heading\n\n|A text that ends. |And\n goes on",
        "Line one\nof a paragraph. |Line two.\n\n\n|Next.",
        "¿Qué? |¡No! |Sí.",
        "سلام! |خوبی؟ |بله.",
        "یہ کیا ہے؟ |کتاب ہے۔ |اچھا",
        "no end",
        "",
    ],
)
def test_where_sentences_end(marked):
    assert split_sentences(marked.replace("|", "")) == [part for part in marked.split("|") if part]


@pytest.mark.row("A7")
@pytest.mark.parametrize(
    "settings", [{"level": "char"}, {"level": "word"}, {"level": "bpe"}], ids=str
)
@pytest.mark.parametrize(
    ("text", "sentences"),
    [
        ("Hayatın anlamı nedir? İstanbul'da. Güzel!", 3),
        ("زندگی می‌خواهم! سلام؟ بله.", 3),
        ("日本語の文章です。「はい」と言った。", 2),
    ],
)
def test_a_text_comes_back_from_its_sentences_and_they_from_their_tokens(text, sentences, settings):
    parts = split_sentences(text)
    assert len(parts) == sentences
    assert "".join(parts) == text
    encoder = TextEncoder.build(parts, **settings)
    plain = [part if settings["level"] == "char" else part.strip() for part in parts]
    assert [encoder.decode(encoder.encode(part)) for part in plain] == plain


@pytest.mark.row("A7")
@given(st.text(st.sampled_from("aB3 .!?…\n\"'”)(。「」I.Dr ")))
def test_sentences_joined_are_the_text_and_none_is_empty(text):
    found = split_sentences(text)
    assert "".join(found) == text
    assert all(found)


@pytest.mark.parametrize(
    "piece", ["a. ", "A. ", ".", "\n", " \n", "(", ". (", ".)", "。", "\t", "Dr. "]
)
def test_time_grows_with_the_text_alone(piece):
    begun = time.process_time()
    assert "".join(split_sentences(piece * 50_000 + "x")) == piece * 50_000 + "x"
    assert time.process_time() - begun < 5.0
