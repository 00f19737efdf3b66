"""Every command and every piece of Python in README.md runs, and prints what README.md shows."""

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

README = Path(__file__).parents[1] / "README.md"
# Not run: the tests run in what these set up.
SET_UP = ("cd ", "git clone ", "make ", "pip ", ".venv/bin/pip ", "python3 -m venv ", "source ")

BLOCK = r"^```{kind}[^\n]*\n(.*?)^```"
NUMBER = re.compile(r"-?\d+(?:[.,:]\d+)*(?:e[-+]?\d+)?")


class Command(NamedTuple):
    line: str
    shown: list[str]  # the output lines below it


def blocks(text: str, kind: str) -> list[str]:
    return re.findall(BLOCK.format(kind=kind), text, flags=re.MULTILINE | re.DOTALL)


def continues(command: str, line: str) -> bool:
    return command.endswith("\\") or line.startswith("> ")


def commands(block: str) -> list[Command]:
    """Each `$ ` line with the output below it; `> ` or a backslash before it continues one."""
    found: list[Command] = []
    for line in block.splitlines():
        if line.startswith("$ "):
            found.append(Command(line[2:], []))
        elif found and not found[-1].shown and continues(found[-1].line, line):
            found[-1] = Command(f"{found[-1].line}\n{line.removeprefix('> ')}", [])
        elif found:
            found[-1].shown.append(line)
    return found


def masked(line: str) -> str:
    """The line without what may differ from run to run: numbers, and the room they take."""
    return " ".join(NUMBER.sub("0", line).split())


def absent(shown: list[str], real: str) -> list[str]:
    """Lines that README.md shows and the command did not print; those with … stand for any text."""
    printed = {masked(line) for line in real.splitlines()} | {""}
    return [line for line in shown if "…" not in line and masked(line) not in printed]


def run(folder: Path, *command: str) -> subprocess.CompletedProcess[str]:
    env = {name: v for name, v in os.environ.items() if name not in ("COLUMNS", "FORCE_COLOR")}
    env["PATH"] = f"{Path(sys.executable).parent}{os.pathsep}{env['PATH']}"
    return subprocess.run(
        command,
        cwd=folder,
        env=env,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=300,
        check=False,
    )


def failures(folder: Path, text: str) -> Iterator[str]:
    """Run the commands of all console blocks in order and tell what is wrong."""
    for command in [c for block in blocks(text, "console") for c in commands(block)]:
        if f"{command.line} ".startswith(SET_UP):
            continue
        done = run(folder, "bash", "-c", command.line)
        if done.returncode != 0:
            yield f"$ {command.line}\nexit {done.returncode}\n{done.stdout}"
        elif missing := absent(command.shown, done.stdout):
            yield f"$ {command.line}\nnot printed: {missing}\nprinted:\n{done.stdout}"


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """One working folder, with .venv beside the work as after `make demo`."""
    folder = tmp_path_factory.mktemp("readme")
    (folder / ".venv").symlink_to(Path(sys.executable).parents[1], target_is_directory=True)
    return folder


@pytest.fixture(scope="module")
def console_failures(folder):
    """Also what the Python blocks wait for: they use the models that the commands made."""
    if not README.exists():
        pytest.skip("no README.md yet")
    return list(failures(folder, README.read_text(encoding="utf-8")))


@pytest.mark.timeout(900)
def test_commands_run_and_print_what_is_shown(console_failures):
    assert not console_failures, "\n\n".join(console_failures)


@pytest.mark.timeout(900)
@pytest.mark.usefixtures("console_failures")
def test_python_runs(folder):
    code = "\n".join(blocks(README.read_text(encoding="utf-8"), "python"))
    done = run(folder, sys.executable, "-c", code)
    assert done.returncode == 0, done.stdout


# ------------------------------------------------------------------ the checker itself

SAMPLE = """
```console
$ make demo
whatever
$ echo 'loss 3.25  after   17 steps'; echo done
loss 1.5 after 200 steps
anything … here
done
$ echo one \\
    two > made.txt
$ cat made.txt
one two
```
Between.
```python
x = 1
```
```console
$ echo yes
no
$ false
```
"""


def test_the_checker_reads_the_blocks():
    first, second = blocks(SAMPLE, "console")
    assert [c.line for c in commands(second)] == ["echo yes", "false"]
    assert commands(first)[2] == Command("echo one \\\n    two > made.txt", [])
    assert blocks(SAMPLE, "python") == ["x = 1\n"]


def test_the_checker_finds_what_is_wrong_and_only_that(tmp_path):
    wrong = list(failures(tmp_path, SAMPLE))
    assert len(wrong) == 2
    assert wrong[0].startswith("$ echo yes\nnot printed: ['no']\nprinted:\nyes")
    assert wrong[1].startswith("$ false\nexit 1")
