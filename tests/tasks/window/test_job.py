"""Window models are trained, resumed, scored and used as every language model is."""

import json
import os
import random
import signal

import pytest

import unrolled
from unrolled.app.cli import main
from unrolled.config import settings_for
from unrolled.errors import Stopped
from unrolled.evaluate.report import saved_reports
from unrolled.tasks.window.settings import WindowRun

pytestmark = [pytest.mark.arithmetic, pytest.mark.trains]

SMALL = {
    "model.window": 3,
    "model.hidden_size": 8,
    "train.batch_tokens": 128,
    "train.steps": 16,
    "train.checkpoint_seconds": 0,
}


@pytest.fixture
def run_window(texts, tmp_path):
    """Train in a folder of that name."""

    def start(name, settings=None, **options):
        out = tmp_path / name
        unrolled.train(
            "window", out=out, settings={**SMALL, **(settings or {})}, epochs=2, **texts, **options
        )
        return out

    return start


@pytest.mark.parametrize(
    "settings",
    [
        {"model.context": "line", "model.direct": True},
        {"model.context": "stream", "model.tied": True},
    ],
)
@pytest.mark.parametrize("step", [1, 4])
def test_stopped_and_resumed_it_ends_in_the_same_bytes(run_window, bytes_of, settings, step):
    def stop(status):
        if status.step == step:
            os.kill(os.getpid(), signal.SIGINT)

    with pytest.raises(Stopped):
        run_window("out", settings, watch=stop)
    resumed = run_window("out", settings, resume=True)
    assert bytes_of(resumed) == bytes_of(run_window("whole", settings))


def test_a_resume_with_another_window_is_refused(run_window):
    run_window("out")
    with pytest.raises(unrolled.UnrolledError, match=r"model\.window is 4, but was 3 when"):
        run_window("out", {"model.window": 4}, resume=True)


def made_text(lines, seed):
    """Sentences in which each word depends on the two before it, of 16 words in all."""
    chance = random.Random(seed)
    words, follow = [f"w{k}" for k in range(16)], random.Random(0)
    table = {(a, b): follow.sample(words, 3) for a in ["", *words] for b in ["", *words]}
    text = []
    for _ in range(lines):
        line = ["", ""]
        for _ in range(chance.randint(3, 12)):
            line.append(chance.choice(table[line[-2], line[-1]]))
        text.append(" ".join(line[2:]))
    return "\n".join(text) + "\n"


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    """Train by the command on made text; the folder, and the test text."""
    folder = tmp_path_factory.mktemp("window")
    for name, lines in (("train", 1500), ("dev", 100), ("test", 100)):
        (folder / f"{name}.txt").write_text(made_text(lines, seed=lines))
    texts = [f"--{name}={folder / name}.txt" for name in ("train", "dev", "test")]
    options = ["--window", "2", "--direct", "--hidden-size=64", "--dropout=0", "--epochs=15"]
    command = ["train", "window", *texts, f"--out={folder / 'out'}", *options, "--threads=1"]
    assert main([*command, "--learning-rate=0.01", "--batch-tokens=256"]) == 0
    return folder


def test_options_set_its_settings(trained):
    settings = settings_for(WindowRun, file=trained / "out" / "config.toml").model
    assert (settings.window, settings.direct, settings.hidden_size) == (2, True, 64)


@pytest.mark.row("B13")
def test_it_beats_the_unigram_model_by_far(trained):
    report = saved_reports(trained / "out")["test"]
    perplexity, unigram = report.scores[0].value, report.baselines["unigram"][0].value
    assert unigram > 14.0
    assert perplexity < 5.0  # three words may follow, or the end, which nothing announces
    assert set(report.unbeaten()) <= {"ngram"}


def test_the_commands_use_it(trained, capsys):
    def printed(*arguments):
        capsys.readouterr()
        assert main([str(argument) for argument in arguments]) == 0
        return capsys.readouterr().out

    out, text = trained / "out", trained / "test.txt"
    evaluated = json.loads(printed("evaluate", out, text, "--json"))
    saved = json.loads((out / "metrics.json").read_text())["test"]
    assert evaluated["scores"][0]["value"] == pytest.approx(saved["scores"][0]["value"], rel=1e-6)
    assert "context:line" in evaluated["scores"][0]["signature"]
    scored = json.loads(printed("score", out, text, "--json"))["all"]
    assert scored["perplexity"] == pytest.approx(evaluated["scores"][0]["value"], rel=1e-6)
    suggested = json.loads(printed("next", out, "w1 w2", "--top", 3, "--json"))["next"]
    assert sum(s["probability"] for s in suggested) > 0.5
    written = printed("generate", out, "--prompt", "w1", "--tokens", 9, "--seed", 1)
    assert written.startswith("w1 ")
    assert written == printed("generate", out, "--prompt", "w1", "--tokens", 9, "--seed", 1)
    assert "model.window" in printed("info", out)
