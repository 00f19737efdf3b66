"""What is printed for a classifier's predictions, line by line and as they come."""

import json

import numpy as np
import pytest
import torch
from answering import print_answers

from unrolled.app.commands.use import MOST_PICTURES
from unrolled.config import settings_for
from unrolled.errors import ConfigError, DataError
from unrolled.tasks.classify.model import ClassifyModel
from unrolled.tasks.classify.settings import ClassifyRun
from unrolled.text.labels import Labels

pytestmark = [pytest.mark.arithmetic, pytest.mark.trains]

TEXTS = ["the cat", "a dog ran", "", "café"]
ONE = Labels(("no", "yes"), (1, 1), 2, multi_label=False)
SEVERAL = Labels(("a", "b"), (1, 1), 2, multi_label=True)


def model(labels=ONE, **settings):
    torch.manual_seed(1)
    small = {"model.hidden_size": 5, "model.embedding_size": 4}
    run = settings_for(ClassifyRun, overrides=small | settings)
    built = ClassifyModel.build(run, labels, TEXTS)
    built.network.eval()
    return built


def printed(capsys, *arguments, **options):
    print_answers(*arguments, **options)
    return capsys.readouterr().out.splitlines()


@pytest.mark.parametrize("at_once", [1, 3, 256])
def test_a_label_and_a_probability_a_line_in_the_order_of_the_input(capsys, at_once):
    classifier = model()
    rows = classifier.probabilities(TEXTS)
    expected = [f"{ONE.names[p.argmax()]}\t{p.max():.4f}" for p in rows]
    assert printed(capsys, classifier, TEXTS, at_once=at_once) == expected


def test_several_labels_are_parted_by_a_bar(capsys):
    classifier = model(SEVERAL)
    with torch.no_grad():
        classifier.network.bias.copy_(torch.tensor([9.0, 9.0]))
        classifier.network.weight.zero_()
    assert printed(capsys, classifier, ["the cat"]) == ["a|b\t0.9999|0.9999"]
    with torch.no_grad():
        classifier.network.bias.fill_(-9.0)
    assert printed(capsys, classifier, ["the cat"]) == ["\t"]


def test_json_is_one_object_a_line(capsys):
    rows = [json.loads(line) for line in printed(capsys, model(), TEXTS, json=True)]
    assert [row["text"] for row in rows] == TEXTS
    assert set(rows[0]) == {"text", "label", "probability"}
    several = json.loads(printed(capsys, model(SEVERAL), ["a"], json=True)[0])
    assert set(several) == {"text", "labels"}


def test_all_labels_come_with_their_probabilities_the_likeliest_first(capsys):
    classifier = model()
    rows = classifier.probabilities(TEXTS)
    lines = printed(capsys, classifier, TEXTS, all_labels=True)
    for line, p in zip(lines, rows, strict=True):
        label, most, other, least = line.split("\t")
        assert (label, other) == tuple(ONE.names[k] for k in np.argsort(-p))
        assert (most, least) == tuple(f"{value:.4f}" for value in -np.sort(-p))
    row = json.loads(printed(capsys, classifier, TEXTS[:1], all_labels=True, json=True)[0])
    expected = dict(zip(ONE.names, rows[0].tolist(), strict=True))
    assert row["probabilities"] == pytest.approx(expected, abs=1e-6)
    assert next(iter(row["probabilities"])) == row["label"]
    several = json.loads(printed(capsys, model(SEVERAL), ["a"], all_labels=True, json=True)[0])
    assert set(several["probabilities"]) == {"a", "b"}
    with pytest.raises(ValueError, match="--explain and --all-labels were given"):
        printed(capsys, classifier, TEXTS, all_labels=True, explain=True)


def test_results_stream_as_the_lines_come(capsys):
    seen = []

    def lines():
        for text in TEXTS:
            yield text
            seen.append(capsys.readouterr().out)

    print_answers(model(), lines(), at_once=1)
    assert all(line.count("\n") == 1 for line in seen)


@pytest.mark.row("J11")
def test_reasons_are_a_row_a_token(capsys):
    classifier = model()
    found = classifier.explain("a dog ran")
    lines = printed(capsys, classifier, ["a dog ran"], explain=True)
    assert lines[0] == f"{found.label}\t{found.probability:.4f}"
    assert lines[1] == "attention\tgradient\ttoken"
    rows = [line.split("\t") for line in lines[2:5]]
    assert [row[2] for row in rows] == ["a", "dog", "ran"]
    np.testing.assert_allclose([float(r[0]) for r in rows], found.attention, atol=1e-4)
    np.testing.assert_allclose([float(r[1]) for r in rows], found.shares, atol=1e-4)


def test_without_attention_there_is_no_column_for_it(capsys):
    lines = printed(capsys, model(**{"model.pooling": "mean"}), ["a dog"], explain=True)
    assert lines[1] == "gradient\ttoken"


def test_reasons_as_json(capsys):
    (line,) = printed(capsys, model(), ["a dog"], explain=True, json=True)
    assert {"text", "label", "probability", "tokens", "attention", "gradient", "shares"} == set(
        json.loads(line)
    )


@pytest.mark.row("J11")
def test_reasons_as_a_picture(capsys, tmp_path):
    printed(capsys, model(), TEXTS[:2], explain=True, out=tmp_path / "why.png")
    assert (tmp_path / "why.png").read_bytes().startswith(b"\x89PNG")
    printed(capsys, model(), TEXTS[:2], out=tmp_path / "why.svg")
    drawn = (tmp_path / "why.svg").read_text()
    for word in ("attention", "share of gradient × input", "dog"):
        assert word in drawn


def test_a_picture_holds_only_so_many_texts(capsys, tmp_path):
    with pytest.raises(
        ConfigError, match=f"there are more than {MOST_PICTURES} answers, but a pic"
    ):
        print_answers(model(), ["a"] * (MOST_PICTURES + 1), out=tmp_path / "why.png")
    assert not (tmp_path / "why.png").exists()


@pytest.mark.parametrize("characters", ["none", "suffix"])
def test_a_text_beyond_all_measure_is_cut_and_named_by_its_line(capsys, characters):
    texts = ["a"] * 300 + ["a " * 20_001]
    built = model(**{"model.characters": characters})
    print_answers(built, texts, source="in.txt")
    said = capsys.readouterr()
    assert len(said.out.splitlines()) == 301
    assert (
        said.err
        == "in.txt, line 301: Longer than 20,000 tokens, and answered from the first of them.\n"
    )
    cut = built.reader.encode([texts[-1], "a " * 20_000], cut=True)
    assert cut.lengths.tolist() == [20_000, 20_000]
    assert cut.cut.tolist() == [True, False]
    with pytest.raises(DataError, match=r"line 1: the text has 20001 tokens, but may have at most"):
        built.probabilities(texts[-1:])
