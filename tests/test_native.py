"""UNROLLED_KERNELS: which compiled kernels run, and what is said where they cannot."""

import json
import os
import subprocess
import sys
from types import SimpleNamespace

import pytest
from kernel_checks import SETS

from unrolled import native
from unrolled.errors import ConfigError

pytestmark = pytest.mark.trains

CODE = "import sys; from unrolled.app.cli import main; sys.exit(main(sys.argv[1:]))"


def info(choice: str) -> subprocess.CompletedProcess[str]:
    """What `unrolled info` says where the variable is set so."""
    return subprocess.run(
        [sys.executable, "-c", CODE, "info", "--json"],
        env={**os.environ, native.VARIABLE: choice},
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.parametrize("name", [*SETS[:1], native.NONE])
def test_info_shows_what_was_chosen(name):
    done = info(name)
    assert done.returncode == 0, done.stderr
    shown = json.loads(done.stdout)["kernels"]
    assert shown.startswith(f"{name}, chosen by UNROLLED_KERNELS")
    assert shown.endswith("a plain loop elsewhere") is (name == native.NONE)


def test_an_unknown_name_is_an_error_with_the_nearest_one():
    done = info("avx22")
    assert done.returncode == 2
    assert done.stderr == (
        "unrolled: UNROLLED_KERNELS is 'avx22', but must be one of avx2, avx512, none, portable. "
        "Did you mean 'avx2'?\n"
    )


def test_nothing_is_chosen_where_the_variable_is_empty(monkeypatch):
    monkeypatch.setenv(native.VARIABLE, "")
    assert native.chosen() == ""
    monkeypatch.delenv(native.VARIABLE)
    assert native.chosen() == ""


def test_kernels_that_the_machine_cannot_run_are_refused(monkeypatch):
    used = []
    older = SimpleNamespace(available=lambda: ["portable", "avx2"], use=used.append)
    monkeypatch.setattr(native, "module", older)
    with pytest.raises(
        ConfigError, match=r"is 'avx512', but this machine runs portable and avx2\. Leave it unset"
    ):
        native.choose("avx512")
    native.choose("avx2")
    assert used == ["avx2"]


def test_kernels_that_were_never_compiled_are_refused_and_none_is_not(monkeypatch):
    monkeypatch.setattr(native, "module", None)
    with pytest.raises(ConfigError, match=r"is 'portable', but none were compiled\..*'none'"):
        native.choose("portable")
    native.choose(native.NONE)
    assert native.module is None
