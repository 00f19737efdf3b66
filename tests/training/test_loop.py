"""The training loop: what it records, when it ends, how it stops, and what it never saves."""

import itertools
import json
import math
import os
import resource
import signal
from types import SimpleNamespace

import pytest
import safetensors.torch
import torch

from unrolled.errors import NumericError, Stopped, StorageError
from unrolled.store.files import TEMPORARY, write_folder
from unrolled.tasks.language.model import RecurrentLanguageModel
from unrolled.tasks.language.settings import LanguageRun, LanguageSettings
from unrolled.tasks.shared.language_job import LanguageJob, language_job
from unrolled.tasks.shared.lines import Lines
from unrolled.training.clock import Dev
from unrolled.training.loop import Trainer
from unrolled.training.run_folder import RunFolder

pytestmark = [pytest.mark.arithmetic, pytest.mark.trains]


def at_step(number, action):
    """A watch that acts once, after that step."""

    def watch(status):
        if status.step == number:
            action()

    return watch


def test_every_step_and_every_epoch_is_recorded(run, metrics):
    rows = metrics(run("out", epochs=3))
    steps = [row for row in rows if "loss" in row]
    epochs = [row for row in rows if "dev_loss" in row]
    assert [row["step"] for row in steps] == list(range(1, len(steps) + 1))
    assert all(row["gradient_norm"] > 0 and row["learning_rate"] > 0 for row in steps)
    assert [row["epoch"] for row in epochs] == [1, 2, 3]
    assert epochs[-1]["step"] == len(steps)


@pytest.mark.parametrize("context", ["stream", "line"])
def test_the_first_row_describes_the_data(run, texts, context):
    out = run("out", {"model.context": context, "tokens.min_count": 10})
    facts = json.loads((out / "metrics.jsonl").read_text().partition("\n")[0])
    words = texts["train"].read_text().split()
    assert facts["lines"] == 60
    assert facts["tokens"] == len(words) + 60
    assert facts["unknown"] == sum(words.count(word) < 10 for word in words)
    assert facts["vocabulary"] == 4 + sum(words.count(word) >= 10 for word in set(words))
    assert 0.0 <= facts["padding"] < 0.2


@pytest.mark.row("H2")
@pytest.mark.parametrize("optimizer", ["sgd", "adam", "adamw"])
@pytest.mark.parametrize("context", ["stream", "line"])
def test_it_learns(run, metrics, tmp_path, optimizer, context):
    text = tmp_path / "counting.txt"
    text.write_text("one two three four five six\n" * 60)
    settings = {
        "train.optimizer": optimizer,
        "train.learning_rate": 4.0 if optimizer == "sgd" else 0.05,
        "model.context": context,
        "model.dropout": 0.0,
        "train.checkpoint_seconds": 100,
    }
    rows = metrics(run("out", settings, train=text, dev=text, epochs=25))
    losses = [row["dev_loss"] for row in rows if "dev_loss" in row]
    assert losses[0] > 1.5
    assert losses[-1] < 0.5


@pytest.fixture
def dev_losses(monkeypatch):
    """Let the dev data judge the epochs as a script says, whatever the model has learned."""

    def follow(script):
        measures = iter([Dev("loss", loss, loss) for loss in script])
        monkeypatch.setattr(LanguageJob, "dev", lambda self: next(measures))

    return follow


def test_the_plateau_schedule_lowers_the_rate_and_early_stop_ends_the_run(run, metrics, dev_losses):
    settings = {
        "train.learning_rate": 0.01,
        "train.schedule": "plateau",
        "train.patience": 2,
        "train.decay": 0.25,
        "train.early_stop": 5,
    }
    dev_losses([4.0, 3.0, 3.0, 3.5, 2.0, 2.5, 2.0, 2.1, 2.2, 2.3, 1.0])
    rows = metrics(run("out", settings, epochs=40))
    rates = {}  # of the first step of each epoch
    epoch = 1
    for row in rows:
        if "loss" in row:
            rates.setdefault(epoch, row["learning_rate"])
        else:
            epoch = row["epoch"] + 1
    # Flat twice after epoch 2, and twice and twice again after epoch 5, the best, which 5 follow.
    falls = [1, 1, 1, 1, 4, 4, 4, 16, 16, 64]
    assert [rates[epoch] for epoch in sorted(rates)] == [0.01 / fall for fall in falls]


def test_minutes_end_the_run_and_the_schedule_fits_itself_to_them(run, metrics, monkeypatch):
    looks = itertools.count()  # at the clock, on which a millisecond passes between two
    slow = SimpleNamespace(monotonic=lambda: next(looks) / 1000)
    monkeypatch.setattr("unrolled.training.clock.time", slow)
    rows = metrics(run("out", epochs=None, minutes=0.02))
    rates = [row["learning_rate"] for row in rows if "loss" in row]
    assert "dev_loss" in rows[-1]
    assert rates == sorted(rates, reverse=True)
    assert rates[-1] < 0.2 * rates[0]


