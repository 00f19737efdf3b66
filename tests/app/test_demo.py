"""The demo: trains, scores, writes, draws, and says what to type next."""

import re
import sysconfig
from collections import defaultdict
from itertools import zip_longest

import pytest

import unrolled
from unrolled.app.commands import demo, demo_dates
from unrolled.training.clock import Clock

pytestmark = [pytest.mark.arithmetic, pytest.mark.trains]


@pytest.fixture
def small(monkeypatch):
    """Makes a demo small. Its clock runs by the tokens seen, so that a run is the same one however
    fast the machine is."""

    def make(module, *, tokens_per_second, **settings):
        for name, value in settings.items():
            monkeypatch.setattr(module, name, value)
        monkeypatch.setattr(Clock, "seconds", lambda clock: clock.units / tokens_per_second)

    return make


def printed_scores(text):
    """The table of scores as it is printed, in blocks of columns: score by row and column."""
    scores, header = defaultdict(dict), []
    for line in text[: text.index("95 % intervals")].split("\n"):
        values = re.findall(r"([\d.e-]+) \[", line)
        if values and header:
            scores[line.split()[0]] |= zip(header, map(float, values), strict=True)
        elif line.startswith(" "):
            header = line.split()
    return scores


def test_the_demo_ends_in_a_model_two_pictures_and_advice(call, tmp_path, small):
    less = {"model.hidden_size": 64, "train.batch_tokens": 256, "train.learning_rate": 0.01}
    settings = {**demo.SETTINGS, **less}
    small(demo, CHARACTERS=60_000, HELD_OUT=5_000, SETTINGS=settings, tokens_per_second=25_000)
    out = tmp_path / "demo"
    done = call("demo", "--minutes=0.02", "--threads=1", "--out", out)
    assert done.code == 0, done.err
    bits = {name: row["bits_per_character"] for name, row in printed_scores(done.out).items()}
    assert bits["model"] < bits["unigram"] - 0.3 < bits["uniform"] - 1.0
    said = re.search(
        r"^A character costs it (.*) bits; knowing only .* is, (.*)\.$", done.out, re.M
    )
    assert [float(value) for value in said.groups()] == pytest.approx(
        [bits["model"], bits["unigram"]], abs=0.006
    )
    assert f"unrolled next {out}/model" in done.out
    for picture in ("loss.png", "surprise.png"):
        assert (out / picture).read_bytes().startswith(b"\x89PNG")
    assert call("next", out / "model", "for i in rang", "--top=3").code == 0


def test_nothing_is_overwritten(tmp_path):
    assert demo.unused(tmp_path / "a") == tmp_path / "a"
    (tmp_path / "a").mkdir()
    (tmp_path / "a-2").mkdir()
    assert demo.unused(tmp_path / "a") == tmp_path / "a-3"


def test_a_python_without_its_source_is_told(call, tmp_path, monkeypatch):
    monkeypatch.setattr(sysconfig, "get_path", lambda name: str(tmp_path))
    done = call("demo", "--out", tmp_path / "demo")
    assert done.code == 3
    assert "holds no Python source here, which the demo learns from." in done.err
    assert not (tmp_path / "demo").exists()


def test_the_passage_begins_with_a_function():
    text = '"""Docs."""\n\nimport os\n\n\ndef first(a):\n\n    return a\n'
    assert demo.passage(text) == "def first(a):\n    return a"


def test_the_demo_of_dates_ends_in_a_model_a_picture_and_advice(call, tmp_path, small):
    pytest.importorskip("babel")
    less = {"model.hidden_size": 32, "train.batch_tokens": 128, "train.learning_rate": 0.02}
    settings = {**demo_dates.SETTINGS, **less}
    small(demo_dates, TRAIN=500, HELD_OUT=20, SETTINGS=settings, tokens_per_second=3_000)
    out = tmp_path / "dates"
    done = call("demo", "dates", "--minutes=0.03", "--threads=1", "--out", out)
    assert done.code == 0, done.err
    scores = {name: row["token_accuracy"] for name, row in printed_scores(done.out).items()}
    assert scores["model"] > 0.25 > 1.5 * max(scores["copy"], scores["dictionary"])
    pairs = [line.split("\t") for line in (out / "test.tsv").read_text().splitlines()]
    said = unrolled.load(out / "model").predict([source for source, _ in pairs])
    days = [day for _, day in pairs]
    places = [place for pair in zip(said, days, strict=True) for place in zip_longest(*pair)]
    assert scores["model"] == pytest.approx(sum(a == b for a, b in places) / len(places), abs=1e-3)
    assert f"unrolled predict {out}/model" in done.out
    assert (out / "attention.png").read_bytes().startswith(b"\x89PNG")
    parts = [
        {line.split("\t")[1] for line in (out / f"{name}.tsv").read_text().splitlines()}
        for name in ("train", "dev", "test")
    ]
    assert not parts[0] & parts[1] | parts[0] & parts[2] | parts[1] & parts[2]


def test_an_unknown_demo_is_refused(call):
    done = call("demo", "date")
    assert done.code == 2
    assert "demo is 'date', but must be one of dates, python. Did you mean 'dates'?" in done.err
