"""Some random calls of all that leads to the kernels; fuzz_boundary.py runs any number."""

import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = [pytest.mark.arithmetic, pytest.mark.slow]

PROGRAM = Path(__file__).with_name("fuzz_boundary.py")


def fuzz(*options: str) -> subprocess.CompletedProcess[str]:
    """In a process of its own, for a crash ends the one it happens in."""
    command = [sys.executable, PROGRAM, *options]
    return subprocess.run(command, capture_output=True, text=True, timeout=240)


def test_no_call_crashes_or_gives_wrong_numbers():
    done = fuzz("--cases", "1500", "--seed", "1")
    assert done.returncode == 0, done.stdout + done.stderr


def test_a_case_is_a_function_of_the_seed_and_its_number():
    told = fuzz("--seed", "3", "--only", "12", "13", "12").stdout.splitlines()
    ends = [line for line, text in enumerate(told) if text.startswith("('")]
    first, other, again = (told[a + 1 : b + 1] for a, b in zip([-1, *ends[:-1]], ends, strict=True))
    assert first == again != other