@pytest.mark.parametrize(("scoring", "last"), [(0.0, 1.2), (0.3, 0.9), (9.0, 0.72)])
def test_what_scoring_will_take_is_kept_of_the_minutes(run, monkeypatch, scoring, last):
    looks = itertools.count()
    slow = SimpleNamespace(monotonic=lambda: next(looks) / 1000)
    monkeypatch.setattr("unrolled.training.clock.time", slow)
    monkeypatch.setattr(LanguageJob, "scoring_seconds", lambda job, dev_seconds: scoring)
    out = run("out", epochs=None, minutes=0.02)
    times = [json.loads(line) for line in (out / "times.jsonl").read_text().splitlines()]
    assert times[-1]["seconds"] == pytest.approx(last, abs=0.06)


def test_a_run_of_minutes_may_have_a_number_of_epochs_that_is_enough(run, metrics):
    rows = metrics(run("out", {"train.max_epochs": 2}, epochs=None, minutes=60))
    assert [row["epoch"] for row in rows if "epoch" in row] == [1, 2]
    rates = [row["learning_rate"] for row in rows if "loss" in row]
    assert rates[-1] < 0.2 * rates[0]  # the schedule has come to its end


def test_no_time_at_all_still_makes_a_step(run, metrics):
    rows = metrics(run("out", epochs=None, minutes=1e-9))
    assert [row["step"] for row in rows] == [1, 1]


def test_time_that_ran_out_in_the_middle_of_an_epoch_still_ends_in_a_model(run, metrics):
    def stop():
        os.kill(os.getpid(), signal.SIGTERM)

    with pytest.raises(Stopped):
        run("out", epochs=None, minutes=1e-9, watch=at_step(1, stop))
    out = run("out", epochs=None, minutes=1e-9, resume=True)
    assert [row["step"] for row in metrics(out)] == [1, 1]


@pytest.mark.parametrize(
    ("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGHUP, 129)]
)
def test_a_signal_saves_and_the_resumed_run_ends_in_the_same_bytes(run, bytes_of, number, code):
    settings = {"train.checkpoint_seconds": 1000, "model.first_state": "learned"}
    stop = at_step(4, lambda: os.kill(os.getpid(), number))
    with pytest.raises(Stopped, match=r"stopped at step 4; a checkpoint is saved\.") as stopped:
        run("out", settings, watch=stop)
    assert stopped.value.exit_code == code
    assert signal.getsignal(number) in (signal.default_int_handler, signal.SIG_DFL)
    assert bytes_of(run("out", settings, resume=True)) == bytes_of(run("whole", settings))


def test_a_hang_up_that_is_ignored_as_under_nohup_ends_nothing(run):
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        out = run("out", watch=at_step(2, lambda: os.kill(os.getpid(), signal.SIGHUP)))
    finally:
        signal.signal(signal.SIGHUP, before)
    assert (out / "MANIFEST.json").exists()


def test_a_step_and_an_epoch_tell_the_total_beside_the_mean(run, metrics):
    rows = metrics(run("out", epochs=1))
    steps, epoch = rows[:-1], rows[-1]
    totals = [row["total_loss"] for row in steps]
    assert epoch["total_train_loss"] == pytest.approx(sum(totals), rel=1e-12)
    counts = [row["total_loss"] / row["loss"] for row in steps]
    assert counts == pytest.approx([round(count) for count in counts], rel=1e-9)
    assert epoch["train_loss"] == pytest.approx(sum(totals) / sum(counts), rel=1e-9)


def test_a_signal_while_the_last_epoch_is_judged_saves_too(run, bytes_of, metrics):
    last = metrics(run("whole"))[-1]["step"]
    stop = at_step(last, lambda: os.kill(os.getpid(), signal.SIGINT))
    with pytest.raises(Stopped):
        run("out", watch=stop)
    assert bytes_of(run("out", resume=True)).keys() == bytes_of(run("again")).keys()


def test_a_second_ctrl_c_stops_at_once(run):
    def twice():
        for _ in range(2):
            os.kill(os.getpid(), signal.SIGINT)

    with pytest.raises(KeyboardInterrupt):
        run("out", watch=at_step(3, twice))


OVERFLOWING = {
    "train.optimizer": "sgd",
    "train.learning_rate": 3e38,
    "train.weight_decay": 1e4,
    "train.schedule": "constant",
}


@pytest.mark.row("G5")
@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"train.learning_rate": 1e38}, r"after step 1 tensor model\.\S+ has \d+ of \d+ values"),
        (
            {"train.optimizer": "sgd", "train.learning_rate": 1e38, "train.clip": 1e30},
            r"at step 2 the loss is (nan|inf).*Try a lower train\.learning_rate \(now 1e\+38\)",
        ),
        (
            OVERFLOWING,
            r"after step 1 tensor model\.\S+ has \d+ of \d+ values",
        ),
        (
            {**OVERFLOWING, "train.checkpoint_seconds": 100},
            r"at step 2 the loss is nan \(weight \S+ is not finite\)",
        ),
    ],
)
def test_numbers_that_went_wrong_stop_the_run_and_are_never_saved(run, tmp_path, settings, message):
    with pytest.raises(NumericError, match=message):
        run("out", settings)
    for folder in (tmp_path / "out" / "checkpoints").iterdir():
        saved = RunFolder(tmp_path / "out").restore()
        assert saved is not None, folder
        assert all(t.isfinite().all() for t in saved[1].values() if t.is_floating_point())
    assert not (tmp_path / "out" / "MANIFEST.json").exists()


