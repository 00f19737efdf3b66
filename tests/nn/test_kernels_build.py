"""The kernels as they are built: what each instruction set's code holds, and its functions."""

import shutil
import subprocess
from pathlib import Path

import pytest

pytestmark = [pytest.mark.arithmetic, pytest.mark.slow]

ROOT = Path(__file__).parents[2]
OBJECTS = {
    path.parents[1].name.removeprefix("recurrent_").removesuffix(".dir"): path
    for path in ROOT.glob("build/*/CMakeFiles/recurrent_*.dir/csrc/recurrent.cpp.o")
}


def shared_symbols(path: Path) -> list[str]:
    """The mangled names that a linker may take from any of several objects."""
    lines = subprocess.run(["nm", path], capture_output=True, text=True, check=True).stdout
    named = [line.split()[-2:] for line in lines.splitlines()]
    return [name for kind, name in named if kind in "WVu" and not name.startswith("DW.ref.")]


@pytest.mark.skipif(not OBJECTS or not shutil.which("nm"), reason="built elsewhere, or no nm")
@pytest.mark.parametrize("name", OBJECTS)
def test_code_for_one_machine_is_never_handed_to_another(name):
    # A library template compiled with AVX-512 must not stand in for the one every machine runs.
    symbols = shared_symbols(OBJECTS[name])
    own = f"{len(name)}{name}"  # a namespace, mangled
    assert [symbol for symbol in symbols if own in symbol]
    assert not [symbol for symbol in symbols if own not in symbol]


@pytest.mark.skipif(not shutil.which("c++"), reason="there is no compiler")
@pytest.mark.parametrize(("name", "flags"), [("portable", []), ("native", ["-march=native"])])
def test_sigmoid_and_tanh_are_right_to_three_units_in_the_last_place(tmp_path, name, flags):
    program = tmp_path / "simd"
    options = ["-std=c++17", "-O1", "-ffp-contract=fast", "-fno-math-errno"]
    source = ROOT / "csrc" / "tests" / "test_simd.cpp"
    command = ["c++", *options, *flags, f"-DUNROLLED_ISA={name}", source, "-o", program]
    subprocess.run(command, check=True)
    done = subprocess.run([program], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout
    assert "0 failures" in done.stdout
