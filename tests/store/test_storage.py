"""One holder per folder, and regular files only."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from unrolled.errors import ModelError, StorageError
from unrolled.store import storage
from unrolled.store.files import FolderLock
from unrolled.store.storage import open_regular, storage_errors

HOLD = """
import sys
from pathlib import Path
from unrolled.store.files import FolderLock
with FolderLock(Path(sys.argv[1])):
    print("held", flush=True)
    sys.stdin.read()
"""


@pytest.fixture
def holder(tmp_path: Path):
    """Another process that holds tmp_path."""
    process = subprocess.Popen(
        [sys.executable, "-c", HOLD, str(tmp_path)],
        env={**os.environ, "PYTHONPATH": str(Path(storage.__file__).parents[1])},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    with process:
        assert process.stdout.readline() == b"held\n"
        yield process
        process.kill()


def test_a_second_process_is_told_who_holds_the_folder(tmp_path: Path, holder) -> None:
    with pytest.raises(StorageError) as caught, FolderLock(tmp_path):
        pass
    assert str(caught.value) == (
        f"{tmp_path}: another process (pid {holder.pid}) is training in this folder; "
        "wait for it or choose another --out."
    )
    assert caught.value.exit_code == 5


def test_a_killed_holder_leaves_the_folder_free(tmp_path: Path, holder) -> None:
    holder.kill()
    holder.wait()
    with FolderLock(tmp_path):
        assert (tmp_path / ".lock").read_text() == str(os.getpid())


def test_a_holder_that_ends_leaves_the_folder_free(tmp_path: Path, holder) -> None:
    holder.communicate()
    assert holder.returncode == 0
    with FolderLock(tmp_path):
        pass


def test_a_refused_lock_does_not_take_the_pid_of_the_holder_away(tmp_path: Path) -> None:
    with FolderLock(tmp_path):
        for _ in range(3):
            with pytest.raises(StorageError, match=f"pid {os.getpid()}"), FolderLock(tmp_path):
                pass


def test_two_folders_are_held_side_by_side(tmp_path: Path) -> None:
    (tmp_path / "other").mkdir()
    with FolderLock(tmp_path), FolderLock(tmp_path / "other"):
        pass


def test_a_longer_stale_pid_is_overwritten(tmp_path: Path) -> None:
    (tmp_path / ".lock").write_text("99999999999")
    with FolderLock(tmp_path):
        assert (tmp_path / ".lock").read_text() == str(os.getpid())


@pytest.mark.parametrize("content", ["", "rm -rf", "-1", "\x1b[31m"])
def test_a_lock_file_with_no_pid_is_no_trouble(tmp_path: Path, content: str) -> None:
    with FolderLock(tmp_path):
        (tmp_path / ".lock").write_text(content)
        with (
            pytest.raises(StorageError, match=r"another process \(pid unknown\) is training"),
            FolderLock(tmp_path),
        ):
            pass


def test_refused_locks_leave_no_open_file(tmp_path: Path) -> None:
    with FolderLock(tmp_path):
        before = len(os.listdir("/proc/self/fd"))
        for _ in range(5):
            with pytest.raises(StorageError), FolderLock(tmp_path):
                pass
        assert len(os.listdir("/proc/self/fd")) == before


def test_a_folder_that_is_not_there_cannot_be_locked(tmp_path: Path) -> None:
    with (
        pytest.raises(StorageError, match="x: cannot lock: No such file or directory; check the"),
        FolderLock(tmp_path / "x"),
    ):
        pass


def test_a_linked_lock_file_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / "precious").write_text("precious")
    (tmp_path / ".lock").symlink_to(tmp_path / "precious")
    with (
        pytest.raises(StorageError, match="cannot lock: Too many levels of symbolic links"),
        FolderLock(tmp_path),
    ):
        pass
    assert (tmp_path / "precious").read_text() == "precious"


def test_a_file_swapped_while_it_is_opened_is_refused(tmp_path: Path, monkeypatch) -> None:
    path, other = tmp_path / "a", tmp_path / "b"
    path.write_bytes(b"checked")
    other.write_bytes(b"swapped in")
    opening = storage._open_no_follow

    def swap_and_open(name: str, flags: int) -> int:
        os.replace(other, path)
        return opening(name, flags)

    monkeypatch.setattr(storage, "_open_no_follow", swap_and_open)
    with pytest.raises(ModelError, match="was replaced while it was being opened; try again"):
        open_regular(path).__enter__()


def test_an_error_without_a_number_keeps_its_text() -> None:
    with (
        pytest.raises(StorageError, match=r"^a: cannot read: odd; check the path and the disk"),
        storage_errors(Path("a"), "read"),
    ):
        raise OSError("odd")


def test_our_own_errors_pass_unchanged() -> None:
    original = StorageError("b", "told already")
    with pytest.raises(StorageError) as caught, storage_errors(Path("a"), "read"):
        raise original
    assert caught.value is original
