"""Every task from data to use, without naming one: what the list of tasks promises of each."""

import json
import os
import re
import shutil
import signal
from pathlib import Path

import pytest
from golden_data import TRAIN, write_data

from unrolled.app.cli import main
from unrolled.config import parse_options, parse_overrides, sections
from unrolled.config.describe import choices
from unrolled.errors import Stopped
from unrolled.store.names import CARD, TIMES
from unrolled.tasks import TASKS
from unrolled.tasks.folder import load
from unrolled.tasks.run import train

pytestmark = [pytest.mark.arithmetic, pytest.mark.trains]
every_task = pytest.mark.parametrize("task", TASKS.values(), ids=lambda task: task.name)
SPLITS = ("train", "dev", "test")


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    folder = tmp_path_factory.mktemp("tiny") / "data"
    write_data(folder)
    return folder


def options(task, data):
    return [option.format(data=data) for option in TRAIN[task.name]]


def paths(task, data):
    pairs = (option.removeprefix("--").partition("=") for option in options(task, data))
    return {name: path for name, _, path in pairs if name in SPLITS}


def settings(task, data):
    """What the command gives beside the data, by dotted name."""
    words = [o for o in options(task, data) if o.removeprefix("--").partition("=")[0] not in SPLITS]
    chosen = [word.removeprefix("--set=") for word in words if word.startswith("--set=")]
    others = [word for word in words if not word.startswith("--set=")]
    return parse_overrides(chosen) | parse_options(task.settings, others)


def everything(out: Path) -> dict[str, bytes]:
    files = (path for path in out.iterdir() if path.is_file())
    return {path.name: path.read_bytes() for path in files if path.name not in (".lock", TIMES)}


def compare_with_itself(out: Path, test: str, capsys: pytest.CaptureFixture[str]) -> None:
    """A copy of a model differs from it by nothing, where its scores can be taken apart."""
    twin = out.with_name("twin")
    shutil.copytree(out, twin)
    code = main(["compare", str(out), str(twin), f"--data={test}", "--json"])
    done = capsys.readouterr()
    if code:
        assert "no measure that can be taken line by line" in done.err
        return
    for measure in json.loads(done.out)["measures"]:
        again = measure["models"][str(twin)]
        assert (again["difference"], again["p_randomisation"]) == (0.0, 1.0), measure["measure"]


@every_task
def test_a_task_trains_loads_scores_and_answers(task, data, tmp_path, capsys):
    out = tmp_path / "model"
    assert main(["train", task.name, *options(task, data), f"--out={out}"]) == 0
    assert load(out).settings.task == task.name
    capsys.readouterr()
    assert main(["evaluate", str(out), paths(task, data)["test"], "--json"]) == 0
    report = json.loads(capsys.readouterr().out)
    assert report["scores"]
    assert report["baselines"]
    compare_with_itself(out, paths(task, data)["test"], capsys)
    for name, view in task.views.items():
        asked = [] if view.of_run else [f"--data={paths(task, data)['test']}"]
        picture = tmp_path / f"{name}.svg"
        assert main(["plot", str(out), f"--view={name}", *asked, f"--out={picture}", "--json"]) == 0
        assert json.loads(capsys.readouterr().out), name
        assert picture.read_text(encoding="utf-8").startswith("<svg"), name
    for name, use in task.uses.items():
        required = [field.is_required() for field in use.input.model_fields.values()]
        given = [f"{data}/asked.txt"] if use.by_line else ["the cat"] * sum(required)
        given += [f"--among={data}/asked.txt"] * ("among" in use.options.model_fields)
        assert main([name, str(out), *given, "--json"]) == 0, name
        assert capsys.readouterr().out.strip(), name
    for example in task.examples:
        assert f"unrolled {example}" in (out / CARD).read_text(encoding="utf-8")


@every_task
def test_a_run_that_is_stopped_goes_on_to_the_same_bytes(task, data, tmp_path):
    def stop(status):
        if status.step == 3:
            os.kill(os.getpid(), signal.SIGTERM)

    def run(name, **more):
        out = tmp_path / name
        train(task.name, **paths(task, data), out=out, settings=settings(task, data), **more)
        return everything(out)

    whole = run("whole")
    try:
        assert run("stopped", watch=stop) == whole  # a task that has no steps is done at once
    except Stopped:
        assert run("stopped", resume=True) == whole


@every_task
@pytest.mark.parametrize("rate", [1e4, 1e38])
@pytest.mark.parametrize(("optimizer", "batch"), [("adamw", 10_000), ("sgd", 64)])
def test_an_absurd_learning_rate_ends_in_a_model_or_in_a_sentence(
    task, data, rate, optimizer, batch, tmp_path, capsys
):
    if "learning_rate" not in getattr(task.settings().train, "__dict__", {}):
        pytest.skip("it takes no steps")
    if optimizer not in choices(type(task.settings().train).model_fields["optimizer"].annotation):
        pytest.skip("it has no such optimizer")
    absurd = [f"--learning-rate={rate}", f"--optimizer={optimizer}"]
    absurd += [f"--batch-tokens={batch}"]
    out = tmp_path / "model"
    code = main(["train", task.name, *options(task, data), *absurd, f"--out={out}"])
    told = capsys.readouterr().err
    assert code in (0, 6), told
    if code:
        assert re.search("at step .* train.learning_rate|after step", told)
    else:
        assert all(value.isfinite().all() for value in load(out).tensors().values())


@every_task
def test_without_baselines_there_are_those_that_cost_nothing(task, data, tmp_path, capsys):
    if "baselines" not in type(task.settings().train).model_fields:
        pytest.skip("it has none that take time")
    out = tmp_path / "model"
    given = [*options(task, data), "--no-baselines", "--epochs=1"]
    assert main(["train", task.name, *given, f"--out={out}", "--json"]) == 0
    cheap = {"majority", "uniform", "unigram", "copy", "most_frequent_tag", "zero_vectors"}
    assert set(json.loads(capsys.readouterr().out)["test"]["baselines"]) <= cheap
    assert main(["evaluate", str(out), paths(task, data)["test"], "--json"]) == 0
    assert set(json.loads(capsys.readouterr().out)["baselines"]) <= cheap


@every_task
def test_no_two_sections_have_a_setting_of_one_name(task):
    """An option is the last part of a setting's name."""
    names = [key for section in sections(task.settings).values() for key in section.model_fields]
    assert len(names) == len(set(names))


def test_what_a_use_is_called_means_the_same_in_every_task():
    for name in {use for task in TASKS.values() for use in task.uses}:
        found = [task.uses[name] for task in TASKS.values() if name in task.uses]
        assert len({(use.by_line, use.in_words) for use in found}) == 1, name
