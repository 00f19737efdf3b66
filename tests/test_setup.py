"""The set-up on machines where something is missing: what it asks for, and what it says.

A stand-in plays Python and pip, so nothing is fetched: it writes down what pip was asked, and fails
where it is told to.
"""

import os
import shutil
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

ROOT = Path(__file__).parents[1]
FILES = ["Makefile", "pyproject.toml", "constraints.txt", "tools/set-up.sh"]
CPU_INDEX = "https://download.pytorch.org/whl/cpu"
NO_NETWORK = "WARNING: Retrying (Retry(total=0)) after connection broken by 'NewConnectionError('"

STAND_IN = f"""#!/bin/sh
fails() {{ case "$*" in $FAILS) printf '%s\\n' "$LOG" >&2; exit 1 ;; esac }}
case "$*" in
*version_info*) echo "$VERSION" ;;
"-m venv"*) mkdir -p .venv/bin; cp "$0" .venv/bin/python; echo "$*" >> asked; fails "$*" ;;
"-m pip install"*) shift 2; echo "$*" >> asked; fails "$*" ;;
"- "*) exec '{sys.executable}' -S "$@" ;;
*) fails "$*" ;;
esac
"""

pytestmark = [
    pytest.mark.skipif(shutil.which("make") is None, reason="there is no make"),
    pytest.mark.slow,
]


class Checkout(SimpleNamespace):
    """A copy of the files of the set-up, in a folder with a space in its name."""

    folder: Path
    python: Path

    def make(self, *words: str, fails: str = "never", log: str = "", version: str = "3.11.7"):
        """Run make; what pip is asked fails where it has the pattern `fails`, with this log."""
        told = {"FAILS": fails, "LOG": log, "VERSION": version}
        kept = {"PATH": f"{self.folder}:{os.environ['PATH']}", "LC_ALL": "C"}
        command = ["make", "--no-print-directory", f"PYTHON={self.python}", *words]
        return subprocess.run(
            command, cwd=self.folder, env=kept | told, capture_output=True, text=True
        )

    def asked(self) -> list[str]:
        """What Python and pip were asked since the last time, without what every call has."""
        file = self.folder / "asked"
        lines = file.read_text().splitlines() if file.exists() else []
        file.unlink(missing_ok=True)
        usual = "install --quiet --disable-pip-version-check --constraint constraints.txt "
        assert all(line.startswith((usual, "-m venv")) for line in lines)
        return [line.removeprefix(usual) for line in lines]

    def has(self, name: str) -> bool:
        return (self.folder / name).exists()


@pytest.fixture
def checkout(tmp_path) -> Checkout:
    folder = tmp_path / "a checkout"
    for name in FILES:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, folder / name)
    python = folder / "python"
    python.write_text(STAND_IN)
    python.chmod(0o755)
    return Checkout(folder=folder, python=python)


def last_words(done: subprocess.CompletedProcess[str]) -> str:
    """The line that a user reads last, before make's own."""
    assert done.returncode != 0
    *_, line, by_make = done.stderr.splitlines()
    assert by_make.startswith("make: ***")
    return line


def test_torch_comes_first_and_alone_and_from_the_index_of_builds_without_cuda(checkout):
    assert checkout.make(".venv/dev.stamp").returncode == 0
    environment, *installed = checkout.asked()
    assert environment == "-m venv --clear .venv"
    assert installed[:3] == [
        f"--no-deps --retries 1 --extra-index-url {CPU_INDEX} torch",
        "torch",
        "--editable .[demo]",
    ]
    assert installed[3].startswith("pytest>=")
    assert installed[4:] == ["kenlm"]


@pytest.mark.parametrize(
    ("index", "first"),
    [("", "torch"), ("http://own/", "--no-deps --retries 1 --extra-index-url http://own/ torch")],
)
def test_the_index_of_torch_can_be_another_one_or_none(checkout, index, first):
    checkout.make(".venv/torch.stamp", f"TORCH_INDEX={index}")
    assert checkout.asked()[1] == first


def test_where_no_index_answers_at_once_the_usual_one_is_asked_again(checkout):
    log = "ERROR: No matching distribution found for torch"
    done = checkout.make(".venv/torch.stamp", fails="*--extra-index-url*", log=log)
    assert done.returncode == 0
    assert checkout.asked()[-1] == "torch"


@pytest.mark.parametrize("version", ["2.7.18", "3.6.15", "3.9.18", "3.10.13"])
def test_an_old_python_is_refused_before_anything_is_fetched(checkout, version):
    done = checkout.make("demo", version=version)
    assert last_words(done) == (
        f"set-up: {checkout.python} is Python {version}, but 3.11 or later is needed. "
        "Install one and name it: make PYTHON=python3.12"
    )
    assert not checkout.asked()
    assert not checkout.has(".venv")


@pytest.mark.parametrize("version", ["3.11.0", "3.14.2", "3.20.1", "4.0.0"])
def test_a_newer_python_is_taken(checkout, version):
    assert checkout.make(".venv/torch.stamp", version=version).returncode == 0


def test_a_python_that_is_not_there(checkout):
    assert last_words(checkout.make("demo", "PYTHON=no-such-python")) == (
        "set-up: no-such-python does not run. Install Python 3.11 or later, "
        "or name the one you have: make PYTHON=python3.12"
    )


