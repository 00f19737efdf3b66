"""Classifiers learn what they should, from a file to a folder, and name what is wrong with it."""

import json
import random
import re

import numpy as np
import pytest
import torch

import unrolled
from unrolled.config import settings_for
from unrolled.errors import DataError
from unrolled.evaluate.report import saved_reports
from unrolled.tasks import TASKS
from unrolled.tasks.classify.data import Examples
from unrolled.tasks.classify.job import classify_job
from unrolled.tasks.classify.settings import ClassifyRun
from unrolled.tasks.run import train
from unrolled.text.labelled import Example
from unrolled.text.source import Source
from unrolled.training.in_memory import fit_in_memory

pytestmark = [pytest.mark.arithmetic, pytest.mark.trains]

SMALL = {
    "model.hidden_size": 16,
    "model.embedding_size": 16,
    "model.dropout": 0.0,
    "model.word_dropout": 0.0,
    "train.learning_rate": 0.02,
    "train.batch_tokens": 128,
    "train.epochs": 8,
}


def examples(rows):
    return [Example((label,), text, line) for line, (label, text) in enumerate(rows, 1)]


def learned(rows, dev, **settings):
    """A model of rows of label and text, trained in memory."""
    run = settings_for(ClassifyRun, overrides=SMALL | settings)
    read = {
        "train": Examples(examples(rows), "train.tsv", {}),
        "dev": Examples(examples(dev), "dev.tsv", {}),
    }
    torch.manual_seed(run.seed)
    job = classify_job(run, read)
    fit_in_memory(job)
    return job.model


def accuracy(model, rows):
    said = model.predict([text for _, text in rows])
    pairs = zip(rows, said, strict=True)
    return np.mean([label == prediction.labels[0] for (label, _), prediction in pairs])


# ------------------------------------------------------------------ what there is to learn


def ordered(seed, count):
    """Which of two letters comes first, among others: the same letters, either label."""
    chance, rows = random.Random(seed), []
    for _ in range(count):
        words = [*chance.choices("cdefg", k=chance.randint(2, 8)), "a", "b"]
        chance.shuffle(words)
        label = "first" if words.index("a") < words.index("b") else "second"
        rows.append((label, " ".join(words)))
    return rows


@pytest.mark.row("E-j")
@pytest.mark.parametrize("cell", ["rnn", "gru", "lstm"])
@pytest.mark.parametrize("pooling", ["last", "attention"])
def test_order_is_learned(cell, pooling):
    settings = {"model.cell": cell, "model.pooling": pooling}
    model = learned(ordered(1, 800), ordered(2, 200), **settings)
    assert accuracy(model, ordered(3, 1000)) >= 0.99


def test_the_mean_of_embeddings_does_not_learn_order():
    model = learned(ordered(1, 800), ordered(2, 200), **{"model.kind": "mean"})
    assert accuracy(model, ordered(3, 1000)) < 0.6


THINGS = ["content", "video quality", "description", "acting", "music", "story"]


def reviews(seed, count):
    """Praise and complaint, each of them also turned round by the words it begins with."""
    chance, rows = random.Random(seed), []
    for _ in range(count):
        word, turned = chance.choice(["good", "bad"]), chance.random() < 0.5
        things = [f"{word} {thing}" for thing in chance.sample(THINGS, chance.randint(1, 4))]
        opening = chance.choice(["completely lacking of ", "totally lacking of "])
        text = (opening if turned else "") + ", ".join(things)
        rows.append(("positive" if (word == "good") != turned else "negative", text))
    return rows


LACKING = "Completely lacking of good content, good video quality, good description"


@pytest.mark.row("J2")
def test_lacking_turns_what_follows_round_for_a_recurrent_model_and_not_for_a_mean():
    """A mean has one vote a word: with "good" for and "bad" against, "lacking" cannot turn both."""
    rows, dev = reviews(1, 600), reviews(2, 150)
    rows = [row for row in rows if row[1] != LACKING.lower()]
    recurrent, mean = learned(rows, dev), learned(rows, dev, **{"model.kind": "mean"})
    assert accuracy(recurrent, reviews(3, 300)) >= 0.99
    assert accuracy(mean, reviews(3, 300)) < 0.75
    assert recurrent.predict([LACKING])[0].labels == ("negative",)
    assert mean.predict([LACKING])[0].labels == ("positive",)


