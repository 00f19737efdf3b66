"""Every recipe is taken as the command takes it: its settings are known, its command is one."""

import re
import shlex
import tomllib
from pathlib import Path

import pytest

from unrolled.app.cli import main
from unrolled.app.commands import train as command
from unrolled.config import to_toml
from unrolled.errors import ConfigError
from unrolled.tasks import run
from unrolled.tasks.run import run_settings

FOLDER = Path(__file__).parents[1] / "recipes"
RECIPES = sorted(FOLDER.glob("*.toml"))
every_recipe = pytest.mark.parametrize("recipe", RECIPES, ids=lambda path: path.stem)


def values_of(recipe):
    return tomllib.loads(recipe.read_text(encoding="utf-8"))


def settings_of(recipe):
    """As `--config` gives them."""
    return run_settings(values_of(recipe)["task"], recipe, {}, {})


def commands_in(recipe):
    """The lines that begin with `unrolled` in the opening comment, joined where they go on."""
    comment = re.findall(r"^#(.*)$", recipe.read_text(encoding="utf-8"), re.MULTILINE)
    joined = "\n".join(comment).replace("\\\n", " ")
    return [shlex.split(line)[1:] for line in joined.split("\n") if line.startswith("   unrolled ")]


def test_there_are_recipes():
    assert len(RECIPES) >= 13


@every_recipe
def test_every_value_of_a_recipe_is_a_setting_of_its_task(recipe):
    values = values_of(recipe)
    taken = tomllib.loads(to_toml(settings_of(recipe)))
    for section, own in values.items():
        for key, value in own.items() if isinstance(own, dict) else []:
            assert taken[section][key] == value, f"{section}.{key}"
    assert (taken["task"], taken["seed"]) == (values["task"], values["seed"])


@every_recipe
def test_a_key_that_is_not_one_is_refused(recipe, tmp_path):
    """Nothing in a recipe is passed over: each key misspelt is an error that names it."""
    text, wrong = recipe.read_text(encoding="utf-8"), tmp_path / "wrong.toml"
    keys = [key for own in values_of(recipe).values() if isinstance(own, dict) for key in own]
    assert keys
    for key in keys:
        wrong.write_text(re.sub(rf"^{key} = ", f"{key}x = ", text, flags=re.MULTILINE))
        with pytest.raises(ConfigError, match=f"is '{key}x', but must be one of"):
            run_settings(values_of(recipe)["task"], wrong, {}, {})


@every_recipe
def test_the_command_of_a_recipe_is_understood(recipe, tmp_path, monkeypatch):
    """All that the command line says reaches the run; only the run itself is left out."""
    seen = []

    def noted(settings, sources, out, **_):
        seen.append((settings, sources, out))

    monkeypatch.setattr(run, "run_training", noted)
    monkeypatch.setattr(command, "show", lambda out, task, *, json: None)
    monkeypatch.chdir(FOLDER.parent)
    first, *others = commands_in(recipe)
    assert f"recipes/{recipe.name}" in first
    for words in (first, *others):
        assert main([*words, "--out", str(tmp_path / "out")]) == 0
    settings, sources, _ = seen[0]
    languages = {"languages"} if "--from" in first else set()
    assert settings.model_dump(exclude=languages) == settings_of(recipe).model_dump(
        exclude=languages
    )
    assert str(sources.train) == first[first.index("--train") + 1]