def test_a_python_without_ensurepip(checkout):
    done = checkout.make("demo", fails="*ensurepip*", version="3.12.3")
    assert last_words(done) == (
        f"set-up: {checkout.python} has no ensurepip, so it cannot make .venv. Install it "
        "(on Debian and Ubuntu: apt install python3.12-venv) and run make again."
    )
    assert not checkout.has(".venv")


FULL = "a disk is full. Make room (2 GB here, 1 GB for temporary files) and run make again."
CHANGED = (
    " Only pyproject.toml or constraints.txt has changed: make --touch test goes on with what is "
    "installed."
)
TROUBLES = {
    "no network": (
        f"{NO_NETWORK}\nERROR: No matching distribution found for torch",
        "no package index can be reached. Mend the network, or name a proxy (HTTPS_PROXY) "
        "or an index of your own (PIP_INDEX_URL), and run make again.",
    ),
    "no proxy": (
        f"{NO_NETWORK} ProxyError('Cannot connect to proxy.'\nERROR: ResolutionImpossible",
        "the proxy cannot be reached. Mend HTTPS_PROXY or HTTP_PROXY and run make again.",
    ),
    "full disk": ("ERROR: OSError: [Errno 28] No space left on device", FULL),
    "no package": (
        "ERROR: No matching distribution found for torch==2.13.0",
        "it is not to be had for this Python and this machine. Run make clean, then "
        "make PYTHON=python3.12 or another.",
    ),
    "anything else": (
        "ValueError: of its own",
        "mend what stands above and run make again; make clean begins anew.",
    ),
}
every_trouble = pytest.mark.parametrize(("log", "remedy"), TROUBLES.values(), ids=TROUBLES)


@every_trouble
def test_what_to_do_is_the_last_that_is_said(checkout, log, remedy):
    done = checkout.make("demo", fails="install*torch", log=log)
    assert last_words(done) == f"set-up: torch could not be installed: {remedy}"
    assert ("of its own" in done.stderr) == ("of its own" in log)
    assert len(done.stderr.splitlines()) < 5
    assert not checkout.has(".venv/torch.stamp")
    assert checkout.make(".venv/dev.stamp").returncode == 0


def test_a_full_disk_shows_where_python_does_not_say_so(checkout):
    df = checkout.folder / "df"
    df.write_text("#!/bin/sh\necho a head\necho tmpfs 8192 8192 0 100% /\n")
    df.chmod(0o755)
    done = checkout.make("demo", fails="-m?venv*", log="Error: Command returned status 1.")
    assert last_words(done) == f"set-up: {checkout.python} could not make .venv: {FULL}"


def test_the_package_and_the_tools_fail_in_the_same_words(checkout):
    network = TROUBLES["no network"]
    for pattern, what in {"*editable*": "unrolled", "*pytest*": "what the tests need"}.items():
        done = checkout.make(".venv/dev.stamp", fails=pattern, log=network[0])
        assert last_words(done) == f"set-up: {what} could not be installed: {network[1]}"


def test_a_second_run_asks_for_nothing(checkout):
    checkout.make(".venv/dev.stamp")
    checkout.asked()
    assert checkout.make(".venv/dev.stamp", fails="*", log=NO_NETWORK).returncode == 0
    assert not checkout.asked()


def test_changed_requirements_without_a_network(checkout):
    checkout.make(".venv/dev.stamp")
    os.utime(checkout.folder / "pyproject.toml", (2**32, 2**32))  # later than every stamp
    done = checkout.make(".venv/dev.stamp", fails="*editable*", log=NO_NETWORK)
    assert last_words(done).endswith(CHANGED)
    checkout.asked()
    os.utime(checkout.folder / "pyproject.toml")
    assert checkout.make("--touch", "test").returncode == 0
    assert checkout.make(".venv/dev.stamp").returncode == 0
    assert not checkout.asked()
    assert not checkout.has("test")


def test_a_half_made_environment_is_made_anew_and_a_whole_one_is_kept(checkout):
    checkout.make("demo", fails="install*torch", log=NO_NETWORK)
    checkout.asked()
    checkout.make("demo", fails="*--version*")
    assert checkout.asked()[0] == "-m venv --clear .venv"
    (checkout.folder / ".venv/torch.stamp").unlink()
    checkout.make(".venv/torch.stamp")
    assert "-m venv --clear .venv" not in checkout.asked()


def test_without_a_compiler_it_says_so_and_goes_on(checkout):
    done = checkout.make(".venv/runtime.stamp", fails="*_kernels*")
    assert done.returncode == 0
    assert done.stderr.splitlines()[-1] == (
        "set-up: the kernels could not be compiled: everything works, but slower. For more speed "
        "install a C++ compiler (g++ or clang++), touch pyproject.toml and run make again."
    )


def test_where_kenlm_cannot_be_built_it_says_so_and_goes_on(checkout):
    done = checkout.make(".venv/dev.stamp", fails="*kenlm*", log="error: no C++ compiler")
    assert done.returncode == 0
    assert done.stderr.splitlines()[-1] == (
        "set-up: kenlm could not be built: the tests that compare with it are skipped."
    )
    assert checkout.has(".venv/dev.stamp")


@pytest.mark.skipif(shutil.which("c++") is None, reason="there is no compiler")
def test_the_kernels_compile_without_openmp():
    options = ["-std=c++17", "-fsyntax-only", "-Wall", "-Wextra", "-Werror", "-Wno-unknown-pragmas"]
    source = ROOT / "csrc" / "recurrent.cpp"
    command = ["c++", *options, "-DUNROLLED_ISA=portable", source]
    done = subprocess.run(command, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")