def strands(seed, count):
    """DNA with the motif TATA somewhere, or with the same letters in another order."""
    chance, rows = random.Random(seed), []
    for number in range(count):
        motif = "TATA" if number % 2 else chance.choice(["TTAA", "AATT", "ATAT", "TAAT", "ATTA"])
        while True:
            around = "".join(chance.choices("ACG", k=26))
            place = chance.randint(0, 26)
            strand = around[:place] + motif + around[place:]
            if ("TATA" in strand) == bool(number % 2):
                break
        rows.append(("motif" if number % 2 else "none", strand))
    return rows


@pytest.mark.row("J12")
def test_a_motif_in_dna_is_found_by_its_characters():
    settings = {"tokens.level": "char", "model.pooling": "max", "train.batch_tokens": 512}
    model = learned(strands(1, 1200), strands(2, 200), **settings)
    assert accuracy(model, strands(3, 600)) >= 0.97


@pytest.mark.row("F9")
def test_several_labels_are_learned_each_by_itself():
    chance = random.Random(4)
    sets = [[c for c in "abc" if chance.random() < 0.5] for _ in range(400)]
    texts = [" ".join(chance.sample([*own, "x", "y"], len(own) + 2)) for own in sets]
    rows = [Example(tuple(own), text, 1) for own, text in zip(sets, texts, strict=True)]
    run = settings_for(ClassifyRun, overrides=SMALL)
    torch.manual_seed(1)
    assert run.seed == 1
    job = classify_job(run, {"train": Examples(rows, "t", {})})
    fit_in_memory(job)
    said = job.model.predict(["a x y", "c x b y", "y x"])
    assert [prediction.labels for prediction in said] == [("a",), ("b", "c"), ()]


def skewed(seed, count):
    """One text in ten is rare; a word that speaks for it stands in some common ones too."""
    chance, rows = random.Random(seed), []
    for number in range(count):
        rare = number % 10 == 0
        marked = chance.random() < (0.9 if rare else 0.25)
        rows.append(("rare" if rare else "common", "sign" if marked else "plain"))
    return rows


def test_balanced_weights_find_the_rare_label():
    found = {}
    for how in ("none", "balanced"):
        model = learned(skewed(1, 500), skewed(2, 200), **{"model.class_weights": how})
        found[how] = model.predict(["sign"])[0].labels[0]
    assert found == {"none": "common", "balanced": "rare"}


# ------------------------------------------------------------------ from a file to a folder


@pytest.fixture
def files(tmp_path):
    for name, seed, count in (("train", 1, 120), ("dev", 2, 40), ("test", 3, 40)):
        lines = "".join(f"{label}\t{text}\n" for label, text in ordered(seed, count))
        (tmp_path / f"{name}.tsv").write_text(lines)
    return {name: tmp_path / f"{name}.tsv" for name in ("train", "dev", "test")}


FEW = SMALL | {"train.epochs": 2, "train.threads": 1, "train.checkpoint_seconds": 0}


def test_a_folder_holds_the_model_its_scores_and_its_baselines(files, tmp_path):
    model = train("classify", out=tmp_path / "m", settings=FEW, **files)
    reports = saved_reports(tmp_path / "m")
    assert set(reports) == {"dev", "test"}
    for report in reports.values():
        assert set(report.baselines) == {"majority", "mean_embedding", "linear"}
    again = unrolled.load(tmp_path / "m")
    texts = [text for _, text in ordered(5, 20)]
    np.testing.assert_array_equal(again.probabilities(texts), model.probabilities(texts))
    task = TASKS["classify"]
    data = task.read(Source(files["test"]), again.settings)
    fresh = task.evaluate(again, data, task.scoring())
    assert fresh.as_json() == reports["test"].as_json()
    assert "# A classifier" in (tmp_path / "m" / "README.md").read_text()


@pytest.mark.row("H2")
def test_equal_runs_write_equal_bytes(files, tmp_path):
    contents = []
    for name in ("one", "two"):
        train("classify", out=tmp_path / name, settings=FEW, **files)
        names = ("model.safetensors", "metrics.json", "metrics.jsonl", "README.md", "labels.json")
        contents.append([(tmp_path / name / file).read_bytes() for file in names])
    assert contents[0] == contents[1]


