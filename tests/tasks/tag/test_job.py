"""Taggers from files to folders: trained, resumed, scored; and every file that is wrong."""

import json
import os
import signal

import numpy as np
import pytest
import torch
from tagged import BACK, SMALL, back_lines, small_job, span_lines, tagged_sentences

import unrolled
from unrolled.app.cli import main
from unrolled.errors import ConfigError, DataError, Stopped, UnrolledError
from unrolled.evaluate.report import saved_reports
from unrolled.tasks import TASKS
from unrolled.tasks.tag.report import evaluate_tagged, prepared
from unrolled.text.source import Source
from unrolled.training.in_memory import fit_in_memory

pytestmark = [pytest.mark.arithmetic, pytest.mark.trains]


@pytest.fixture
def files(tmp_path):
    """Columns to train on and to choose by."""
    paths = {"train": tmp_path / "train.txt", "dev": tmp_path / "dev.txt"}
    paths["train"].write_text("\n".join(span_lines(60)))
    paths["dev"].write_text("\n".join(span_lines(20, seed=1)))
    return paths


@pytest.fixture
def run_tag(files, tmp_path):
    """Train in a folder of that name."""

    def start(name, settings=None, **options):
        out = tmp_path / name
        given = {"epochs": 2, **files, **options}
        unrolled.train("tag", out=out, settings={**SMALL, **(settings or {})}, **given)
        return out

    return start


@pytest.mark.row("J4")
def test_from_files_to_a_folder_and_its_scores(run_tag, files):
    out = run_tag("out", epochs=8, test=files["dev"])
    reports = saved_reports(out)
    assert [*reports] == ["dev", "test"]
    scores = {score.name: score.value for score in reports["dev"].scores}
    assert scores["span_f1"] > 0.95
    assert scores["accuracy"] > 0.95
    usual = {score.name: score.value for score in reports["dev"].baselines["most_frequent_tag"]}
    assert usual["span_f1"] < scores["span_f1"]
    assert reports["dev"].details["by_label"]["PER"]["count"] > 20
    model = unrolled.load(out)
    task = TASKS["tag"]
    again = task.evaluate(model, task.read(Source(files["dev"]), model.settings), task.scoring())
    assert again == reports["dev"]
    assert model.predict(["Lucy met Oslo ."]) == [["I-PER", "O", "I-LOC", "O"]]
    assert "A tagger" in (out / "README.md").read_text()


@pytest.mark.parametrize("settings", [{}, {"model.decoder": "softmax", "model.dropout": 0.3}])
@pytest.mark.parametrize("step", [1, 6])
def test_stopped_and_resumed_it_ends_in_the_same_bytes(run_tag, bytes_of, settings, step):
    def stop(status):
        if status.step == step:
            os.kill(os.getpid(), signal.SIGINT)

    with pytest.raises(Stopped):
        run_tag("out", settings, watch=stop)
    resumed = run_tag("out", settings, resume=True)
    assert bytes_of(resumed) == bytes_of(run_tag("whole", settings))


def test_the_first_row_of_the_metrics_says_how_the_files_fit(run_tag, files):
    files["dev"].write_text("Mary O\nZebra B-ANIMAL\nruns O\n")
    out = run_tag("out")
    facts = json.loads((out / "metrics.jsonl").read_text().splitlines()[0])
    assert facts["lines"] == 60
    assert facts["tags"] == 6  # B, I, E, S of LOC, S of PER, O
    assert facts["dev_tokens"] == 3
    assert facts["dev_unknown"] == 2
    assert (facts["dev_unseen_tags"], facts["dev_tokens_of_unseen_tags"]) == (1, 1)
    report = saved_reports(out)["dev"]
    assert report.details["tags_not_in_training_data"] == {"S-ANIMAL": 1}


def test_without_dev_data_some_sentences_are_held_out(run_tag):
    out = run_tag("out", dev=None)
    facts = json.loads((out / "metrics.jsonl").read_text().splitlines()[0])
    assert facts["lines"] == 57  # of 60, without a share of 0.05
    assert saved_reports(out)["dev"].scores[0].signature.startswith("examples:3|")


