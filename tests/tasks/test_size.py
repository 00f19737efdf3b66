"""A size that fits the time, and batches that fit the data."""

import tomllib

import pytest
import torch
from golden_data import TRAIN, write_data

from unrolled.config import settings_for
from unrolled.errors import ConfigError
from unrolled.tasks import TASKS, size
from unrolled.tasks.language.settings import LanguageRun
from unrolled.tasks.run import train
from unrolled.tasks.shared.batch_size import with_batch_tokens
from unrolled.tasks.translate.settings import TranslateRun
from unrolled.training.watch import Watch

pytestmark = [pytest.mark.arithmetic, pytest.mark.trains]
SIZED = [task for task in TASKS.values() if task.settings.sizes]
SPLITS = ("train", "dev", "test")


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    folder = tmp_path_factory.mktemp("tiny") / "data"
    write_data(folder)
    return folder


@pytest.fixture
def run(data, tmp_path):
    def start(task, name="out", settings=None, minutes=0.01, **more):
        given = (option.format(data=data).removeprefix("--") for option in TRAIN[task.name])
        paths = {k: v for k, _, v in (o.partition("=") for o in given) if k in SPLITS}
        told, watch = [], Watch()
        watch.remark = told.append
        out = tmp_path / name
        train(task.name, out=out, settings=settings, minutes=minutes, watch=watch, **paths, **more)
        return tomllib.loads((out / "config.toml").read_text()), told

    return start


def taking(seconds):
    """An epoch of each hidden size takes so long."""
    return lambda job, left: seconds[job.model.settings.model.hidden_size]


@pytest.mark.parametrize("task", SIZED, ids=lambda task: task.name)
def test_every_task_takes_the_largest_size_that_reads_its_data_often_enough(task, run, monkeypatch):
    sizes = [own.values["model.hidden_size"] for own in task.settings.sizes]
    for place in (0, 1):
        slow = {units: 1e-9 if k >= place else 1e9 for k, units in enumerate(sizes)}
        monkeypatch.setattr(size, "_epoch_seconds", taking(slow))
        chosen, told = run(task, name=f"size-{place}", minutes=0.004)
        assert chosen["model"]["hidden_size"] == sizes[place]
        assert chosen["train"]["max_epochs"] == task.settings.sizes[place].most_reads
        assert any(f"hidden_size {sizes[place]}" in message for message in told)


def test_of_much_data_a_part_is_enough():
    small, large = (LanguageRun.sizes[place] for place in (3, 1))
    assert [large.least_reads(tokens) for tokens in (1, 10**6, 8 * 10**6)] == [4.0, 4.0, 0.5]
    assert small.least_reads(10**8) == 0.005
    assert all(own.least_reads(10**12) == own.reads for own in TranslateRun.sizes)


def test_the_speed_is_measured(run):
    """Without a script: whatever was chosen is one of the table's, and the run ends in a model."""
    chosen, told = run(TASKS["lm"])
    assert chosen["model"]["hidden_size"] in [
        s.values["model.hidden_size"] for s in LanguageRun.sizes
    ]
    assert any(message.startswith("Chosen for 0.01 minutes: hidden_size") for message in told)


def test_too_little_time_is_told_early(run, monkeypatch):
    monkeypatch.setattr(size, "_epoch_seconds", lambda job, left: 10.0 * left)
    _, told = run(TASKS["lm"], minutes=0.01)
    assert "This reads 0.08 of the data in 0.01 minutes, too little to be of use; allow 1." in told


def test_a_size_that_is_given_stays(run):
    for name in ("model.hidden_size", "train.batch_tokens"):
        chosen, told = run(TASKS["lm"], name=name, settings={name: 9})
        assert chosen[name.split(".")[0]][name.split(".")[1]] == 9
        assert "max_epochs" not in chosen["train"]
        assert not any("Chosen" in message for message in told)


def test_a_rate_that_is_given_stays_in_the_chosen_size(run, monkeypatch):
    monkeypatch.setattr(size, "_epoch_seconds", lambda job, left: 1e-9)
    chosen, _ = run(TASKS["lm"], settings={"train.learning_rate": 0.02})
    assert (chosen["model"]["hidden_size"], chosen["train"]["learning_rate"]) == (512, 0.02)


def test_a_resumed_run_keeps_what_was_chosen(run, monkeypatch, tmp_path):
    class InterruptionError(Exception):
        pass

    def stop(status):
        raise InterruptionError

    monkeypatch.setattr(size, "_epoch_seconds", lambda job, left: 1e-9)
    task = TASKS["lm"]
    watch = Watch(stop)
    with pytest.raises(InterruptionError):
        run_once(run, task, watch)
    monkeypatch.setattr(size, "_epoch_seconds", lambda job, left: 1e9)
    chosen, told = run(task, resume=True)
    assert chosen["model"]["hidden_size"] == 512
    assert not any("Chosen" in message for message in told)
    with pytest.raises(ConfigError, match=r"model.hidden_size is 100, but was 512"):
        run(task, settings={"model.hidden_size": 100}, resume=True)


def run_once(run, task, watch):
    torch.manual_seed(0)
    original = Watch.of
    try:
        Watch.of = staticmethod(lambda given: watch)
        run(task)
    finally:
        Watch.of = original


@pytest.mark.parametrize(
    ("tokens", "expected"), [(1, 128), (50_000, 128), (160_000, 512), (10**9, 2048)]
)
def test_a_batch_suits_the_data(tokens, expected):
    settings = settings_for(TranslateRun)
    assert with_batch_tokens(settings, tokens).train.batch_tokens == expected
    given = settings_for(TranslateRun, overrides={"train.batch_tokens": 77})
    assert with_batch_tokens(given, tokens).train.batch_tokens == 77


def test_a_run_of_before_goes_on_with_its_own_batch(run, tmp_path):
    """Its config.toml names a batch; the command that began it did not."""
    task = TASKS["lm"]
    before, _ = run(task, minutes=None, epochs=1, settings={"train.batch_tokens": 99})
    assert before["train"]["batch_tokens"] == 99
    again, _ = run(task, minutes=None, epochs=1, resume=True)
    assert again == before