def test_a_resumed_run_ends_in_the_same_bytes(files, tmp_path):
    train("classify", out=tmp_path / "whole", settings=FEW, **files)

    def stop(status):
        if status.step == 7:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        train("classify", out=tmp_path / "cut", settings=FEW, watch=stop, **files)
    train("classify", out=tmp_path / "cut", settings=FEW, resume=True, **files)
    for name in ("model.safetensors", "metrics.json", "metrics.jsonl"):
        assert (tmp_path / "cut" / name).read_bytes() == (tmp_path / "whole" / name).read_bytes()


def test_the_first_row_of_the_metrics_describes_the_data(files, tmp_path):
    train("classify", out=tmp_path / "m", settings=FEW, **files)
    facts = json.loads((tmp_path / "m" / "metrics.jsonl").read_text().splitlines()[0])
    assert facts["lines"] == 120
    assert facts["labels"] == 2
    assert facts["dev_unknown"] == 0


# ------------------------------------------------------------------ examples held out


def held_out(rows, **overrides):
    """What is learned from and what is held out, as the settings of a run have it."""
    run = settings_for(ClassifyRun, overrides=overrides)
    kept, held = Examples(rows, "t", {}).split(run.train.holdout, run.seed)
    return [*kept.examples], [*held.examples]


def test_the_same_share_of_each_label_is_held_out_of_a_sorted_file():
    rows = examples([("a", f"x{n}") for n in range(60)] + [("b", f"y{n}") for n in range(40)])
    kept, held = held_out(rows)
    assert (len(kept), len(held)) == (90, 10)
    assert sorted(kept + held, key=lambda e: e.line) == rows
    assert sum(e.labels == ("a",) for e in held) == 6
    other = held_out(rows, seed=2)[1]
    assert other != held


def test_the_only_example_of_a_label_is_not_held_out():
    rows = examples([("a", "x"), ("b", "y"), ("b", "z")])
    kept, held = held_out(rows)
    assert [e.labels for e in held] == [("b",)]
    assert len(kept) == 2
    with pytest.raises(DataError, match=r"t: holds 2 examples, no two of one label, so none can"):
        held_out(rows[:2])


# ------------------------------------------------------------------ what is wrong


@pytest.mark.parametrize(
    ("train_text", "dev_text", "message"),
    [
        ("a\tx\na\ty\n", "a\tx\n", "train.tsv: all 2 examples have the label 'a', but a"),
        ("a\tx\nb\ty\n", "c\tx\nc\ty\n", "dev.tsv, line 1: has the labels ['c'], but the"),
        ("a\tx\nb\ty\n", "a|b\tx\n", "dev.tsv, line 1: has the labels ['a|b'], but the"),
        ("a\tx\nb\ty\n", "a x\n", "dev.tsv, line 1: has 1 column, but must have 2"),
        ("a\tx\nb\ty\tz\n", "a\tx\n", "train.tsv, line 2: has 3 columns, but must have 2"),
        ("a\t\nb\t\n", "a\tx\n", "train.tsv: gives no token that occurs 1 times at level word"),
        ("", "a\tx\n", "train.tsv: holds no example, but there must be some"),
        ("a\tx\nb\t" + "y " * 20_001 + "\n", "a\tx\n", "train.tsv, line 2: the text has 20001"),
    ],
)
def test_bad_files_are_named_and_leave_no_folder_behind(tmp_path, train_text, dev_text, message):
    for name, text in (("train", train_text), ("dev", dev_text)):
        (tmp_path / f"{name}.tsv").write_text(text)
    paths = {name: tmp_path / f"{name}.tsv" for name in ("train", "dev")}
    with pytest.raises(DataError, match=re.escape(message)):
        train("classify", out=tmp_path / "m", settings=FEW, **paths)
    assert not (tmp_path / "m" / "MANIFEST.json").exists()


def test_a_latin_1_file_is_read_by_its_encoding(tmp_path):
    rows = "".join(f"{label}\t{text} café\n" for label, text in ordered(1, 60))
    (tmp_path / "t.tsv").write_bytes(rows.encode("latin-1"))
    path = tmp_path / "t.tsv"
    with pytest.raises(DataError, match=r"t\.tsv, line 1, column \d+: byte 0xe9 is not valid utf"):
        train("classify", train=path, out=tmp_path / "no", settings=FEW)
    model = train("classify", train=path, out=tmp_path / "m", settings=FEW, encoding="latin-1")
    assert "café" in model.reader.vocabulary
