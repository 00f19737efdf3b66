"""The demo: trains, scores, writes, draws, and says what to type next."""

import re
import sysconfig

import pytest

from unrolled.app import demo, demo_dates


def test_the_demo_ends_in_a_model_two_pictures_and_advice(call, tmp_path, monkeypatch):
    monkeypatch.setattr(demo, "CHARACTERS", 60_000)
    monkeypatch.setattr(demo, "HELD_OUT", 5_000)
    out = tmp_path / "demo"
    done = call("demo", "--minutes=0.02", "--threads=1", "--out", out)
    assert done.code == 0, done.err
    assert re.search(r"^model +\d", done.out, re.MULTILINE)
    assert re.search(r"^unigram +\d", done.out, re.MULTILINE)
    assert re.search(r"^A character costs it \d\.\d\d bits; knowing only", done.out, re.MULTILINE)
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


def test_the_demo_of_dates_ends_in_a_model_a_picture_and_advice(call, tmp_path, monkeypatch):
    pytest.importorskip("babel")
    monkeypatch.setattr(demo_dates, "TRAIN", 500)
    monkeypatch.setattr(demo_dates, "HELD_OUT", 20)
    out = tmp_path / "dates"
    done = call("demo", "dates", "--minutes=0.03", "--threads=1", "--out", out)
    assert done.code == 0, done.err
    assert re.search(r"^model +\d", done.out, re.MULTILINE)
    assert f"unrolled predict {out}/model" in done.out
    assert (out / "attention.png").read_bytes().startswith(b"\x89PNG")
    days = [
        {line.split("\t")[1] for line in (out / f"{name}.tsv").read_text().splitlines()}
        for name in ("train", "dev", "test")
    ]
    assert not days[0] & days[1] | days[0] & days[2] | days[1] & days[2]


def test_an_unknown_demo_is_refused(call):
    done = call("demo", "date")
    assert done.code == 2
    assert "demo is 'date', but must be one of dates, python. Did you mean 'dates'?" in done.err
