"""Files and folders that are whole or absent, and that show every damage when they are read.

A save is written under a random temporary name beside its target, flushed to the disk and renamed;
the manifest, without which nothing is believed, comes last. Reading checks every byte against it.
All that the package writes is written here, but for the rows that a run appends to its own files.
"""

import os
import re
import secrets
import shutil
import stat
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path

from unrolled.errors import ModelError, StorageError
from unrolled.store.manifest import FORMAT as FORMAT
from unrolled.store.manifest import MANIFEST as MANIFEST
from unrolled.store.manifest import Content as Content
from unrolled.store.manifest import manifest_bytes
from unrolled.store.reading import ASIDE as ASIDE
from unrolled.store.reading import TEMPORARY as TEMPORARY
from unrolled.store.reading import aside_of, read_manifest
from unrolled.store.reading import read_folder as read_folder
from unrolled.store.storage import FolderLock as FolderLock
from unrolled.store.storage import storage_errors, sync_folder, write_synced

_RANDOM_BYTES = 6
_TEMPORARY_NAME = re.compile(re.escape(TEMPORARY) + f"[0-9a-f]{{{2 * _RANDOM_BYTES}}}")

Pieces = bytes | Iterable[bytes | memoryview]  # of one file, perhaps made as they are written


def write_file(path: Path, data: Pieces) -> None:
    """Write or replace one file: after a crash it holds the whole old or the whole new content.

    A link of that name is replaced, what it leads to stays as it is.
    """
    with storage_errors(path, "write"), _staged(path.parent, {path.name: data}) as staged:
        _refuse_to_replace_others(path)
        os.replace(staged[path.name], path)
        sync_folder(path.parent)


def write_folder(target: Path, files: Mapping[str, bytes]) -> None:
    """Write a folder of its own: complete or absent.

    A folder that an earlier save wrote to `target` is replaced by two renames. A crash between
    the two leaves it whole as `.tmp-old-NAME`; the next save or `clean_temporaries` on the parent
    renames it back. A caller that cannot have this gap saves to a fresh name each time.
    """
    manifest = manifest_bytes(target, files)
    target = target.resolve() if target.is_symlink() else target
    new = target.parent / _temporary_name()
    with storage_errors(target, "write"):
        target.parent.mkdir(parents=True, exist_ok=True)
        _restore_aside(target)
        _refuse_to_delete_others(target)
        try:
            new.mkdir()
            for name, data in {**files, MANIFEST: manifest}.items():
                write_synced(new / name, data)
            sync_folder(new)
            _swap_in(new, target)
        finally:
            shutil.rmtree(new, ignore_errors=True)
        with suppress(OSError):
            _discard(aside_of(target))


def write_into_folder(folder: Path, files: Mapping[str, Content]) -> None:
    """Write model files into a folder that also holds other things; it is a model once the
    manifest, the last file, is there. All are on the disk before the first takes its name.
    """
    contents = {**files, MANIFEST: manifest_bytes(folder, files)}
    if os.path.lexists(folder / MANIFEST):
        raise ModelError(
            folder, f"already holds a finished model ({MANIFEST}); choose another folder."
        )
    with storage_errors(folder, "write"), _staged(folder, contents) as staged:
        for name in files:
            os.replace(staged[name], folder / name)
        sync_folder(folder)
        os.replace(staged[MANIFEST], folder / MANIFEST)
        sync_folder(folder)


def clean_temporaries(folder: Path) -> None:
    """Clear up after a crash: a former folder whose successor never arrived gets its name back,
    all other temporary things that a save made are removed, and nothing else. Only for the one
    process that writes in `folder`.
    """
    with storage_errors(folder, "clean up"):
        for path in sorted(folder.glob(TEMPORARY + "*")):
            if path.name.startswith(ASIDE):
                _restore_aside(folder / path.name.removeprefix(ASIDE))
            elif is_temporary(path.name):
                _discard(path)


def is_temporary(name: str) -> bool:
    """Whether it is a name that a save gives to what is not yet whole."""
    return _TEMPORARY_NAME.fullmatch(name) is not None


def _temporary_name() -> str:
    return TEMPORARY + secrets.token_hex(_RANDOM_BYTES)


@contextmanager
def _staged(folder: Path, contents: Mapping[str, Pieces]) -> Iterator[dict[str, Path]]:
    """Contents on the disk under temporary names, to be renamed; what is not, is removed."""
    staged = {name: folder / _temporary_name() for name in contents}
    try:
        for name, data in contents.items():
            write_synced(staged[name], data)
        yield staged
    finally:
        for path in staged.values():
            with suppress(OSError):
                path.unlink()


def _swap_in(new: Path, target: Path) -> None:
    """Rename `new` to `target`, moving a former folder aside; undo all of it on failure."""
    aside = aside_of(target)
    try:
        if target.exists():
            os.rename(target, aside)
        os.rename(new, target)
        sync_folder(target.parent)
    except BaseException:
        if not new.exists():
            os.rename(target, new)
        if aside.exists():
            os.rename(aside, target)
        raise


def _restore_aside(target: Path) -> None:
    aside = aside_of(target)
    if aside.is_symlink() or not aside.exists() or _others_in(aside):
        return  # no save has put it there
    if os.path.lexists(target):
        _discard(aside)
    else:
        os.rename(aside, target)


def _discard(path: Path) -> None:
    """Remove a file or folder if it is there; renamed first, so ASIDE always names a whole one."""
    if not os.path.lexists(path):
        return
    doomed = path.with_name(_temporary_name())
    os.rename(path, doomed)
    if doomed.is_dir() and not doomed.is_symlink():
        shutil.rmtree(doomed, ignore_errors=True)
    else:
        doomed.unlink()


def _refuse_to_delete_others(target: Path) -> None:
    """Replacing deletes the former folder: only if all that is in it came from a save."""
    if os.path.lexists(target) and (others := _others_in(target)):
        raise StorageError(
            target,
            f"cannot be replaced: it holds {others[0]!r}, which no save has written; "
            "move it away or choose another folder.",
        )


def _others_in(folder: Path) -> list[str]:
    """What is in a folder beside what its manifest lists."""
    saved = {MANIFEST}
    with suppress(ModelError):
        saved |= read_manifest(folder).keys()
    return sorted(set(os.listdir(folder)) - saved)


def _refuse_to_replace_others(path: Path) -> None:
    """A folder cannot become a file, and a device must not."""
    with suppress(FileNotFoundError):
        mode = path.lstat().st_mode
        if not (stat.S_ISREG(mode) or stat.S_ISLNK(mode)):
            kind = "a folder" if stat.S_ISDIR(mode) else "no regular file"
            raise StorageError(path, f"cannot write: it is {kind}; choose another name.")
