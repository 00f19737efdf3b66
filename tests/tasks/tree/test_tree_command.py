"""Networks over trees from the command line: train, answer, draw, and what bag-of-words cannot."""

import json
import random

import pytest

from unrolled.app.cli import main
from unrolled.tasks.folder import load

pytestmark = [pytest.mark.arithmetic, pytest.mark.trains]

SMALL = ["--threads=1", "--no-baselines", "--hidden-size=8", "--batch-tokens=64"]
TREES = "(1 (0 not) (0 bad))\n(0 (0 not) (1 good))\n(1 (1 good) (1 film))\n(0 (0 bad) (1 film))\n"


def negations(count, seed):
    """Texts that are as good as their second half; where "not" stands decides, not whether."""
    chance, fillers = random.Random(seed), ["really", "quite", "that", "very", "all", "so"]
    for _ in range(count):
        first, second = chance.choice(["good", "bad"]), chance.choice(["good", "bad"])
        where = chance.choice([(True, False), (False, True)])
        halves = [
            " ".join(["not"] * negated + [chance.choice(fillers)] + [word])
            for word, negated in zip((first, second), where, strict=True)
        ]
        good = (second == "good") != where[1]
        yield f"{'yes' if good else 'no'}\t{' but '.join(halves)}\n"


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    folder = tmp_path_factory.mktemp("tree")
    (folder / "trees.txt").write_text(TREES * 5)
    given = [f"--train={folder / 'trees.txt'}", "--epochs=3", *SMALL]
    assert main(["train", "tree", *given, f"--out={folder / 'model'}"]) == 0
    return folder


@pytest.mark.row("O6")
def test_negation_that_a_bag_of_words_cannot_solve(tmp_path, capsys):
    for name, count, seed in (("train", 1500, 1), ("test", 500, 2)):
        (tmp_path / f"{name}.tsv").write_text("".join(negations(count, seed)))
    given = [f"--{name}={tmp_path / name}.tsv" for name in ("train", "test")]
    given += ["--threads=1", "--epochs=10", "--hidden-size=20", "--embedding-size=20"]
    given += ["--dropout=0.1"]
    assert main(["train", "tree", *given, f"--out={tmp_path / 'm'}", "--json"]) == 0
    report = json.loads(capsys.readouterr().out)["test"]
    assert report["scores"][0]["name"] == "root_accuracy"
    assert report["scores"][0]["value"] >= 0.99
    for name in ("majority", "mean_embedding", "linear"):
        assert report["baselines"][name][0]["value"] < 0.8, name


def test_predict_gives_trees_with_labels_of_trees_and_of_texts(trained, capsys, tmp_path):
    folder = trained
    assert main(["predict", str(folder / "model"), str(folder / "trees.txt")]) == 0
    first = capsys.readouterr().out.split("\n")[0].split("\t")
    assert first[0] in ("0", "1")
    assert 0.5 <= float(first[1]) <= 1.0
    assert first[2].startswith("(")
    assert "not)" in first[2]
    (tmp_path / "texts.txt").write_text("not ( good )\nfilm\n")
    assert main(["predict", str(folder / "model"), str(tmp_path / "texts.txt"), "--json"]) == 0
    found = [json.loads(line) for line in capsys.readouterr().out.strip().split("\n")]
    assert found[0]["words"] == ["not", "-LRB-", "good", "-RRB-"]
    assert [len(each["nodes"]) for each in found] == [7, 1]
    assert main(["predict", str(folder / "model"), str(folder / "trees.txt"), "--with-input"]) == 0
    assert capsys.readouterr().out.startswith("(1 (0 not) (0 bad))\t")


