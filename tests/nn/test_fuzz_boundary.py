"""Some random calls of all that leads to the kernels; fuzz_boundary.py runs any number."""

import subprocess
import sys
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path

import pytest

pytestmark = [pytest.mark.arithmetic, pytest.mark.slow]

PROGRAM = Path(__file__).with_name("fuzz_boundary.py")


def fuzz(*options: str) -> subprocess.CompletedProcess[str]:
    """In a process of its own, for a crash ends the one it happens in."""
    command = [sys.executable, PROGRAM, *options]
    return subprocess.run(command, capture_output=True, text=True, timeout=240)


def test_no_call_crashes_or_gives_wrong_numbers():
    done = fuzz("--cases", "700", "--seed", "1")
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.filterwarnings("ignore")  # torch's own
def test_a_case_is_a_function_of_the_seed_and_its_number(monkeypatch):
    spec = spec_from_file_location("fuzz_boundary", PROGRAM)
    fuzzer = module_from_spec(spec)
    monkeypatch.setitem(sys.modules, "fuzz_boundary", fuzzer)
    spec.loader.exec_module(fuzzer)

    def told(index: int) -> list[str]:
        said: list[str] = []
        return [*fuzzer.run_case(3, index, said.append), *said]

    first, other, again = told(12), told(13), told(12)
    assert first == again != other
