"""Model folders read: what the manifest lists, each file checked before it is believed."""

import hashlib
import os
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path

from unrolled.errors import ModelError
from unrolled.store.manifest import MANIFEST, MAX_BYTES, RESTORE, Listed, parse_manifest
from unrolled.store.storage import holder, open_regular, storage_errors

TEMPORARY = ".tmp-"
ASIDE = TEMPORARY + "old-"  # + NAME: the whole former folder, while a new one takes its place
TENSORS = ".safetensors"
MAX_SMALL = 1 << 28  # bytes of a file that is read whole; tensors have no limit
MAX_SPARE = 1 << 26  # bytes that are checked though nobody asks for them


class Files(Mapping[str, bytes]):
    """The contents of a folder's files but its tensors, each read and checked when asked for."""

    def __init__(self, folder: Path, listed: Mapping[str, Listed]) -> None:
        self._folder, self._listed = folder, listed
        self._read: dict[str, bytes] = {}
        self._names = [name for name in sorted(listed) if not name.endswith(TENSORS)]

    def __getitem__(self, name: str) -> bytes:
        if name not in self._names:
            raise KeyError(name)
        if name not in self._read:
            self._read[name] = self._checked(name)
        return self._read[name]

    def _checked(self, name: str) -> bytes:
        path, listed = self._folder / name, self._listed[name]
        with storage_errors(self._folder, "read"), open_regular(path) as stream:
            _check_size(path, os.fstat(stream.fileno()).st_size, listed)
            data = stream.read(listed.bytes)
        _check_digest(path, hashlib.sha256(data).hexdigest(), listed)
        return data

    def __contains__(self, name: object) -> bool:
        return name in self._names

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)


def read_folder(folder: Path, *, required: Collection[str]) -> Files:
    """The files that the manifest lists, by name, once those that are required are verified.

    Tensor files are verified but not returned: `unrolled.store.tensors.read_tensors` reads them.
    Files that the manifest does not list are neither read nor believed; of those that it lists and
    nobody requires, the smallest are verified, as far as that costs little.
    """
    with storage_errors(folder, "read"):
        listed = read_manifest(folder)
        for name in sorted(required):
            if name not in listed:
                raise ModelError(folder / MANIFEST, f"does not list {name}; {RESTORE}.")
        files = Files(folder, listed)
        for name in [*sorted(required), *_spare(listed, required)]:
            if name in required and name in files:
                files[name]  # read once, for it will be asked for
            else:
                _verify(folder / name, listed[name])
    return files


def _spare(listed: Mapping[str, Listed], required: Collection[str]) -> Iterator[str]:
    """What nobody requires, the smallest first, up to so many bytes in all."""
    room = MAX_SPARE
    for name in sorted(listed.keys() - {*required}, key=lambda name: (listed[name].bytes, name)):
        room -= listed[name].bytes
        if room < 0:
            return
        yield name


def aside_of(target: Path) -> Path:
    """Where the former folder lies while a new one takes its place."""
    return target.with_name(ASIDE + target.name)


def read_manifest(folder: Path) -> dict[str, Listed]:
    """The files that a folder's manifest lists; it says why there is none."""
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
        if aside_of(folder).exists():
            return f"no such folder: a save was cut short; rename {aside_of(folder)} to it."
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


def _verify(path: Path, listed: Listed) -> None:
    with open_regular(path) as stream:
        _check_size(path, os.fstat(stream.fileno()).st_size, listed)
        _check_digest(path, hashlib.file_digest(stream, "sha256").hexdigest(), listed)


def _check_size(path: Path, size: int, listed: Listed) -> None:
    if size != listed.bytes:
        raise ModelError(
            path, f"is damaged: {size} bytes, but the manifest says {listed.bytes}; {RESTORE}."
        )
    if size > MAX_SMALL and not path.name.endswith(TENSORS):
        raise ModelError(
            path, f"has {size} bytes, but only tensors may take more than {MAX_SMALL}; {RESTORE}."
        )


def _check_digest(path: Path, digest: str, listed: Listed) -> None:
    if digest != listed.sha256:
        raise ModelError(
            path, f"is damaged: its SHA-256 is not the one in the manifest; {RESTORE}."
        )