@pytest.mark.row("Q9")
def test_trace_draws_a_tree(trained, capsys, tmp_path):
    for ending, begin in ((".svg", b"<svg"), (".png", b"\x89PNG"), (".html", b"<!DOCTYPE")):
        out = tmp_path / f"tree{ending}"
        assert main(["trace", str(trained / "model"), "not a good film", f"--out={out}"]) == 0
        assert out.read_bytes().lstrip()[:20].startswith(begin)
    capsys.readouterr()
    assert main(["trace", str(trained / "model"), "(1 (1 good) (0 film))", "--json"]) == 0
    nodes = json.loads(capsys.readouterr().out)["nodes"]
    assert [node.get("step") for node in nodes] == [None, None, 1]


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("(1 (1 good) (0 film)\n", "line 1, column 1: this bracket is not closed"),
        ("(1 (1) (0 film))\n", "column 4: the node with label '1' has neither word nor node"),
        ("(1 (9 good) (0 film))\n", "column 5: the label is '9', but must be in 0..1"),
    ],
)
def test_wrong_data_are_named_by_place(trained, tmp_path, capsys, text, problem):
    (tmp_path / "wrong.txt").write_text(text)
    assert main(["evaluate", str(trained / "model"), str(tmp_path / "wrong.txt")]) == 3
    assert problem in capsys.readouterr().err


@pytest.mark.row("O2", "O3")
def test_an_autoencoder_learns_from_plain_text_alone(tmp_path, capsys):
    lines = [f"the {a} {b} a {c} here\n" for a in "pqr" for b in "xy" for c in "pqr"]
    (tmp_path / "lines.txt").write_text("".join(lines * 3))
    given = [f"--train={tmp_path / 'lines.txt'}", "--composition=autoencoder", "--epochs=6", *SMALL]
    out = tmp_path / "model"
    assert main(["train", "tree", *given, f"--test={tmp_path / 'lines.txt'}", f"--out={out}"]) == 0
    capsys.readouterr()
    assert main(["evaluate", str(out), str(tmp_path / "lines.txt"), "--json"]) == 0
    report = json.loads(capsys.readouterr().out)
    (score,) = report["scores"]
    (zero,) = report["baselines"]["zero_vectors"]
    assert score["name"] == "reconstruction_error"
    assert score["value"] < 0.5 * zero["value"]
    assert zero["value"] == pytest.approx(1.0)
    assert main(["predict", str(out), str(tmp_path / "lines.txt"), "--json"]) == 0
    first = json.loads(capsys.readouterr().out.split("\n")[0])
    assert len(first["vector"]) == 8
    assert sorted(node["step"] for node in first["nodes"] if "step" in node) == [1, 2, 3, 4, 5]
    assert main(["predict", str(out), str(tmp_path / "lines.txt"), "--show-vectors"]) == 0
    error, tree, vector = capsys.readouterr().out.split("\n")[0].split("\t")
    assert float(error) >= 0.0
    assert tree.startswith("( ")
    assert len(vector.split()) == 8


def test_from_python(trained):
    model = load(trained / "model")
    one = model.predict("not bad")
    several = model.predict(["not bad", "(1 (1 good) (1 film))"])
    assert one.tree == several[0].tree
    assert (one.label in ("0", "1"), one.probability >= 0.5) == (True, True)
    with pytest.raises(TypeError, match="must be a string"):
        model.predict([3])


def test_a_text_in_brackets_that_is_no_tree_is_still_near_to_something(trained, tmp_path, capsys):
    (tmp_path / "among.txt").write_text("(good)\n(1 (1 good) (1 film))\n\ngood film\n")
    asked = [str(trained / "model"), "good film", f"--among={tmp_path / 'among.txt'}"]
    assert main(["similar", *asked, "--json"]) == 0
    found = json.loads(capsys.readouterr().out)["similar"]
    assert sorted(each["line"] for each in found) == [1, 2, 4]
    assert sorted(each["line"] for each in found[:2]) == [2, 4]  # the same tree, to a rounding
    assert found[0]["similarity"] == pytest.approx(found[1]["similarity"], abs=1e-6)
    assert main(["trace", str(trained / "model"), "(good)", "--json"]) == 3
    assert "<text>, line 1, column 1: the node with label 'good'" in capsys.readouterr().err
