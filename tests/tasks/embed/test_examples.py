"""What a text is learned from, shown: the very windows and draws of training."""

import json

import numpy as np
import pytest

from unrolled.app.cli import main
from unrolled.tasks.embed.examples import Windows, examples_of

LINE = "the quick brown fox jumps over the lazy dog"


@pytest.fixture
def text(tmp_path):
    path = tmp_path / "t"
    path.write_text(f"{LINE}\nalone\na rat ate\n")
    return str(path)


@pytest.mark.row("Q15")
@pytest.mark.parametrize("objective", ["skip-gram", "cbow"])
def test_neighbours_are_those_within_the_window(text, objective):
    found = examples_of(text, Windows(objective, 2, 4, 1), most=100).rows
    assert [row.word for row in found] == [*LINE.split(), "a", "rat", "ate"]
    words = LINE.split()
    for k, row in enumerate(found[: len(words)]):
        near = [[*words[max(0, k - reach) : k], *words[k + 1 : k + 1 + reach]] for reach in (1, 2)]
        assert row.neighbours in near  # how far a window reaches, chance decides
        assert len(row.noise) == 4
    assert {row.neighbours == near[1] for row in found[2:3]} <= {True, False}
    reaches = {len(row.neighbours) for row in found[2:-5]}
    assert reaches == {2, 4}


@pytest.mark.row("Q15")
def test_what_is_drawn_follows_the_counts(tmp_path):
    """16 times as often in the text is 8 times as often among the negatives."""
    (tmp_path / "t").write_text("often " * 320 + "seldom " * 20)
    drawn = examples_of(str(tmp_path / "t"), Windows("skip-gram", 1, 50, 3), most=1000)
    noise = [word for row in drawn.rows for word in row.noise]
    assert noise.count("often") / noise.count("seldom") == pytest.approx(8.0, rel=0.15)


def test_the_command(text, tmp_path, capsys):
    asked = ["vectors", "examples", text, "--window=1", "--negatives=2"]
    assert main([*asked, "--top=3"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].split() == ["word", "predicts", "rather", "than"]
    assert lines[2].split()[:3] == ["quick", "the", "brown"]
    assert main([*asked, "--objective=cbow"]) == 0
    assert capsys.readouterr().out.splitlines()[2].split()[:3] == ["the", "brown", "quick"]
    out = tmp_path / "p.svg"
    assert main([*asked, "--json", f"--out={out}"]) == 0
    assert len(json.loads(capsys.readouterr().out)["examples"]) == 12
    assert all(f">{word}<" in out.read_text() for word in LINE.split())
    assert main([*asked, "--objective=x"]) == 2
    (tmp_path / "t").write_text("a\nb\n")
    capsys.readouterr()
    assert main(asked) == 3
    assert "no two words in a line" in capsys.readouterr().err


def test_the_same_seed_draws_the_same(text):
    first, again, other = (
        examples_of(text, Windows("skip-gram", 3, 9, seed), most=100).rows for seed in (1, 1, 2)
    )
    assert first == again != other
    assert np.mean([a.noise == b.noise for a, b in zip(first, other, strict=True)]) < 0.5
