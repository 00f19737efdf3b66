"""A sequence-to-sequence model from the command line: train, evaluate, predict, trace."""

import json
import random

import pytest
import torch

from unrolled.app.cli import main

pytestmark = [pytest.mark.arithmetic, pytest.mark.trains]


def pairs(count, seed):
    chance = random.Random(seed)
    rows = [chance.choices("abcd", k=chance.randint(1, 4)) for _ in range(count)]
    return [f"{' '.join(row)}\t{' '.join(row).upper()}" for row in rows]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    torch.set_num_threads(1)
    made = tmp_path_factory.mktemp("pairs")
    for name, lines in {"train": pairs(400, 1), "dev": pairs(30, 2)}.items():
        (made / f"{name}.tsv").write_text("\n".join(lines) + "\n")
        for side, ending in enumerate(("lo", "up")):
            sides = [line.split("\t")[side] for line in lines]
            (made / f"{name}.{ending}").write_text("\n".join(sides) + "\n")
    options = ["--from=lo", "--to=up", "--level=word", "--hidden-size=24", "--threads=1"]
    files = [f"--train={made / 'train'}", f"--dev={made / 'dev'}", f"--out={made / 'model'}"]
    fast = ["--epochs=20", "--learning-rate=0.01", "--batch-tokens=64", "--dropout=0"]
    assert main(["train", "translate", *files, *options, *fast]) == 0
    return made


def test_outputs_keep_the_lines_and_empty_ones(call, folder, tmp_path):
    text = tmp_path / "in.txt"
    text.write_text("a b\n\nd c\n")
    done = call("predict", folder / "model", text)
    assert done.code == 0
    assert done.out.splitlines() == ["A B", "", "D C"]


def test_several_outputs_have_line_rank_and_score(call, folder, tmp_path):
    text = tmp_path / "in.txt"
    text.write_text("a b\nc\n")
    done = call("predict", folder / "model", text, "--nbest=2", "--beam=3")
    rows = [line.split("\t") for line in done.out.splitlines()]
    assert [row[:2] for row in rows] == [["1", "1"], ["1", "2"], ["2", "1"], ["2", "2"]]
    assert rows[0][3] == "A B"
    assert float(rows[0][2]) >= float(rows[1][2])
    done = call("predict", folder / "model", text, "--json")
    first = json.loads(done.out.splitlines()[0])
    assert first["source"] == "a b"
    assert first["outputs"][0]["text"] == "A B"
    assert first["outputs"][0]["finished"] is True


def test_outputs_are_drawn_where_a_temperature_is_given(call, folder, tmp_path):
    text = tmp_path / "in.txt"
    text.write_text("a b c\n" * 20)
    drawn = [
        call("predict", folder / "model", text, "--temperature=3", f"--seed={seed}").out
        for seed in (1, 1, 2)
    ]
    assert drawn[0] == drawn[1] != drawn[2]
    cold = call("predict", folder / "model", text, "--temperature=0").out
    assert set(cold.splitlines()) == {"A B C"}


@pytest.mark.row("M11")
def test_what_cannot_be_read_or_ended_is_told(call, folder, tmp_path):
    text = tmp_path / "in.txt"
    text.write_text("a b\nщ ю\na b c d\n")
    done = call("predict", folder / "model", text)
    assert (
        f"{text}, line 2: Of no token is known to the model, so the output says little." in done.err
    )
    done = call("predict", folder / "model", text, "--max-length=1", "--beam=1")
    assert f"{text}, 3 lines (1, 2, 3): Cut off before an end was written." in done.err


@pytest.mark.parametrize("data", ["dev", "dev.tsv"])
def test_parallel_files_and_one_file_score_alike(call, folder, data):
    done = call("evaluate", folder / "model", folder / data, "--json")
    scores = {score["name"]: score["value"] for score in json.loads(done.out)["scores"]}
    assert scores["exact_match"] >= 0.9
    assert scores["bleu"] >= 50
    assert set(json.loads(done.out)["baselines"]) == {"copy", "dictionary"}