@pytest.mark.row("J3")
def test_an_adjective_a_noun_and_a_verb_are_told_apart_by_their_place():
    torch.manual_seed(1)
    job = small_job(back_lines(240), train__epochs=5)
    assert job.model.tags.scheme is None
    assert job.model.network.crf is None
    fit_in_memory(job)
    assert job.model.predict([*BACK]) == [tags.split() for tags in BACK.values()]
    made = tagged_sentences(back_lines(100, seed=1))
    report = evaluate_tagged(job.model, prepared(job.model, made.sentences))
    (usual,) = report.baselines["most_frequent_tag"]
    assert report.scores[0].value > usual.value + 0.02


@pytest.mark.parametrize("characters", ["none", "suffix", "lstm"])
def test_ways_to_read_characters(characters):
    job = small_job(model__characters=characters)
    fit_in_memory(job)
    assert job.dev().cost < 0.1


@pytest.mark.row("A5")
def test_pretrained_vectors(tmp_path, run_tag):
    vectors = tmp_path / "vectors.txt"
    chance = np.random.default_rng(0)
    rows = {word: chance.normal(size=12).round(3) for word in ["mary", "oslo", "tiger", "Tiger"]}
    vectors.write_text("".join(f"{w} {' '.join(map(str, row))}\n" for w, row in rows.items()))
    given = {"model.vectors": str(vectors)}
    frozen = unrolled.load(run_tag("frozen", {**given, "model.freeze_vectors": True}))
    tuned = unrolled.load(run_tag("tuned", given))
    words = [word for word in rows if word.islower()]  # words are read in lower case
    assert "tiger" in frozen.encoder.words
    assert "Tiger" not in frozen.encoder.words
    places = frozen.encoder.words.encode(words)
    expected = np.stack([rows[word] for word in words])
    table = frozen.network.embedder.embedding.weight.detach().numpy()
    np.testing.assert_allclose(table[places], expected, rtol=1e-6)
    table = tuned.network.embedder.embedding.weight.detach().numpy()
    assert np.abs(table[places][:2] - expected[:2]).max() > 1e-3
    np.testing.assert_allclose(table[places][2], expected[2], rtol=1e-6)  # never seen in training
    facts = json.loads((tmp_path / "tuned" / "metrics.jsonl").read_text().splitlines()[0])
    assert facts["vectors_found"] == 3


def test_conllu_with_its_columns(tmp_path):
    rows = [("Dogs", "NOUN", "NNS", "Number=Plur"), ("ran", "VERB", "VBD", "_")]
    text = "".join(
        f"{n}\t{w}\t_\t{u}\t{x}\t{f}\t_\t_\t_\t_\n" for n, (w, u, x, f) in enumerate(rows, 1)
    )
    path = tmp_path / "train.conllu"
    path.write_text(f"{text}\n" * 4)
    for column, tags in [("upos", ("NOUN", "VERB")), ("feats", ("Number=Plur", "_"))]:
        settings = {**SMALL, "tokens.column": column}
        model = unrolled.train(
            "tag", train=path, dev=path, out=tmp_path / column, epochs=1, settings=settings
        )
        assert model.tags.tags == tags


# ------------------------------------------------------------------ what is wrong

GOOD = "a B-X\nb O\n\nc O\n"


@pytest.mark.parametrize(
    ("train", "dev", "message"),
    [
        ("a O\nb\n", GOOD, r"train\.txt, line 2: 'b' has 1 column, but must have 2 columns"),
        (GOOD, "a X O\nb O\n", r"dev\.txt, line 2: 'b O' has 2 columns, but must have 3 columns"),
        (
            "a O\nb I-X\nc O\nd B-X\n",
            GOOD,
            r"train\.txt, line 2: I-X after O breaks the scheme IOB2",
        ),
        (GOOD, "a B-X\nb O\nc I-X\n", r"dev\.txt, line 3: I-X after O breaks the scheme IOB2"),
        ("a N\nb N\n\nc N\n", GOOD, r"train\.txt: every word has the tag 'N', but a tagger"),
        ("\n\n", GOOD, r"train\.txt: holds no tagged sentence"),
        (GOOD, "", r"dev\.txt: holds no tagged sentence"),
        ("a new york\nb O\n", GOOD, r"train\.txt, line 2: .* Words or tags with spaces in them"),
        (
            GOOD,
            "a NOUN\nb VERB\n",
            r"dev\.txt, line 1: the tag 'NOUN' marks no span",
        ),
        ("w O\n" * 20_001, GOOD, r"train\.txt, line 1: .* has 20001 words, .* may have 20000"),
    ],
)
def test_a_wrong_file_is_named_and_nothing_is_left(run_tag, files, tmp_path, train, dev, message):
    files["train"].write_text(train)
    files["dev"].write_text(dev)
    with pytest.raises(DataError, match=message):
        run_tag("out")
    assert not (tmp_path / "out" / "MANIFEST.json").exists()


