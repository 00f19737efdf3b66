"""A bounded hunt in every run of the tests; `make fuzz N=…` hunts on."""

import contextlib
import os
import subprocess
import sys
from pathlib import Path

import pytest
from faults.folders import damaged_folders, damaged_runs, fitted_folders
from faults.harness import Case, fall_of, hunt, warm_up
from faults.inputs import hostile_inputs
from faults.options import hostile_options
from faults.vectors import hostile_models, hostile_vectors
from hypothesis import given, settings
from hypothesis import strategies as st

from unrolled.config import parse_overrides, sections, settings_for
from unrolled.errors import ConfigError
from unrolled.tasks import TASKS

pytestmark = [pytest.mark.trains, pytest.mark.arithmetic]
EVERY = {"ngram": 9, "import": 7}  # operations between two kills; a run of many steps has hundreds
SETTINGS = sorted(
    {
        f"{name}.{key}"
        for task in TASKS.values()
        for name, section in sections(task.settings).items()
        for key in section.model_fields
    }
)


@pytest.fixture(scope="module", autouse=True)
def warm():
    warm_up()


@pytest.mark.parametrize(
    ("kind", "count"),
    [
        (damaged_folders, 60),
        (fitted_folders, 120),
        (damaged_runs, 12),
        (hostile_inputs, 60),
        (hostile_vectors, 60),
        (hostile_models, 30),
        (hostile_options, 100),
    ],
    ids=lambda value: getattr(value, "__name__", None),
)
def test_nothing_falls(kind, count, tmp_path):
    fallen = [*hunt(kind(tmp_path), count, seed=0)]
    assert not fallen, "\n\n".join(fallen)


@pytest.mark.parametrize("task", [*TASKS, "import"])
def test_a_kill_at_any_file_operation_costs_nothing(task, tmp_path):
    script = Path(__file__).with_name("kill_saves.py")
    every = str(EVERY.get(task, 211))
    done = subprocess.run(
        [sys.executable, script, tmp_path, task, every, "5"],
        env={**os.environ, "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    assert int(done.stdout.split()[-1]) >= 1


@settings(max_examples=300)
@given(st.sampled_from([*TASKS]), st.sampled_from(SETTINGS) | st.text(), st.text() | st.floats())
def test_any_setting_is_taken_or_refused_in_a_sentence(task, name, value):
    with contextlib.suppress(ConfigError):
        settings_for(TASKS[task].settings, overrides=parse_overrides([f"{name}={value}"]))


@pytest.mark.parametrize("problem", ["traceback", "slow", "large", "nan", "silent", "code"])
def test_a_fall_is_seen(problem, monkeypatch):
    from faults import harness

    def broken(arguments):
        if problem == "traceback":
            raise TypeError("'NoneType' object is not subscriptable")
        if problem == "slow":
            monkeypatch.setattr(harness, "SECONDS", -1.0)
        if problem == "large":
            monkeypatch.setattr(harness, "MEGABYTES", -1)
        if problem == "nan":
            print("perplexity  nan")
        return {"silent": 3, "code": 1}.get(problem, 0)

    monkeypatch.setattr(harness, "main", broken)
    assert fall_of(Case(["info"], problem)) is not None
