"""`unrolled lab`: the list of studies, and how each is shown."""

import json

import pytest

from unrolled.app.cli import main
from unrolled.lab.studies import STUDIES

pytestmark = [pytest.mark.arithmetic, pytest.mark.trains]


def run(capsys, *arguments):
    code = main(["lab", *map(str, arguments)])
    return code, *capsys.readouterr()


def test_it_lists_the_studies(capsys):
    code, out, _ = run(capsys)
    assert code == 0
    assert [line.split()[2] for line in out.splitlines()] == list(STUDIES)
    assert json.loads(run(capsys, "--json")[1]).keys() == STUDIES.keys()


def test_equations_of_a_note(capsys):
    code, out, _ = run(capsys, "equations", "--note", "001")
    assert code == 0
    assert "E59" in out
    assert "E3 " not in out
    assert " hold. " in out


def test_one_entry_as_json(capsys):
    code, out, _ = run(capsys, "equations", "--id", "E37", "--json")
    (entry,) = json.loads(out)
    assert code == 0
    assert entry["verdict"] == "holds"
    assert entry["seen"] == "4.93 instead of 10"


@pytest.mark.parametrize("suffix", ["html", "md", "svg", "json"])
def test_equations_as_a_file(capsys, tmp_path, suffix):
    path = tmp_path / f"errata.{suffix}"
    code, _, err = run(capsys, "equations", "--note", "001", "--out", path)
    assert code == 0
    assert "E59" in path.read_text(encoding="utf-8")
    assert suffix == "json" or str(path) in err


def test_the_glossary(capsys):
    code, out, _ = run(capsys, "equations", "--glossary")
    assert code == 0
    assert "LSTM input gate" in out
    assert "X24" in out


def test_a_failing_check_is_no_success(capsys, monkeypatch):
    from unrolled.lab.equations import entry

    monkeypatch.setattr(entry.Entry, "result", lambda self: entry.Result(self, entry.Off(1.0), 0.0))
    code, out, err = run(capsys, "equations", "--id", "F7")
    assert code == 6
    assert "FAILS" in out
    assert "F7 does not hold" in err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["equations", "--note", "7"], "--note is '7', but must be one of 000, 001"),
        (["equations", "--glossary", "--out", "x.png"], "a glossary has no picture"),
        (["equations", "--id", "E2", "--out", "x.png"], "no erratum is among these entries"),
        (["nothing"], "No such command 'nothing'"),
    ],
)
def test_what_cannot_be_asked(capsys, arguments, message):
    code, _, err = run(capsys, *arguments)
    assert code == 2
    assert message in err


def test_factors_of_a_text(capsys, tmp_path):
    path = tmp_path / "heat.svg"
    code, out, _ = run(capsys, "bptt", "abba", "--cell", "lstm", "--out", path)
    assert code == 0
    assert "∂s_2/∂s_1" in out
    assert "lstm tanh none" in out
    assert path.read_text(encoding="utf-8").startswith("<svg")


def test_the_graph_is_printed_and_drawn(capsys, tmp_path):
    path = tmp_path / "graph.svg"
    code, out, _ = run(capsys, "graph", "--out", path)
    assert code == 0
    assert out.splitlines()[-1].startswith("L ")
    assert path.exists()


@pytest.mark.parametrize("study", ["clipping", "activations"])
def test_pictures_of_what_needs_no_training(capsys, tmp_path, study):
    path = tmp_path / "picture.svg"
    code, out, _ = run(capsys, study, "--out", path)
    assert code == 0
    assert out
    assert path.read_text(encoding="utf-8").startswith("<svg")


def test_a_model_without_a_text_is_half_a_question(capsys):
    code, _, err = run(capsys, "gradients", "somewhere")
    assert code == 2
    assert "a model was given but no text" in err


def test_a_folder_that_is_none(capsys, tmp_path):
    code, _, err = run(capsys, "agreement", tmp_path / "none", tmp_path / "pairs.tsv")
    assert code == 4
    assert str(tmp_path / "none") in err
