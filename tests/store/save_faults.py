"""Breaks a save at its 1st, 2nd, … last file operation. test_files.py runs it on its own, because
an audit hook cannot be taken out again:  python save_faults.py FOLDER SCENARIO FAULT

A scenario is one kind of save; a fault is what happens at the operation. After each one the
folder must hold the whole old or the whole new thing. Prints how many operations were broken.
"""

import errno
import os
import resource
import shutil
import sys
from collections.abc import Callable
from pathlib import Path

from unrolled.errors import ModelError, StorageError
from unrolled.store.files import (
    ASIDE,
    MANIFEST,
    TEMPORARY,
    clean_temporaries,
    read_folder,
    write_file,
    write_folder,
    write_into_folder,
)

OLD = {"config.toml": b"size = 1\n" * 20, "model.safetensors": bytes(300)}
NEW = {"config.toml": b"size = 2\n" * 30, "model.safetensors": bytes(400), "vocab.json": b"[]"}
CRASHED, UNSAFE = 77, 98
FAILURES = ("ENOSPC", "EDQUOT", "EIO", "EROFS", "EACCES")
real_fsync = os.fsync


class Disk:
    """Sees each file operation before it happens, and knows what a power cut would lose."""

    def __init__(self, base: Path) -> None:
        self.base = str(base)
        self.on = False
        self.count = self.break_at = 0
        self.fault: Callable[[], None] = lambda: None
        self.unsynced_files: set[str] = set()
        self.unsynced_names: set[str] = set()
        self.flushed: dict[str, int] = {}  # bytes that no power cut can take any more
        sys.addaudithook(self.hook)
        os.fsync = self.fsync

    def start(self, break_at: int, fault: Callable[[], None]) -> None:
        self.count, self.break_at, self.fault = 0, break_at, fault
        self.unsynced_files.clear()
        self.unsynced_names.clear()
        self.flushed.clear()
        self.on = True

    def operation(self) -> None:
        self.count += 1
        if self.count >= self.break_at:
            self.fault()

    def hook(self, event: str, args: tuple) -> None:
        if not self.on or event not in ("open", "os.mkdir", "os.rename", "os.remove", "os.rmdir"):
            return
        path = os.fspath(args[0]) if isinstance(args[0], (str, Path)) else ""
        if os.path.isabs(path) and not path.startswith(self.base):
            return
        self.operation()
        if event == "open" and args[2] & (os.O_WRONLY | os.O_RDWR):
            self.unsynced_files.add(path)
            self.unsynced_names.add(path)
        if event == "os.rename":
            self.renamed(path, os.fspath(args[1]))

    def renamed(self, source: str, to: str) -> None:
        """A name may only come to mean what is on the disk already; the manifest comes last."""
        inside = {path for path in self.unsynced_files if (path + "/").startswith(source + "/")}
        names = {path for path in self.unsynced_names if path.startswith(source + "/")}
        if to.endswith("/" + MANIFEST):
            names |= {path for path in self.unsynced_names if Path(path).parent == Path(to).parent}
        if inside or names:
            sys.stderr.write(f"renamed before flushed: {inside | names}\n")
            os._exit(UNSAFE)
        self.unsynced_names.discard(source)
        self.unsynced_names.add(to)

    def fsync(self, descriptor: int) -> None:
        if self.on:
            self.operation()
        real_fsync(descriptor)
        path = os.readlink(f"/proc/self/fd/{descriptor}")
        self.unsynced_files.discard(path)
        self.flushed[path] = os.fstat(descriptor).st_size
        self.unsynced_names = {
            name for name in self.unsynced_names if Path(name).parent != Path(path)
        }

    def crash(self) -> None:
        self.on = False
        for path in self.unsynced_files:  # what was not flushed may be torn
            if os.path.exists(path):
                size = os.path.getsize(path)
                safe = min(size, self.flushed.get(path, 0))
                os.truncate(path, safe + (size - safe) // 2)
        os._exit(CRASHED)

    def fail(self, code: int, *, for_good: bool) -> Callable[[], None]:
        def fault() -> None:
            if for_good or self.count == self.break_at:
                raise OSError(code, os.strerror(code))

        return fault


# Each scenario: prepare the folder, save, and say what is there now ("old", "new" or "absent").


def prepare_new(base: Path) -> None:
    pass


def prepare_replace(base: Path) -> None:
    write_folder(base / "model", OLD)


def save_folder(base: Path) -> None:
    write_folder(base / "model", NEW)


def folder_state(base: Path) -> str:
    if (base / (ASIDE + "model")).exists():  # a name that always means a whole folder
        read_folder(base / (ASIDE + "model"), required=["config.toml"])
    try:
        found = read_folder(base / "model", required=["config.toml"])
    except ModelError as error:
        return gap_state(base, str(error))
    version = OLD if found["config.toml"] == OLD["config.toml"] else NEW
    assert found == {name: data for name, data in version.items() if name != "model.safetensors"}
    return "old" if version is OLD else "new"


def gap_state(base: Path, message: str) -> str:
    assert "no such folder" in message, message
    aside = base / (ASIDE + "model")
    if not aside.exists():
        return "absent"
    assert f"a save was cut short; rename {aside} to it" in message, message
    assert read_folder(aside, required=[])["config.toml"] == OLD["config.toml"]
    return "old"


def prepare_run(base: Path) -> None:
    (base / "checkpoints").mkdir()
    (base / "checkpoints" / "step").write_bytes(b"5")
    (base / "config.toml").write_bytes(OLD["config.toml"])


def save_run(base: Path) -> None:
    write_into_folder(base, NEW)


def run_state(base: Path) -> str:
    assert (base / "checkpoints" / "step").read_bytes() == b"5"
    assert (base / "config.toml").read_bytes() in (OLD["config.toml"], NEW["config.toml"])
    try:
        found = read_folder(base, required=list(NEW))
    except ModelError as error:
        if "has not finished; run the same command with --resume" in str(error):
            return "old"
        raise
    assert found["config.toml"] == NEW["config.toml"]
    return "new"


def prepare_file(base: Path) -> None:
    write_file(base / "state.json", OLD["config.toml"])


def save_file(base: Path) -> None:
    write_file(base / "state.json", NEW["config.toml"])


def file_state(base: Path) -> str:
    contents = {OLD["config.toml"]: "old", NEW["config.toml"]: "new"}
    return contents[(base / "state.json").read_bytes()]


SCENARIOS = {
    "new": (prepare_new, save_folder, folder_state),
    "replace": (prepare_replace, save_folder, folder_state),
    "into": (prepare_run, save_run, run_state),
    "file": (prepare_file, save_file, file_state),
}


def temporaries(base: Path) -> list[str]:
    return sorted(path.name for path in base.glob(TEMPORARY + "*"))


def fresh(base: Path, prepare: Callable[[Path], None]) -> None:
    shutil.rmtree(base, ignore_errors=True)
    base.mkdir()
    prepare(base)


def recovers(base: Path, save: Callable[[Path], None], state: Callable[[Path], str]) -> None:
    """After a fault, cleaning up changes nothing that counts, and the next save succeeds."""
    before = state(base)
    clean_temporaries(base)
    assert temporaries(base) == []
    assert state(base) == before
    if not (before == "new" and save is save_run):  # a finished run is not written twice
        save(base)
    assert state(base) == "new"


def crash_everywhere(base: Path, scenario: str) -> int:
    prepare, save, state = SCENARIOS[scenario]
    disk, allowed = Disk(base), {"new", "absent" if scenario == "new" else "old"}
    for break_at in range(1, 1000):
        disk.on = False
        fresh(base, prepare)
        if (child := os.fork()) == 0:
            disk.start(break_at, disk.crash)
            save(base)
            disk.on = False
            os._exit(0 if all("/" + TEMPORARY in name for name in disk.unsynced_names) else UNSAFE)
        code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        assert code in (0, CRASHED), (break_at, code)
        assert state(base) in allowed, (break_at, state(base))
        if code == 0:
            assert state(base) == "new"
            assert temporaries(base) == []
            return break_at - 1
        recovers(base, save, state)
    raise AssertionError("the save never ended")


def fail_everywhere(base: Path, scenario: str, *, for_good: bool) -> int:
    prepare, save, state = SCENARIOS[scenario]
    disk, broken = Disk(base), 0
    for name in ("EROFS",) if for_good else FAILURES:
        for break_at in range(1, 1000):
            fresh(base, prepare)
            disk.start(break_at, disk.fail(getattr(errno, name), for_good=for_good))
            message = attempt(base, save)
            disk.on = False
            if disk.count < break_at:
                break
            broken += 1
            if message is not None:
                assert os.strerror(getattr(errno, name)) in message, message
                assert for_good or temporaries(base) == [], (break_at, temporaries(base))
            if message is not None and not for_good and scenario in ("new", "replace"):
                assert state(base) == ("absent" if scenario == "new" else "old"), break_at
            recovers(base, save, state)
    return broken


def attempt(base: Path, save: Callable[[Path], None]) -> str | None:
    """The message if the save is refused."""
    try:
        save(base)
    except StorageError as error:
        return str(error)
    return None


def file_too_large(base: Path, scenario: str) -> int:
    """A real limit of the system: no file may grow beyond so many bytes."""
    prepare, save, state = SCENARIOS[scenario]
    refused = 0
    for limit in range(0, 900, 13):
        fresh(base, prepare)
        before = state(base)
        resource.setrlimit(resource.RLIMIT_FSIZE, (limit, resource.RLIM_INFINITY))
        message = attempt(base, save)
        resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY,) * 2)
        if message is not None:
            refused += 1
            assert "cannot write: File too large; free some space" in message, message
        assert state(base) in ("new", before)
        assert temporaries(base) == []
    assert state(base) == "new"
    return refused


FAULTS = {
    "crash": crash_everywhere,
    "fail": lambda base, scenario: fail_everywhere(base, scenario, for_good=False),
    "stay-broken": lambda base, scenario: fail_everywhere(base, scenario, for_good=True),
    "file-size": file_too_large,
}

if __name__ == "__main__":
    print(FAULTS[sys.argv[3]](Path(sys.argv[1]) / "work", sys.argv[2]))