@pytest.mark.row("M8")
def test_the_audit_blames_and_draws(call, folder, tmp_path):
    picture = tmp_path / "widths.svg"
    done = call("evaluate", folder / "model", folder / "dev", "--audit", f"--out={picture}")
    assert done.code == 0
    _, header, first, *_ = done.out.splitlines()
    assert header.split()[:4] == ["width", "seconds", "score", "BLEU"]
    assert first.split()[0] == "1"
    assert picture.read_text().startswith("<svg")
    done = call("evaluate", folder / "model", folder / "dev", "--audit", "--json")
    rows = json.loads(done.out)
    assert [row["width"] for row in rows] == [1, 2, 3, 5, 10, 20, 50]
    assert sum(rows[0]["blame"][name] for name in ("right", "model", "search")) == pytest.approx(1)


def test_bleu_is_explained_for_a_pair(call, folder):
    done = call("evaluate", folder / "model", folder / "dev", "--explain-bleu=1")
    assert "BLEU-1 = BP" in done.out  # the reference is "a": there are no longer n-grams
    done = call("evaluate", folder / "model", folder / "dev", "--explain-bleu=31")
    assert done.code == 2
    assert "--explain-bleu is 31, but" in done.err


@pytest.mark.parametrize("view", ["attention", "links", "beam"])
def test_traces_are_drawn(call, folder, tmp_path, view):
    picture = tmp_path / "trace.svg"
    done = call("trace", folder / "model", "a b c", f"--view={view}", f"--out={picture}")
    assert done.code == 0
    assert done.out == "A B C\n"
    assert picture.read_text().startswith("<svg")


def test_a_trace_is_numbers(call, folder, tmp_path):
    done = call("trace", folder / "model", "a b", "--beam=2")
    value = json.loads(done.out)
    assert value["output"] == "A B"
    assert value["output_tokens"] == ["A", "B", "</s>"]
    assert [sum(row) for row in value["attention"]] == pytest.approx([1.0] * 3, abs=1e-4)
    best = [node["token"] for node in value["beam"] if node["state"] == "best"]
    assert best == ["A", "B", "</s>"]
    done = call("trace", folder / "model", "a b", f"--out={tmp_path / 'trace.json'}")
    assert json.loads((tmp_path / "trace.json").read_text())["output"] == "A B"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["predict", "MODEL", "DATA", "--beam=0"], "--beam is 0, but must be"),
        (["predict", "MODEL", "DATA", "--beam=100000"], "--beam is 100000, but must be"),
        (["predict", "MODEL", "DATA", "--alpha=-1"], "--alpha is -1"),
        (
            ["predict", "MODEL", "DATA", "--tokens"],
            "--tokens was given, but a sequence-to-sequence",
        ),
        (["evaluate", "MODEL", "PAIRS", "--from=fr", "--to=up"], "was trained from lo to up"),
        (["evaluate", "MODEL", "PAIRS", "--from=lo"], "they belong together"),
        (
            ["predict", "MODEL", "DATA", "--temperature=1", "--nbest=2"],
            "--nbest was given, but a model that draws its outputs (--temperature) has no such",
        ),
        (["evaluate", "MODEL", "PAIRS", "--out=x.png"], "there is no picture of these scores"),
        (["trace", "MODEL", " "], "the text is empty"),
        (["trace", "MODEL", "a", "--view=gates", "--out=x.png"], "view is 'gates'"),
        (["score", "MODEL", "DATA"], "cannot score. Use `unrolled predict` or `unrolled trace`"),
    ],
)
def test_wrong_usage_is_told(call, folder, arguments, message):
    places = {"MODEL": folder / "model", "DATA": folder / "dev.lo", "PAIRS": folder / "dev"}
    done = call(*(places.get(argument, argument) for argument in arguments))
    assert done.code == 2
    assert message in done.err


def test_other_models_have_no_search(call, model, text):
    done = call("evaluate", model, text, "--beam=3")
    assert done.code == 2
    assert "--beam was given, but a recurrent language model has no such" in done.err
    done = call("evaluate", model, text, "--alpha=0")
    assert done.code == 2
    assert "--alpha was given, but a recurrent language model has no such" in done.err
    done = call("trace", model, "a")
    assert done.code == 2
    assert "cannot trace" in done.err


def test_training_needs_both_languages(call, folder, tmp_path):
    data = [f"--train={folder / 'train'}", f"--out={tmp_path / 'x'}"]
    done = call("train", "translate", *data, "--from=lo")
    assert done.code == 2
    assert "Give both (--from de --to en)" in done.err
    done = call("train", "translate", *data, "--from=lo", "--to=xx")
    assert done.code == 5
    assert "train.xx: there is no such file" in done.err
