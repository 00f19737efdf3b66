"""What our set-up asks for: tested versions, and nothing of CUDA but what torch itself may need."""

import importlib.metadata
import re
import tomllib
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parents[1]
PYPROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
PROJECT = PYPROJECT["project"]
NEEDED = [Requirement(text) for text in PROJECT["dependencies"]]
EXTRAS = [Requirement(t) for extra in PROJECT["optional-dependencies"].values() for t in extra]
BUILD = [Requirement(text) for text in PYPROJECT["build-system"]["requires"]]
CUDA = re.compile(r"nvidia-|cuda-|(pytorch-)?triton")


def constraints() -> dict[str, Requirement]:
    lines = (ROOT / "constraints.txt").read_text("utf-8").splitlines()
    found = [Requirement(text) for line in lines if (text := line.split("#")[0].strip())]
    assert len({each.name for each in found}) == len(found)
    return {each.name: each for each in found}


def asked_by(name: str, extras: set[str]) -> set[str]:
    """The packages that an installed one asks for here, by itself or for one of its extras."""
    asked = map(Requirement, importlib.metadata.requires(name) or [])
    wanted = {"", *extras}
    return {
        canonicalize_name(each.name)
        for each in asked
        if not each.marker or any(each.marker.evaluate({"extra": extra}) for extra in wanted)
    }


def all_asked_beside(left_out: str) -> set[str]:
    """Every package that ours asks for, and theirs, and so on; but not what this one asks for."""
    seen: set[str] = set()
    waiting = asked_by("unrolled", set(PROJECT["optional-dependencies"]))
    while waiting := waiting - {left_out}:
        seen |= waiting
        here = {name for name in waiting if is_installed(name)}
        waiting = set().union(*(asked_by(name, set()) for name in here)) - seen
    return seen


def is_installed(name: str) -> bool:
    try:
        importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return False
    return True


@pytest.mark.parametrize("needed", [*NEEDED, *EXTRAS, *BUILD], ids=str)
def test_each_dependency_has_a_floor_and_a_tested_version_above_it(needed):
    assert [each.operator for each in needed.specifier] == [">="]
    (tested,) = constraints()[needed.name].specifier
    assert tested.operator == "=="
    assert needed.specifier.contains(tested.version)


@pytest.mark.parametrize("needed", NEEDED, ids=str)
def test_what_is_installed_is_what_we_ask_for(needed):
    assert needed.specifier.contains(importlib.metadata.version(needed.name), prereleases=True)


@pytest.mark.parametrize("build", ["2.13.0", "2.13.0+cpu", "2.13.0+cu130"])
def test_any_build_of_the_tested_torch_will_do(build):
    assert constraints()["torch"].specifier.contains(build)


def test_nothing_but_torch_can_ask_for_cuda():
    asked = all_asked_beside("torch")
    assert {"numpy", "scikit-learn", "scipy"} <= asked  # also what the asked ones ask for
    foreign = sorted(name for name in asked if CUDA.match(name))
    assert not foreign, f"{foreign} would come along, whichever build of torch there is"


def test_version_is_the_one_of_the_installed_package():
    assert importlib.metadata.version("unrolled") == PROJECT["version"]
