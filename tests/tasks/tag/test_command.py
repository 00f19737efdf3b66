import json

import pytest
import torch
from answering import print_answers
from tagged import small_job, span_lines

from unrolled.tasks.tag.model import TagModel
from unrolled.training.in_memory import fit_in_memory

pytestmark = [pytest.mark.arithmetic, pytest.mark.trains]


@pytest.fixture(scope="module")
def model() -> TagModel:
    torch.manual_seed(0)
    job = small_job(span_lines(150))
    fit_in_memory(job)
    return job.model


def test_text_becomes_columns(model, capsys):
    print_answers(model, ["Mary saw New York.", "", "Otto met Oslo ."])
    assert capsys.readouterr().out == (
        "Mary\tI-PER\nsaw\tO\nNew\tI-LOC\nYork\tI-LOC\n.\tO\n\n"
        "\n"
        "Otto\tI-PER\nmet\tO\nOslo\tI-LOC\n.\tO\n\n"
    )


def test_words_one_a_line(model, capsys):
    print_answers(model, ["Mary x", "saw", "Oslo\ty", ".", "", "", "Ann"], tokens=True)
    assert capsys.readouterr().out.startswith("Mary\tI-PER\nsaw\tO\nOslo\tI-LOC\n.\tO\n\nAnn\t")


def test_json_has_spans_with_their_places(model, capsys):
    print_answers(model, ["Mary saw New York.", ""], json=True)
    first, second = map(json.loads, capsys.readouterr().out.splitlines())
    assert first["words"] == ["Mary", "saw", "New", "York", "."]
    assert first["spans"] == [
        {"start": 0, "end": 1, "label": "PER", "text": "Mary"},
        {"start": 2, "end": 4, "label": "LOC", "text": "New York"},
    ]
    assert second == {"words": [], "tags": [], "spans": []}


def test_results_come_as_the_input_does(model, capsys):
    def lines():
        yield "Mary saw Oslo ."
        assert "Oslo\tI-LOC" in capsys.readouterr().out
        yield "Ann"

    print_answers(model, lines(), at_once=1)


def test_no_word_of_a_long_sentence_is_lost(model, capsys):
    words = [f"w{i}" for i in range(20_001)]
    print_answers(model, [" ".join(words)])
    printed = capsys.readouterr()
    assert [line.split("\t")[0] for line in printed.out.split("\n")[:-2]] == words
    assert printed.err == "in.txt, line 1: Too long to be tagged at once, and tagged in pieces.\n"
