"""Kills a command at its 1st, 2nd, … last file operation, gives it again, and compares every byte.

    python kill_saves.py FOLDER TASK EVERY [FIRST]

TASK is one of the tasks or of their variants, or import. Every EVERY-th operation is tried, from
FIRST on. It runs on its own, because an audit hook cannot be taken out again. Prints how many kills
there were.
"""

import os
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path

sys.path[:0] = [str(Path(__file__).parents[1]), str(Path(__file__).parents[1] / "store")]
import torch  # noqa: E402
from faults.harness import KEPT, often, once, training  # noqa: E402
from save_faults import CRASHED, Disk  # noqa: E402

from unrolled.app.cli import main  # noqa: E402
from unrolled.store.files import MANIFEST  # noqa: E402
from unrolled.store.names import TIMES  # noqa: E402


def command(task: str, folder: Path, out: Path) -> list[str]:
    if task == "import":
        return ["import", str(folder / "whole.arpa"), f"--out={out}"]
    return [*once(training(task)), *often(task), f"--out={out}"]


def run(arguments: list[str], log: Path, disk: Disk | None = None, kill_at: int = 0) -> int:
    """Its exit code, in a fork of this process; CRASHED if it was killed on the way."""
    if (child := os.fork()) == 0:
        file = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        os.dup2(file, 1)
        os.dup2(file, 2)
        if disk is not None:
            disk.start(kill_at, disk.crash)
        code = main(arguments)
        os._exit(code)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def content(out: Path) -> Iterator[tuple[str, bytes]]:
    for path in sorted(out.rglob("*")):
        if path.is_file() and path.name not in (".lock", TIMES):
            yield str(path.relative_to(out)), path.read_bytes()


def go(folder: Path, task: str, every: int, first: int) -> int:
    log, whole, out = folder / "log.txt", folder / "whole", folder / "work" / "out"
    assert main(["export", str(KEPT / "ngram"), f"--arpa={folder / 'whole.arpa'}"]) == 0
    assert run(command(task, folder, whole), log) == 0, log.read_text()
    expected, disk = dict(content(whole)), Disk(folder / "work")
    for kills, kill_at in enumerate(range(first, 100_000, every)):
        shutil.rmtree(folder / "work", ignore_errors=True)
        (folder / "work").mkdir()
        code = run(command(task, folder, out), log, disk, kill_at)
        if code == 0:
            return kills
        assert code == CRASHED, (kill_at, code, log.read_text())
        again = [*command(task, folder, out), *(["--resume"] if task != "import" else [])]
        if task != "import" or not (out / MANIFEST).exists():
            code = run(again, log)
            assert code == 0, (kill_at, code, log.read_text())
        found = dict(content(out))
        assert found.keys() == expected.keys(), (kill_at, found.keys() ^ expected.keys())
        assert found == expected, (kill_at, [n for n in found if found[n] != expected[n]])
    raise AssertionError("it never ended")


if __name__ == "__main__":
    torch.set_num_threads(1)
    torch.optim.SGD([torch.zeros(1, requires_grad=True)], lr=1.0).step()  # loads what it loads late
    first = int(sys.argv[4]) if len(sys.argv) > 4 else 1
    print(go(Path(sys.argv[1]), sys.argv[2], int(sys.argv[3]), first))
