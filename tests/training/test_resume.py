"""A run goes on to the same bytes after any kill, and only as the run it was."""

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from unrolled.errors import ConfigError, DataError, ModelError, Stopped, StorageError
from unrolled.store.files import FolderLock, read_folder
from unrolled.tasks.folder import load
from unrolled.training.progress import Progress
from unrolled.training.run_folder import RunFolder
from unrolled.training.watch import Watch

pytestmark = [pytest.mark.arithmetic, pytest.mark.trains]


@pytest.mark.row("H12")
@pytest.mark.parametrize("scenario", ["stream", "line", "seldom"])
def test_killed_at_any_moment_it_ends_in_the_same_bytes(tmp_path, scenario):
    script = Path(__file__).with_name("kill_runs.py")
    done = subprocess.run(
        [sys.executable, script, tmp_path, scenario, "2", "7"],
        env={**os.environ, "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) >= 2


def stopped_at(run, step, name="out", settings=None, **options):
    def watch(status):
        if status.step == step:
            os.kill(os.getpid(), signal.SIGINT)

    with pytest.raises(Stopped):
        run(name, settings, watch=watch, **options)


def test_when_a_checkpoint_is_written_changes_no_number(run, bytes_of):
    often = bytes_of(run("often", {"train.checkpoint_seconds": 0}))
    seldom = bytes_of(run("seldom", {"train.checkpoint_seconds": 1000}))
    changed = {name for name in often if often[name] != seldom[name]}
    assert changed == {"config.toml", "README.md", "MANIFEST.json"}  # they quote the setting


def test_a_run_may_go_on_with_other_checkpoint_seconds_and_threads(run, bytes_of):
    stopped_at(run, 3)
    out = run("out", {"train.checkpoint_seconds": 1000, "train.threads": 1}, resume=True)
    assert bytes_of(out) == bytes_of(run("whole"))


def test_a_run_goes_on_with_the_threads_that_it_began_with(run, bytes_of):
    stopped_at(run, 3)
    torch.set_num_threads(2)  # as on another machine
    resumed = bytes_of(run("out", resume=True))
    assert torch.get_num_threads() == 1
    assert resumed == bytes_of(run("whole"))


def test_other_threads_than_the_run_began_with_are_told_of(run):
    told = []
    watch = Watch()
    watch.remark = told.append
    stopped_at(run, 3)
    out = run("out", {"train.threads": 2}, watch=watch, resume=True)
    assert told == [
        "--threads is 2, but the run began with 1: it goes on, and ends in other bytes than it "
        "would have."
    ]
    assert (out / "MANIFEST.json").exists()


def test_a_run_that_is_under_way_says_so_to_whoever_opens_its_folder(run, tmp_path):
    stopped_at(run, 3)
    out = tmp_path / "out"
    with pytest.raises(ModelError, match="has not finished; run the same command with --resume"):
        load(out)
    with FolderLock(out), pytest.raises(ModelError) as error:
        load(out)
    assert f"a run that is under way (pid {os.getpid()}); wait for it to end." in str(error.value)
    assert "--resume" not in str(error.value)


def test_a_run_that_is_not_there_yet_is_begun_by_resume(run, bytes_of):
    assert bytes_of(run("out", resume=True)) == bytes_of(run("whole"))


@pytest.mark.parametrize(
    ("settings", "options", "message"),
    [
        ({"train.clip": 3.0}, {}, r"--resume: train\.clip is 3\.0, but was 1\.0 when the run in"),
        ({"model.cell": "gru"}, {}, r"model\.cell is 'gru', but was 'lstm' when"),
        ({"train.early_stop": 2}, {}, r"train\.early_stop is 2, but was not set when"),
        (
            {},
            {"epochs": 5},
            r"train\.epochs is 5, but was 2 when the run in .+out began\. Give the",
        ),
        ({}, {"seed": 9}, r"seed is 9, but was 1 when"),
        (
            {},
            {"dev": None},
            r"the dev text is not the one that the run in .+out began with\. Give",
        ),
        ({}, {"test": "dev"}, r"the test text is not the one"),
        ({}, {"train": "dev"}, r"the train text is not the one"),
    ],
)
@pytest.mark.parametrize("finished", [False, True])
def test_another_run_is_refused_by_the_name_of_what_differs(
    run, texts, settings, options, message, finished
):
    if finished:
        run("out")
    else:
        stopped_at(run, 2)
    given = {name: texts["dev"] if value == "dev" else value for name, value in options.items()}
    with pytest.raises(ConfigError, match=message):
        run("out", settings, resume=True, **given)


def test_a_text_with_other_words_in_the_same_places_is_another_text(run, texts):
    stopped_at(run, 2)
    texts["train"].write_text(texts["train"].read_text().replace("cat", "dog"))
    with pytest.raises(ConfigError, match="the train text is not the one"):
        run("out", resume=True)


def test_a_finished_run_is_left_as_it_is(run, bytes_of):
    before = bytes_of(run("out"))
    assert bytes_of(run("out", resume=True)) == before


def test_a_run_is_not_begun_twice(run):
    run("out")
    with pytest.raises(
        ConfigError, match=r"already holds a run\. Choose another folder, or add --r"
    ):
        run("out")


def test_a_second_trainer_is_refused_with_the_pid_of_the_first(run, tmp_path):
    (tmp_path / "out").mkdir()
    with (
        FolderLock(tmp_path / "out"),
        pytest.raises(StorageError, match=rf"another process \(pid {os.getpid()}\) is training"),
    ):
        run("out")


def test_two_real_trainers(run, texts, tmp_path):
    code = "import sys; from unrolled.app.cli import main; sys.exit(main(sys.argv[1:]))"
    arguments = [f"--train={texts['train']}", f"--out={tmp_path / 'out'}", "--minutes=5"]
    command = [sys.executable, "-c", code, "train", "lm", *arguments, "--threads=1"]
    settings = ["--set=model.hidden_size=8", "--set=train.checkpoint_seconds=0"]
    first = subprocess.Popen([*command, *settings], stderr=subprocess.PIPE)
    try:
        while not [*tmp_path.glob("out/checkpoints/step-*")]:
            assert first.poll() is None
            time.sleep(0.05)
        with pytest.raises(StorageError, match=rf"another process \(pid {first.pid}\)"):
            run("out", resume=True)
        first.send_signal(signal.SIGTERM)
        _, said = first.communicate(timeout=60)
    finally:
        first.kill()
        first.wait()
    assert first.returncode == 143
    assert b"a checkpoint is saved. The same command with --resume goes on from there." in said
    assert b"Traceback" not in said


def test_a_folder_with_other_things_is_refused_and_left_as_it_is(run, tmp_path):
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "thesis.txt").write_text("mine")
    with pytest.raises(
        ConfigError, match=r"holds no run, but 'thesis\.txt'\. Choose a new or empty"
    ):
        run("out")
    assert [path.name for path in (tmp_path / "out").iterdir()] == ["thesis.txt"]


def test_wrong_data_leaves_no_folder_behind(run, tmp_path):
    (tmp_path / "empty.txt").write_text("\n \n")
    with pytest.raises(DataError, match="holds no text, but there must be some to learn from"):
        run("out", train=tmp_path / "empty.txt")
    assert not (tmp_path / "out").exists()


def damage(path: Path) -> None:
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(bytes(data))


@pytest.mark.parametrize("file", ["state.json", "state.safetensors", "MANIFEST.json"])
def test_a_damaged_checkpoint_is_passed_over_for_the_one_before(run, tmp_path, bytes_of, file):
    stopped_at(run, 7)
    damage(RunFolder(tmp_path / "out").step_folder(7) / file)
    progress, _ = RunFolder(tmp_path / "out").restore()
    assert progress.step == 6
    assert bytes_of(run("out", resume=True)) == bytes_of(run("whole"))


def test_each_kept_checkpoint_has_its_own_best_model(run, tmp_path):
    """The epoch ends after step 3: step 6 is the last of epoch 2, and step 7 knows a new best."""
    stopped_at(run, 7)
    folder = RunFolder(tmp_path / "out")
    for path in folder.checkpoints.glob("step-*"):
        state = json.loads((path / "state.json").read_text())
        if state["best_step"] is not None:
            read_folder(folder.best_folder(state["best_step"]), required=["config.toml"])


def test_a_checkpoint_without_its_best_model_does_not_count(run, tmp_path, bytes_of):
    stopped_at(run, 7)
    folder = RunFolder(tmp_path / "out")
    best = json.loads((folder.step_folder(7) / "state.json").read_text())["best_step"]
    shutil.rmtree(folder.best_folder(best))
    shutil.rmtree(folder.step_folder(6))
    with pytest.raises(ModelError, match=r"best-\d+: no such folder"):
        folder.restore()


@pytest.mark.parametrize("values", [{"finished": True}, {"epoch": 1}, {"epoch": 9, "batch": 2}])
def test_a_checkpoint_beyond_an_epoch_has_a_best_step(values):
    assert Progress.from_json(replace(Progress(), **values, best_step=3).to_json()).best_step == 3
    with pytest.raises(ValueError, match="beyond an epoch, but no step is the best"):
        Progress.from_json(replace(Progress(), **values).to_json())


def test_metrics_that_were_cut_off_are_noticed(run, tmp_path):
    stopped_at(run, 3)
    (tmp_path / "out" / "metrics.jsonl").write_text("")
    with pytest.raises(
        ModelError, match=r"metrics\.jsonl: is cut off; train again in another --out"
    ):
        run("out", resume=True)


def test_settings_that_cannot_be_read_are_named(run, tmp_path):
    stopped_at(run, 3)
    (tmp_path / "out" / "config.toml").write_text("[train]\nfuture = 1\n")
    with pytest.raises(ModelError, match=r"config\.toml: does not hold the settings of this run: "):
        run("out", resume=True)


def test_fingerprints_that_are_missing_are_named(run, tmp_path):
    stopped_at(run, 3)
    (tmp_path / "out" / "data.json").unlink()
    with pytest.raises(ModelError, match=r"data\.json: is missing or damaged; train again"):
        run("out", resume=True)


@pytest.mark.parametrize("link", [os.symlink, os.link])
@pytest.mark.parametrize("name", ["metrics.jsonl", "times.jsonl"])
def test_rows_are_not_appended_to_a_file_that_lies_elsewhere_too(run, tmp_path, name, link):
    stopped_at(run, 3)
    other = tmp_path / "other"
    (tmp_path / "out" / name).touch()
    (tmp_path / "out" / name).rename(other)
    before = other.read_bytes()
    link(other, tmp_path / "out" / name)
    with pytest.raises(ModelError, match=rf"{name}: (is a symbolic link|has 2 hard links), but"):
        run("out", resume=True)
    assert other.read_bytes() == before


def test_checkpoints_that_lie_elsewhere_are_refused(run, tmp_path):
    stopped_at(run, 3)
    checkpoints = tmp_path / "out" / "checkpoints"
    checkpoints.rename(tmp_path / "other")
    checkpoints.symlink_to(tmp_path / "other")
    with pytest.raises(ModelError, match=r"checkpoints: is a symbolic link, but must lie in its"):
        run("out", resume=True)
    checkpoints.unlink()
    (tmp_path / "other").rename(checkpoints)
    (checkpoints / "step-00000009").symlink_to(tmp_path)
    with pytest.raises(ModelError, match=r"step-00000009: is a symbolic link, but must lie in its"):
        run("out", resume=True)


def test_what_a_user_keeps_in_the_folder_of_a_run_stays(run, tmp_path):
    stopped_at(run, 3)
    notes = tmp_path / "out" / ".tmp-notes"
    notes.mkdir()
    (notes / "a").write_text("mine")
    run("out", resume=True)
    assert (notes / "a").read_text() == "mine"


def test_settings_that_were_emptied_are_damage(run, tmp_path):
    stopped_at(run, 3)
    (tmp_path / "out" / "config.toml").write_bytes(b"")
    with pytest.raises(
        ModelError, match=r"config\.toml: is damaged: it names no task; train again"
    ):
        run("out", resume=True)
