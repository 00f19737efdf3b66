"""Options and settings beyond all measure, on the command line and in a recipe."""

import shutil
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

from faults.folders import changed_toml
from faults.harness import DATA, MODELS, Case, Chance, kept, more_of, uses_of
from faults.vectors import asked_of_vectors
from typer.main import get_command

from unrolled.app.cli import application
from unrolled.config import option_name, sections
from unrolled.store.names import SETTINGS
from unrolled.tasks import TASKS

NUMBERS = [
    *(
        "0",
        "1",
        "-1",
        "2",
        "3",
        "0.5",
        "-0.5",
        "1e-40",
        "1e-320",
        "1e308",
        "-1e308",
        "1e400",
        "nan",
    ),
    *(
        "inf",
        "-inf",
        "9" * 25,
        "-" + "9" * 25,
        "9" * 5000,
        "0x10",
        "1_0",
        "",
        "x",
        "1e3",
        "1.0",
        "²",
    ),
    *("18446744073709551616", "9223372036854775807", "9223372036854775808", "2147483648", "[1]"),
]
WORDS = [
    *NUMBERS,
    "x" * 5000,
    "\x1b[2J",
    "[" * 3000,
    "{a=" * 500,
    "true",
    "'",
    '"',
    "a\nb",
    "0,1,2",
]
WORDS += [
    "0,1180591620717411303424",
    "\udcff",
    "lstm",
    "none",
    "1,0",
    "0,0,-1",
    "2GB",
    "1e99999GB",
    "½",
]
STUDIES = [  # of the lab, those that take no time
    *(["bptt", "cat"], ["graph"], ["draw", "cell"], ["draw", "stack"], ["draw", "window"]),
    *(["activations"], ["clipping"], ["equations", "--id=F7"], ["gradients", "--hidden=4"]),
]


def hostile_options(work: Path) -> Callable[[Chance], Iterator[Case]]:
    """Values of options and settings; settings of a run that finds no data, or only counts."""

    def cases(chance: Chance) -> Iterator[Case]:
        shutil.rmtree(work / "out", ignore_errors=True)
        act = chance.random()
        if act < 0.5:
            yield _use_with_options(work, chance)
        elif act < 0.65:
            yield _recipe(work, chance)
        else:
            yield _setting(work, chance)

    return cases


def _training(task: str, work: Path) -> list[str]:
    source = DATA / "lines.txt" if task == "ngram" else work / "absent"
    return ["train", task, f"--train={source}", f"--out={work / 'out'}"]


def _setting(work: Path, chance: Chance) -> Case:
    task = chance.choice(list(TASKS))
    names = [
        f"{name}.{key}"
        for name, section in sections(TASKS[task].settings).items()
        for key in section.model_fields
    ]
    names += ["seed", "task", "x", "model", "model.x.y", "a" + ".b" * chance.choice([1, 20_000])]
    name = chance.choice(names)
    if chance.random() < 0.5 and "." in name:
        option = option_name(name.split(".")[-1])
        return Case([*_training(task, work), option, chance.choice(WORDS)], "option")
    return Case([*_training(task, work), f"--set={name}={chance.choice(WORDS)}"], "--set")


def _recipe(work: Path, chance: Chance) -> Case:
    """A file of settings, of a model of this task or of another, changed."""
    name = chance.choice(list(MODELS))
    task = MODELS[name][0] if chance.random() < 0.9 else chance.choice(list(TASKS))
    path = work / "recipe.toml"
    path.write_bytes(changed_toml((kept(name) / SETTINGS).read_bytes(), chance))
    return Case([*_training(task, work), f"--config={path}"], f"recipe of {name}")


def _use_with_options(work: Path, chance: Chance) -> Case:
    """A command that is asked of a model, with values for some of its options."""
    name = chance.choice(list(MODELS))
    folder = kept(name)
    known = [*uses_of(folder, name), *more_of(folder, name), *asked_of_vectors(work)]
    known += [Case(["lab", *study], f"lab {study[0]}") for study in STUDIES]
    case = chance.choice(known)
    depth = 2 if case.arguments[0] in ("vectors", "lab") else 1
    more = []
    options = _options(tuple(case.arguments[:depth]))
    for option in chance.sample(options, min(len(options), chance.choice([1, 1, 2]))):
        is_path = option.type_descriptor.annotation is Path  # what is written there is ours
        value = str(work / "x.svg") if is_path else chance.choice(WORDS)
        more += [option.opts[0] if option.is_flag else f"{option.opts[0]}={value}"]
    return Case([*case.arguments, *more], f"{case.about} with options")


@cache
def _options(names: tuple[str, ...]) -> list[Any]:
    """All options of a command."""
    command = get_command(application())
    for name in names:
        command = command.commands[name]
    return [p for p in command.params if p.param_type_name == "option" and p.name != "help"]
