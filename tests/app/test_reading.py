"""Predict, score and evaluate read what train reads, and write answers beside it."""

import csv
import io
import json
import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from unrolled.config import sections
from unrolled.tasks import TASKS

GOLDEN = Path(__file__).parents[1] / "golden" / "kept"
TEXTS = ["a good film", 'he said "no",\nthen; left', "it was bad"]
BY_LINE = [
    (name, use)
    for name, task in TASKS.items()
    for use in task.uses
    if task.uses[use].by_line and (GOLDEN / name).exists()
]
COUNTED = {name: "--text-column=text" for name in ("lm", "ngram", "window")}  # else plain lines
COUNTED["translate"] = "--source-column=text"


def table(separator):
    file = io.StringIO()
    rows = [["id", "text"], *([n, text] for n, text in enumerate(TEXTS))]
    csv.writer(file, delimiter=separator, lineterminator="\r\n").writerows(rows)
    return "\ufeff" + file.getvalue()


FILES = {
    "d.csv": table(","),
    "semicolon.csv": table(";"),
    "d.tsv": table("\t"),
    "d.jsonl": "".join(json.dumps({"id": n, "text": text}) + "\n" for n, text in enumerate(TEXTS)),
    "d.json": json.dumps([{"text": text} for text in TEXTS], indent=1),
    "d.txt": "".join(" ".join(text.split()) + "\n" for text in TEXTS),
}


@pytest.fixture
def files(tmp_path):
    for name, text in FILES.items():
        (tmp_path / name).write_text(text, encoding="utf-8", newline="")
    return tmp_path


def arguments(task, use, path):
    named = [COUNTED[task]] if task in COUNTED and path.suffix != ".txt" else []
    return [use, GOLDEN / task, path, *named]


@pytest.mark.parametrize(
    ("task", "use", "name"),
    [
        *(("classify", "predict", name) for name in FILES),
        *((*one, "semicolon.csv") for one in BY_LINE),
        ("tag", "predict", "d.json"),
        ("lm", "score", "d.jsonl"),
    ],
)
def test_a_record_is_answered_once_whatever_it_is_written_in(call, files, task, use, name):
    done = call(*arguments(task, use, files / name), "--json")
    assert done.code == 0, done.err
    document = TASKS[task].uses[use].document
    answers = json.loads(done.out)["lines"] if document else done.out.splitlines()
    assert len(answers) == len(TEXTS)


@pytest.mark.parametrize(("task", "use"), BY_LINE)
def test_answers_are_written_beside_their_input(call, files, task, use):
    done = call(*arguments(task, use, files / "semicolon.csv"), "--with-input")
    rows = list(csv.reader(io.StringIO(done.out), delimiter=";"))
    assert rows[0][:2] == ["id", "text"]
    assert [row[:2] for row in rows[1:]] == [[str(n), text] for n, text in enumerate(TEXTS)]
    assert all(len(row) == len(rows[0]) > 2 for row in rows)
    lines = call(*arguments(task, use, files / "d.jsonl"), "--with-input").out.splitlines()
    values = [json.loads(line) for line in lines]
    assert [value["text"] for value in values] == TEXTS
    assert all(value.keys() == {"id", *rows[0][1:]} for value in values)
    plain = call(*arguments(task, use, files / "d.txt"), "--with-input").out.splitlines()
    assert [line.split("\t")[0] for line in plain] == FILES["d.txt"].splitlines()


def test_json_with_input_keeps_both(call, files):
    done = call("predict", GOLDEN / "classify", files / "d.csv", "--with-input", "--json")
    first = json.loads(done.out.splitlines()[1])
    assert first["input"] == {"id": "1", "text": TEXTS[1]}
    assert first["text"] == TEXTS[1]


def test_every_task_of_files_says_how_they_are_read():
    assert len({name for name, _ in BY_LINE}) >= 6
    for name, _ in BY_LINE:
        assert "format" in sections(TASKS[name].settings)["data"].model_fields


def test_a_format_may_be_said_and_a_wrong_one_is_refused(call, files):
    done = call("predict", GOLDEN / "classify", files / "d.csv", "--format", "text")
    assert len(done.out.splitlines()) == len(FILES["d.csv"].splitlines())
    done = call("predict", GOLDEN / "classify", files / "d.csv", "--format", "conllu")
    assert done.code == 2
    assert "data.format is 'conllu', but here it must be one of csv, fasttext, json" in done.err
    done = call("predict", GOLDEN / "classify", files / "d.csv", "--text-column", "body")
    assert done.code == 3
    assert (
        "line 1: there is no column 'body' for the texts, but there are 2: 'id', 'text'" in done.err
    )


