"""Sentences by rules; joined, they are the text."""

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from unrolled.text.sentences import split_sentences


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
        "no end",
        "",
    ],
)
def test_where_sentences_end(marked):
    assert split_sentences(marked.replace("|", "")) == [part for part in marked.split("|") if part]


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