def test_one_sentence_cannot_be_held_out_of(run_tag, files):
    files["train"].write_text("a O\nb B-X\n")
    with pytest.raises(
        DataError, match=r"train\.txt: sentences are held out .* there is 1 to learn from"
    ):
        run_tag("out", dev=None)


def test_a_scheme_that_is_named_is_kept_to_the_letter(run_tag, files):
    lines = span_lines(200)
    files["train"].write_text("\n".join(["a X O", "b X B-PER", "", *lines]))
    out = run_tag("auto")  # one sentence of 201 breaks IOB1
    assert json.loads((out / "metrics.jsonl").read_text().splitlines()[0])["broken_sentences"] == 1
    with pytest.raises(
        DataError, match=r"train\.txt, line 2: B-PER after O breaks the scheme IOB1"
    ):
        run_tag("named", {"tokens.scheme": "iob1"})
    model = unrolled.load(run_tag("none", {"tokens.scheme": "none"}))
    assert model.tags.tags == ("B-PER", "I-LOC", "I-PER", "O")


def test_files_in_other_schemes_are_compared_by_their_spans(run_tag, files):
    files["dev"].write_text("Mary S-PER\nsaw O\nNew B-LOC\nYork E-LOC\n. O\n")
    report = saved_reports(run_tag("out", epochs=8))["dev"]
    assert {s.name: s.value for s in report.scores}["span_f1"] == 1.0
    assert {s.name: s.value for s in report.scores}["accuracy"] == 1.0
    assert "|scheme:iobes|" in report.scores[0].signature


def test_another_encoding(run_tag, files):
    text = "Zoë I-PER\nging O\n\n" * 30
    files["train"].write_bytes(text.encode("latin-1"))
    files["dev"].write_bytes(text.encode("latin-1"))
    model = unrolled.load(run_tag("out", encoding="latin-1"))
    assert "zoë" in model.encoder.words
    with pytest.raises(DataError, match=r"line 1, column 3: byte 0xeb is not valid utf-8"):
        run_tag("other")


def test_a_long_sentence_is_trained_on(run_tag, files):
    files["train"].write_text("w X O\nv X I-X\n" * 5_000 + "\n" + "\n".join(span_lines(5)))
    unrolled.load(run_tag("out", epochs=1))


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        (
            {"model.freeze_vectors": True},
            r"model\.freeze_vectors is true, but there are no vectors",
        ),
        ({"model.decoder": "crfs"}, r"model\.decoder is 'crfs'.*Did you mean 'crf'\?"),
        (
            {"tokens.column": "pos"},
            r"tokens\.column is 'pos', but must be one of feats, upos, xpos",
        ),
        ({"model.vectors": "nowhere.txt"}, r"nowhere\.txt: cannot be read"),
    ],
)
def test_wrong_settings(run_tag, settings, message):
    with pytest.raises(UnrolledError, match=message):
        run_tag("out", settings)


def test_the_command_line(files, tmp_path, capsys):
    small = [f"--set={name}={value}" for name, value in SMALL.items()]
    texts = [f"--train={files['train']}", f"--dev={files['dev']}", f"--out={tmp_path / 'm'}"]
    assert main(["train", "tag", *texts, *small, "--cell", "gru", "--threads=1"]) == 0
    printed = capsys.readouterr()
    assert "most_frequent_tag" in printed.out
    assert "span_f1" in printed.out
    assert "Learned from 60 lines" in printed.err


def test_settings_refuse_what_is_not_theirs(run_tag):
    with pytest.raises(ConfigError, match="Did you mean 'characters'"):
        run_tag("out", {"model.character": "lstm"})