CONLLU = """# text = Do n't
1-2\tDon't\t_\t_\t_\t_\t_\t_\t_\t_
1\tDo\tdo\tX\t_\t_\t0\troot\t_\t_
2\tn't\tnot\tY\t_\t_\t1\tadvmod\t_\t_

1\tGo\tgo\tZ\t_\t_\t0\troot\t_\t_
"""


def test_conllu_gets_its_column_and_columns_get_another(call, tmp_path):
    path = tmp_path / "d.conllu"
    path.write_text(CONLLU)
    done = call("predict", GOLDEN / "tag", path, "--with-input")
    written = done.out.splitlines()
    assert written[:2] == CONLLU.splitlines()[:2]
    before, after = (line.split("\t") for line in (CONLLU.splitlines()[2], written[2]))
    assert before[:3] + before[4:] == after[:3] + after[4:]
    assert [line.split("\t")[0] for line in written if line[:1].isdigit()] == ["1-2", "1", "2", "1"]
    plain = call("predict", GOLDEN / "tag", path).out
    assert [line.split("\t")[0] for line in plain.splitlines()] == ["Do", "n't", "", "Go", ""]
    assert after[3] == plain.splitlines()[0].split("\t")[1]
    columns = tmp_path / "d.conll"
    columns.write_text("-DOCSTART- X\n\n1 The\n2 rat\n\n1 It\n")
    rows = call("predict", GOLDEN / "tag", columns, "--with-input").out.splitlines()
    assert [row.split()[:2] for row in rows if row] == [["1", "The"], ["2", "rat"], ["1", "It"]]
    assert all(len(row.split()) == 3 for row in rows if row)


def test_a_tagger_takes_sentences_one_by_one(call, tmp_path):
    path = tmp_path / "d.txt"
    path.write_text("It was late. He left.\n\nDr. No ran.\n")
    done = call("predict", GOLDEN / "tag", path, "--sentences", "--json")
    words = [json.loads(line)["words"] for line in done.out.splitlines()]
    assert words == [["It", "was", "late", "."], ["He", "left", "."], ["Dr", ".", "No", "ran", "."]]


def test_a_translator_joins_what_it_says_of_sentences(call, tmp_path):
    path, apart = tmp_path / "d.txt", tmp_path / "apart.txt"
    path.write_text("a b. B c.\n\nb\n")
    apart.write_text("a b. \nB c.\n")
    joined = call("predict", GOLDEN / "translate", path, "--sentences").out.splitlines()
    one_by_one = call("predict", GOLDEN / "translate", apart).out.splitlines()
    assert joined[0] == " ".join(line for line in one_by_one if line)
    assert len(joined) == 3
    done = call("predict", GOLDEN / "translate", path, "--sentences", "--nbest", "2")
    assert done.code == 2
    assert "--nbest is 2 and --sentences was given" in done.err


def test_a_text_beyond_measure_is_answered_from_its_beginning_and_the_others_as_ever(
    call, tmp_path
):
    path = tmp_path / "d.txt"
    path.write_text(f"good film\n{'good ' * 30_000}\nbad film\n")
    done = call("predict", GOLDEN / "classify", path)
    assert len(done.out.splitlines()) == 3
    assert "line 2: Longer than 20,000 tokens, and answered from the first of them." in done.err
    alone = tmp_path / "alone.txt"
    alone.write_text("good film\nbad film\n")
    expected = call("predict", GOLDEN / "classify", alone).out.splitlines()
    said = done.out.splitlines()
    assert [said[0].split()[0], said[2].split()[0]] == [line.split()[0] for line in expected]


@pytest.mark.trains
@pytest.mark.parametrize("json_too", [[], ["--json"]])
def test_a_pipe_is_answered_line_by_line(json_too):
    command = [sys.executable, "-m", "unrolled", "predict", str(GOLDEN / "classify"), *json_too]
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        watchdog = threading.Timer(120, process.kill)
        watchdog.start()
        for text in ("good\n", "bad\n"):  # the second is sent when the first is answered
            process.stdin.write(text)
            process.stdin.flush()
            assert process.stdout.readline()
        process.stdin.close()
        assert process.stdout.read() == ""
        watchdog.cancel()


@pytest.mark.trains
def test_standard_input_is_read_by_every_command(call, tmp_path, monkeypatch):
    def given(text):
        monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(text.encode())))

    rows = "".join(f"{'ab'[n % 2]}\t{['good', 'bad'][n % 2]} film {n % 3}\n" for n in range(30))
    given(rows)
    train = ["train", "classify", "--train", "-", "--out", tmp_path / "m", "--epochs", "1"]
    assert call(*train, "--hidden-size", "4", "--embedding-size", "4").code == 0
    given(rows)
    assert "accuracy" in call("evaluate", tmp_path / "m", "-").out
    given(rows)
    assert len(call("predict", tmp_path / "m").out.splitlines()) == 30