def test_dev_data_of_which_the_model_says_no_number_end_the_run(run, monkeypatch, tmp_path):
    def overflows(job):
        raise NumericError("its states grow")

    monkeypatch.setattr(LanguageJob, "dev", overflows)
    message = (
        r"at step \d+ what the model says of the dev data is not a number\. Nothing.*lower train"
    )
    with pytest.raises(NumericError, match=message):
        run("out", epochs=1)
    assert not (tmp_path / "out" / "MANIFEST.json").exists()


@pytest.mark.row("G5")
def test_a_gradient_that_is_not_finite_is_named(tmp_path):
    settings = LanguageRun(model=LanguageSettings(hidden_size=4))
    lines = ["the cat sat", "a dog ran"] * 9
    data = {"train": Lines(lines, "a", {}), "dev": Lines(lines, "b", {})}
    job = language_job(RecurrentLanguageModel, settings, data)
    job.model.network.stack.weight_hh_l0.register_hook(lambda gradient: gradient / 0.0)
    folder = RunFolder(tmp_path / "out")
    with folder.locked():
        folder.begin(settings)
        message = (
            r"at step 1 the gradient of stack\.weight_hh_l0 is (inf|nan)\. Nothing of it is saved"
        )
        with pytest.raises(NumericError, match=message):
            Trainer(job, folder, lambda status: None).run()
    assert not [*folder.checkpoints.iterdir()]


def test_a_checkpoint_that_was_made_with_nan_in_it_is_noticed(run, tmp_path):
    with pytest.raises(Stopped):
        run("out", watch=at_step(3, lambda: os.kill(os.getpid(), signal.SIGINT)))
    folder = RunFolder(tmp_path / "out")
    _, tensors = folder.restore()
    tensors["model.stack.weight_hh_l0"][0, 0] = math.nan
    state = (folder.step_folder(3) / "state.json").read_bytes()
    files = {"state.json": state, "state.safetensors": safetensors.torch.save(tensors)}
    write_folder(folder.step_folder(3), files)
    assert folder.restore()[0].step == 2  # the one before


def test_a_disk_that_fills_up_costs_no_checkpoint(run, tmp_path, bytes_of):
    """RLIMIT_FSIZE refuses the write as a full disk does."""
    unlimited = (resource.RLIM_INFINITY, resource.RLIM_INFINITY)

    def fill():
        resource.setrlimit(resource.RLIMIT_FSIZE, (700, resource.RLIM_INFINITY))

    try:
        with pytest.raises(StorageError, match=r"File too large") as refused:
            run("out", watch=at_step(5, fill))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, unlimited)
    assert refused.value.exit_code == 5
    out = tmp_path / "out"
    assert not [path for path in out.rglob(TEMPORARY + "*")]
    progress, _ = RunFolder(out).restore()
    assert progress.step == 4
    assert bytes_of(run("out", resume=True)) == bytes_of(run("whole"))


@pytest.mark.row("H12")
def test_the_best_model_is_kept_not_the_last(run, metrics, dev_losses):
    dev_losses([3.0, 1.0, 2.0])
    out = run("out", {"train.schedule": "constant"}, epochs=3)
    steps = [row["step"] for row in metrics(out) if "dev_loss" in row]
    best = RunFolder(out).best_folder(steps[1])
    kept, wanted = (weights_of(folder) for folder in (out, best))
    assert all(torch.equal(kept[name], value) for name, value in wanted.items())
    dev_losses([3.0, 2.0, 1.0])
    last = weights_of(run("last", {"train.schedule": "constant"}, epochs=3))
    assert not all(torch.equal(last[name], value) for name, value in wanted.items())


def weights_of(folder):
    """Those of the network, and in a finished folder its baseline's."""
    return safetensors.torch.load_file(folder / "model.safetensors")
