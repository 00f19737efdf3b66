"""Files and folders that are whole or absent, and that show every damage when they are read.

A save is written under a temporary name beside its target, flushed to the disk and renamed; the
manifest, without which nothing is believed, comes last. Reading checks every byte against it.
"""

import hashlib
import os
import secrets
import shutil
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path

from unrolled.errors import ModelError, StorageError
from unrolled.store.manifest import FORMAT as FORMAT
from unrolled.store.manifest import MANIFEST as MANIFEST
from unrolled.store.manifest import MAX_BYTES, RESTORE, Listed, manifest_bytes, parse_manifest
from unrolled.store.manifest import Content as Content
from unrolled.store.storage import FolderLock as FolderLock
from unrolled.store.storage import holder, open_regular, storage_errors, sync_folder, write_synced

TEMPORARY = ".tmp-"
ASIDE = TEMPORARY + "old-"  # + NAME: the whole former folder, while a new one takes its place
TENSORS = ".safetensors"


def write_file(path: Path, data: bytes) -> None:
    """Write or replace one file: after a crash it holds the whole old or the whole new content."""
    with storage_errors(path, "write"), _staged(path.parent, {path.name: data}) as staged:
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
            _discard(_aside(target))


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
    all other temporary things are removed. Only for the one process that writes in `folder`.
    """
    with storage_errors(folder, "clean up"):
        for path in sorted(folder.glob(TEMPORARY + "*")):
            if path.name.startswith(ASIDE):
                _restore_aside(folder / path.name.removeprefix(ASIDE))
            _discard(path)


def read_folder(folder: Path, *, required: Collection[str]) -> dict[str, bytes]:
    """Verify every file the manifest lists and return their contents by name.

    Tensor files are verified but not returned: `unrolled.store.tensors.read_tensors` reads them.
    Files that the manifest does not list are neither read nor believed.
    """
    with storage_errors(folder, "read"):
        listed = _read_manifest(folder)
        for name in sorted(required):
            if name not in listed:
                raise ModelError(folder / MANIFEST, f"does not list {name}; {RESTORE}.")
        verified = {name: _read_verified(folder / name, listed[name]) for name in sorted(listed)}
    return {name: data for name, data in verified.items() if not name.endswith(TENSORS)}


def _aside(target: Path) -> Path:
    return target.with_name(ASIDE + target.name)


def _temporary_name() -> str:
    return TEMPORARY + secrets.token_hex(6)


@contextmanager
def _staged(folder: Path, contents: Mapping[str, Content]) -> Iterator[dict[str, Path]]:
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
    aside = _aside(target)
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
    aside = _aside(target)
    if os.path.lexists(target):
        _discard(aside)
    elif aside.exists():
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
    if not os.path.lexists(target):
        return
    saved = {MANIFEST}
    with suppress(ModelError):
        saved |= _read_manifest(target).keys()
    if others := sorted(set(os.listdir(target)) - saved):
        raise StorageError(
            target,
            f"cannot be replaced: it holds {others[0]!r}, which no save has written; "
            "move it away or choose another folder.",
        )


def _read_manifest(folder: Path) -> dict[str, Listed]:
    try:
        (folder / MANIFEST).lstat()
    except (FileNotFoundError, NotADirectoryError) as error:
        raise ModelError(folder, _why_no_manifest(folder)) from error
    with open_regular(folder / MANIFEST) as stream:
        data = stream.read(MAX_BYTES + 1)
    if len(data) > MAX_BYTES:
        raise ModelError(
            folder / MANIFEST, f"is damaged: it is larger than {MAX_BYTES} bytes; {RESTORE}."
        )
    return parse_manifest(folder / MANIFEST, data)


def _why_no_manifest(folder: Path) -> str:
    if not folder.exists():
        if _aside(folder).exists():
            return f"no such folder: a save was cut short; rename {_aside(folder)} to it."
        return "no such folder; check the path."
    if not folder.is_dir():
        return "is a file, but must be a model folder; check the path."
    best = sorted((folder / "checkpoints").glob("best-*"))
    until = f" Until then, {best[-1]} is its best model so far." if best else ""
    if pid := holder(folder):
        return f"holds a run that is under way (pid {pid}); wait for it to end.{until}"
    if (folder / "checkpoints").is_dir():
        return f"holds a run that has not finished; run the same command with --resume.{until}"
    return f"is not a model folder: it has no {MANIFEST}; check the path."


def _read_verified(path: Path, listed: Listed) -> bytes:
    """The content of a small file, or nothing of a tensor file, once it is known to be right."""
    with open_regular(path) as stream:
        size = os.fstat(stream.fileno()).st_size
        if size != listed.bytes:
            raise ModelError(
                path, f"is damaged: {size} bytes, but the manifest says {listed.bytes}; {RESTORE}."
            )
        data = b"" if path.name.endswith(TENSORS) else stream.read(size)
        digest = hashlib.sha256(data) if data else hashlib.file_digest(stream, "sha256")
    if digest.hexdigest() != listed.sha256:
        raise ModelError(
            path, f"is damaged: its SHA-256 is not the one in the manifest; {RESTORE}."
        )
    return data
