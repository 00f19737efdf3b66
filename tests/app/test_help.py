"""Help that a person can read: every setting of every task, in words."""

from pathlib import Path

import pytest

from unrolled.app.cli import main
from unrolled.config import flat
from unrolled.config.describe import Setting, settings_in_words, settings_page
from unrolled.tasks import TASKS

PAGE = Path(__file__).parents[2] / "docs" / "settings.md"
every_task = pytest.mark.parametrize("task", TASKS.values(), ids=lambda task: task.name)


def help_of(capsys, monkeypatch, *command):
    monkeypatch.setenv("COLUMNS", "80")
    assert main([*command, "--help"]) == 0
    return capsys.readouterr().out


@every_task
def test_every_setting_says_what_it_is_in_a_line(task):
    for setting in settings_in_words(task.settings):
        assert setting.about, setting.name
        assert len(setting.about) <= 90, setting.name
        assert setting.about[0].isupper() or setting.about[0] == "α"
        assert setting.about.endswith("."), setting.name
        assert setting.allowed, setting.name


@every_task
def test_the_defaults_that_are_told_are_those_in_force(task):
    chosen = flat(task.settings().model_dump(exclude_none=True))
    for setting in settings_in_words(task.settings):
        value = chosen.get(setting.name)
        if "0: as suits" in setting.about:
            assert setting.default == "0"
        elif value is None or value == ():
            assert setting.default == "–"
        elif isinstance(value, bool):
            assert setting.default == str(value).lower()
        elif isinstance(value, int | float):
            as_suits = setting.default == "0" and "0: as suits" in setting.about
            assert as_suits or float(setting.default) == value
        else:
            assert setting.default == value


@every_task
def test_help_for_a_task_lists_its_settings(task, capsys, monkeypatch):
    told = help_of(capsys, monkeypatch, "train", task.name)
    assert max(map(len, told.splitlines())) <= 80
    for setting in settings_in_words(task.settings):
        assert f"│ {setting.option} " in told, setting.option
    for way in ("--hidden-size 200", "--set model.hidden_size=200", "[model]", 'settings={"model.'):
        assert way in told


def test_help_names_types_and_bounds_as_people_do(capsys, monkeypatch):
    told = help_of(capsys, monkeypatch, "train", "lm")
    for jargon in ("<str>", "<int", "list[", "9223372036854775807", "<=", "pathlib"):
        assert jargon not in told.replace("TASK      <str>", "")
    assert "[whole number, 0 or more]" in told
    assert "[number, above 0, below 1]" in told


def test_help_without_a_task_stays_short(capsys, monkeypatch):
    assert "--hidden-size   " not in help_of(capsys, monkeypatch, "train")


def test_a_setting_that_takes_the_place_of_another_keeps_its_description():
    found = {setting.name: setting for setting in settings_in_words(TASKS["tag"].settings)}
    assert found["train.clip"] == Setting(
        "train.clip", "5", "number, above 0", "The gradients' global norm at most."
    )


def test_the_page_of_settings_is_what_the_settings_say():
    page = settings_page({name: task.settings for name, task in TASKS.items()})
    assert PAGE.read_text(encoding="utf-8") == page, "run `make settings`"
