"""One file or folder at a time, as the system gives it: opened safely, flushed, locked.

Whatever the system refuses becomes a StorageError with the path, the reason and what to do.
"""

import errno
import os
import stat
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from io import BufferedRandom, BufferedReader
from pathlib import Path

from unrolled.errors import ModelError, StorageError, UnrolledError
from unrolled.store.manifest import RESTORE

LOCK = ".lock"

_NO_SPACE = "free some space, or choose another disk, and try again"
_NO_RIGHT = "check the permissions or choose another place"
_ADVICE = {
    errno.ENOSPC: _NO_SPACE,
    errno.EFBIG: _NO_SPACE,
    errno.EDQUOT: _NO_SPACE,
    errno.EACCES: _NO_RIGHT,
    errno.EPERM: _NO_RIGHT,
    errno.EROFS: _NO_RIGHT,
}


@contextmanager
def storage_errors(path: Path, action: str) -> Iterator[None]:
    """Turn what the system refuses into a StorageError that names `path`."""
    try:
        yield
    except UnrolledError:
        raise
    except OSError as error:
        advice = _ADVICE.get(error.errno or 0, "check the path and the disk, then try again")
        reason = error.strerror or str(error)
        raise StorageError(path, f"cannot {action}: {reason}; {advice}.") from error


@contextmanager
def open_regular(path: Path) -> Iterator[BufferedReader]:
    """Open a regular file under no other name: a link could lead out of the folder."""
    seen = _regular(path)
    with open(path, "rb", opener=_open_no_follow) as stream:
        _check_same(path, seen, stream.fileno())
        yield stream


@contextmanager
def open_own(path: Path) -> Iterator[BufferedRandom]:
    """Open a file that is changed in place, made if need be; never one that others know, too."""
    with suppress(FileExistsError):
        open(path, "xb").close()
    seen = _regular(path)
    with open(path, "r+b", opener=_open_no_follow) as stream:
        _check_same(path, seen, stream.fileno())
        yield stream


def refuse_link(path: Path) -> None:
    """A link in a run's folder could lead its writes elsewhere."""
    if path.is_symlink():
        raise ModelError(path, f"is a symbolic link, but must lie in its folder; {RESTORE}.")


def write_synced(path: Path, content: bytes | Iterable[bytes | memoryview]) -> None:
    """Write a new file, which no other may be in the place of, and flush it to the disk."""
    with open(path, "xb") as stream:
        stream.writelines([content] if isinstance(content, bytes) else content)
        stream.flush()
        os.fsync(stream.fileno())


def _regular(path: Path) -> os.stat_result:
    try:
        seen = path.lstat()
    except FileNotFoundError as error:
        raise ModelError(path, f"is missing; {RESTORE}.") from error
    if not stat.S_ISREG(seen.st_mode):
        kind = "a symbolic link" if stat.S_ISLNK(seen.st_mode) else "no regular file"
        raise ModelError(path, f"is {kind}, but must be a regular file; {RESTORE}.")
    if seen.st_nlink != 1:
        raise ModelError(
            path, f"has {seen.st_nlink} hard links, but must have 1; copy the folder and use that."
        )
    return seen


def _check_same(path: Path, seen: os.stat_result, descriptor: int) -> None:
    if not os.path.samestat(seen, os.fstat(descriptor)):
        raise ModelError(path, "was replaced while it was being opened; try again.")


class FolderLock:
    """Holds a folder for this process; the kernel lets go of it however the process ends."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._descriptor = -1

    def __enter__(self) -> "FolderLock":
        with storage_errors(self.folder, "lock"):
            flags = os.O_RDWR | os.O_CREAT | getattr(os, "O_NOFOLLOW", 0)
            descriptor = os.open(self.folder / LOCK, flags, 0o666)
            try:
                self._take(descriptor)
            except BaseException:
                os.close(descriptor)
                raise
            self._descriptor = descriptor
        return self

    def __exit__(self, *_: object) -> None:
        os.close(self._descriptor)  # the file stays: removing it would race with the next holder

    def _take(self, descriptor: int) -> None:
        try:
            _lock_or_fail(descriptor)
        except (BlockingIOError, PermissionError) as error:
            raise StorageError(
                self.folder,
                f"another process (pid {_pid(descriptor)}) is training in this folder; "
                "wait for it or choose another --out.",
            ) from error
        os.ftruncate(descriptor, 0)
        os.write(descriptor, str(os.getpid()).encode())


def holder(folder: Path) -> str | None:
    """The pid of the process that holds a folder, as far as it is known; None: nobody does."""
    try:
        descriptor = os.open(folder / LOCK, os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0))
    except OSError:
        return None
    try:
        _lock_or_fail(descriptor)
    except (BlockingIOError, PermissionError):
        return _pid(descriptor)
    except OSError:  # a disk that knows no locks
        return None
    finally:
        os.close(descriptor)
    return None


def _pid(descriptor: int) -> str:
    written = os.read(descriptor, 20).decode("ascii", "replace")
    return written if written.isdecimal() else "unknown"


if sys.platform == "win32":  # written for it, not tested on it
    import msvcrt

    def _lock_or_fail(descriptor: int) -> None:
        os.lseek(descriptor, 1 << 20, os.SEEK_SET)  # a locked byte is unreadable: not the pid's
        try:
            msvcrt.locking(descriptor, msvcrt.LK_NBLCK, 1)
        finally:
            os.lseek(descriptor, 0, os.SEEK_SET)

    def sync_folder(folder: Path) -> None:
        """A folder cannot be flushed there."""
else:
    import fcntl

    def _lock_or_fail(descriptor: int) -> None:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)

    def sync_folder(folder: Path) -> None:
        """Make renames inside `folder` durable."""
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def _open_no_follow(path: str, flags: int) -> int:
    return os.open(path, flags | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0))
