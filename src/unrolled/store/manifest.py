"""MANIFEST.json: which files a model folder consists of, and by what to know them.

    {"files": {"config.toml": {"bytes": 120, "sha256": "…"}, …},
     "format": 1, "sha256": "…", "unrolled": "0.1.0"}

The outer sha256 is of the other three entries, so that a change of any bit is noticed. The same
files always give the same bytes. What is read may come from anyone: everything is bounded.
"""

import hashlib
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib import metadata
from pathlib import Path
from typing import Any

from unrolled.errors import ModelError, shown

FORMAT = 1
MANIFEST = "MANIFEST.json"
MAX_BYTES = 1_000_000
MAX_FILES = 1000
RESTORE = "restore it from a copy or train again"

_PLAIN_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,99}")
_SHA256 = re.compile(r"[0-9a-f]{64}")
_KEYS = {"files", "format", "sha256", "unrolled"}


@dataclass(frozen=True)
class Listed:
    """What the manifest says of one file."""

    bytes: int
    sha256: str


Content = bytes | Sequence[memoryview]  # of a file: whole, or bytes in pieces that are not joined


def pieces(content: Content) -> Sequence[bytes | memoryview]:
    """A file's bytes, one piece after the other."""
    return [content] if isinstance(content, bytes) else content


def is_plain_name(name: str) -> bool:
    """Whether a file of this name lies in its folder on every system, and is not the manifest."""
    return bool(_PLAIN_NAME.fullmatch(name)) and name != MANIFEST


def manifest_bytes(folder: Path, files: Mapping[str, Content]) -> bytes:
    """The manifest of these files; refuses what `parse_manifest` would refuse."""
    for name in files:
        if not is_plain_name(name):
            raise ModelError(
                folder,
                f"{shown(name)} cannot be saved; a name is 1 to 100 of A-Z a-z 0-9 _ . - "
                f"with no . or - in front, and not {MANIFEST}.",
            )
    if len(files) > MAX_FILES:
        raise ModelError(folder, f"{len(files)} files cannot be saved; at most {MAX_FILES} can.")
    entries = {name: _entry(content) for name, content in files.items()}
    return _sealed({"files": entries, "format": FORMAT, "unrolled": _version()})


def parse_manifest(path: Path, data: bytes) -> dict[str, Listed]:
    """The files that a manifest lists, once it is known to be well formed and undamaged."""
    try:
        content = json.loads(data.decode())
    except (ValueError, RecursionError) as error:
        raise ModelError(path, f"is damaged: it is not JSON; {RESTORE}.") from error
    _check_format(path, content)
    if problem := _problem(content):
        raise ModelError(path, f"is damaged: {problem}; {RESTORE}.")
    if data != _sealed({key: content[key] for key in _KEYS - {"sha256"}}):
        raise ModelError(path, f"is damaged: its content does not match its SHA-256; {RESTORE}.")
    return {name: Listed(**entry) for name, entry in content["files"].items()}


def _entry(content: Content) -> dict[str, int | str]:
    digest = hashlib.sha256()
    for piece in pieces(content):
        digest.update(piece)
    return {"bytes": sum(map(len, pieces(content))), "sha256": digest.hexdigest()}


def _sealed(content: Mapping[str, object]) -> bytes:
    seal = hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()
    return (json.dumps({**content, "sha256": seal}, sort_keys=True, indent=2) + "\n").encode()


@cache
def _version() -> str:
    try:
        return metadata.version("unrolled")
    except metadata.PackageNotFoundError:
        return "0"


def _check_format(path: Path, content: Any) -> None:
    """First of all: a later format may look different in everything else."""
    if not isinstance(content, dict):
        raise ModelError(path, f"is damaged: it is no JSON object; {RESTORE}.")
    written = content.get("format")
    if type(written) is int and written > FORMAT:
        raise ModelError(
            path,
            f"was written by a newer version (format {shown(written)}); "
            f"this one reads format {FORMAT}; upgrade unrolled.",
        )


def _problem(content: dict[str, Any]) -> str | None:
    """What is wrong with the shape of a manifest, if anything."""
    if content.keys() != _KEYS:
        return f"it has the entries {shown(sorted(content))}, but must have {sorted(_KEYS)}"
    if type(content["format"]) is not int or content["format"] != FORMAT:
        return f"format is {shown(content['format'])}, but must be {FORMAT}"
    if not isinstance(content["unrolled"], str):
        return f"unrolled is {shown(content['unrolled'])}, but must be a version"
    files = content["files"]
    if not isinstance(files, dict) or len(files) > MAX_FILES:
        return f"files is {shown(files)}, but must list at most {MAX_FILES} files"
    return next(filter(None, (_entry_problem(*item) for item in files.items())), None)


def _entry_problem(name: str, entry: Any) -> str | None:
    if not is_plain_name(name):
        return f"it lists {shown(name)}, which is not a plain file name"
    if not isinstance(entry, dict) or entry.keys() != {"bytes", "sha256"}:
        return f"{name} is {shown(entry)}, but must have bytes and sha256"
    if type(entry["bytes"]) is not int or not 0 <= entry["bytes"] < 2**63:
        return f"{name} has {shown(entry['bytes'])} bytes, but must have 0 to 2^63 - 1"
    if not isinstance(entry["sha256"], str) or not _SHA256.fullmatch(entry["sha256"]):
        return f"{name} has SHA-256 {shown(entry['sha256'])}, but must have 64 hex digits"
    return None
