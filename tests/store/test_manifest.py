"""A manifest is input from anyone: bounded, checked, and every message says what to do."""

import hashlib
import json
from pathlib import Path
from typing import Any

import pytest

from unrolled.errors import ModelError
from unrolled.store.manifest import FORMAT, MANIFEST, manifest_bytes, parse_manifest

FOLDER, PATH = Path("model"), Path("model/MANIFEST.json")
SHA = hashlib.sha256(b"abc").hexdigest()
RESTORE = "; restore it from a copy or train again."


def sealed(**changes: Any) -> bytes:
    """A manifest as an attacker who knows the format would write it, with a right SHA-256."""
    content = json.loads(manifest_bytes(FOLDER, {"a.txt": b"abc"}))
    del content["sha256"]
    content |= changes
    seal = hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()
    return (json.dumps({**content, "sha256": seal}, sort_keys=True, indent=2) + "\n").encode()


def refusal(data: bytes) -> str:
    with pytest.raises(ModelError) as caught:
        parse_manifest(PATH, data)
    assert len(str(caught.value)) < 400
    return str(caught.value).removeprefix(f"{PATH}: ")


def test_what_is_written() -> None:
    written = json.loads(manifest_bytes(FOLDER, {"a.txt": b"abc"}))
    assert written.keys() == {"format", "unrolled", "files", "sha256"}
    assert written["format"] == FORMAT == 1
    assert written["files"] == {"a.txt": {"bytes": 3, "sha256": SHA}}
    assert isinstance(written["unrolled"], str)


def test_what_is_written_is_read_and_sorted() -> None:
    data = manifest_bytes(FOLDER, {"b": b"", "a.txt": b"abc"})
    assert data == manifest_bytes(FOLDER, {"a.txt": b"abc", "b": b""})
    listed = parse_manifest(PATH, data)
    assert list(listed) == ["a.txt", "b"]
    assert (listed["a.txt"].bytes, listed["a.txt"].sha256) == (3, SHA)
    assert parse_manifest(PATH, sealed())["a.txt"] == listed["a.txt"]


def test_a_newer_format_asks_for_an_upgrade_whatever_else_it_holds() -> None:
    told = "was written by a newer version (format 2); this one reads format 1; upgrade unrolled."
    assert refusal(sealed(format=2)) == told
    assert refusal(b'{"format": 2, "chunks": []}') == told


NAMES = [
    "../a",
    "..",
    ".",
    "",
    "/etc/passwd",
    "a/b",
    "a\\b",
    "C:\\a",
    "C:a",
    "a\0",
    "a\n",
    ".lock",
    "-a",
    "ä",
    "a" * 101,
    "\ud800",
    MANIFEST,
]


@pytest.mark.parametrize("name", NAMES)
def test_names_that_are_not_plain_are_neither_read_nor_written(name: str) -> None:
    entry = {"bytes": 3, "sha256": SHA}
    assert refusal(sealed(files={name: entry})) == (
        f"is damaged: it lists {name!r}, which is not a plain file name{RESTORE}"
    )
    with pytest.raises(ModelError) as caught:
        manifest_bytes(FOLDER, {name: b""})
    assert str(caught.value) == (
        f"model: {name!r} cannot be saved; a name is 1 to 100 of A-Z a-z 0-9 _ . - "
        "with no . or - in front, and not MANIFEST.json."
    )


@pytest.mark.parametrize(
    ("entry", "problem"),
    [
        (None, "a.txt is None, but must have bytes and sha256"),
        ([3, SHA], f"a.txt is {[3, SHA]!r}, but must have bytes and sha256"),
        ({"bytes": 3}, "a.txt is {'bytes': 3}, but must have bytes and sha256"),
        ({"bytes": 3, "sha256": SHA, "url": ""}, "but must have bytes and sha256"),
        ({"bytes": -1, "sha256": SHA}, "a.txt has -1 bytes, but must have 0 to 2^63 - 1"),
        ({"bytes": 2**63, "sha256": SHA}, f"a.txt has {2**63} bytes, but must"),
        ({"bytes": 3.0, "sha256": SHA}, "a.txt has 3.0 bytes, but must"),
        ({"bytes": True, "sha256": SHA}, "a.txt has True bytes, but must"),
        ({"bytes": "3", "sha256": SHA}, "a.txt has '3' bytes, but must"),
        ({"bytes": 3, "sha256": SHA.upper()}, "but must have 64 hex digits"),
        ({"bytes": 3, "sha256": SHA + "\n"}, "but must have 64 hex digits"),
        ({"bytes": 3, "sha256": 0}, "a.txt has SHA-256 0, but must have 64 hex digits"),
    ],
)
def test_entries_are_checked(entry: object, problem: str) -> None:
    message = refusal(sealed(files={"a.txt": entry}))
    assert problem in message or problem[:70] in message
    assert message.startswith("is damaged: ")
    assert message.endswith(RESTORE)


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        ({"format": 0}, "format is 0, but must be 1"),
        ({"format": "2"}, "format is '2', but must be 1"),
        ({"format": True}, "format is True, but must be 1"),
        ({"format": None}, "format is None, but must be 1"),
        ({"unrolled": 1}, "unrolled is 1, but must be a version"),
        ({"files": []}, "files is [], but must list at most 1000 files"),
        (
            {"extra": 1},
            "it has the entries ['extra', 'files', 'format', 'sha256', 'unrolled'], but",
        ),
    ],
)
def test_the_shape_is_checked(changes: dict[str, Any], problem: str) -> None:
    assert refusal(sealed(**changes)).startswith(f"is damaged: {problem}")


def test_the_number_of_files_is_bounded() -> None:
    entry = {"bytes": 3, "sha256": SHA}
    many = {f"f{n}": entry for n in range(1001)}
    assert "but must list at most 1000 files" in refusal(sealed(files=many))
    del many["f0"]
    assert len(parse_manifest(PATH, sealed(files=many))) == 1000
    with pytest.raises(ModelError) as caught:
        manifest_bytes(FOLDER, dict.fromkeys([*many, "one", "more"], b""))
    assert str(caught.value) == "model: 1002 files cannot be saved; at most 1000 can."


@pytest.mark.parametrize(
    "data",
    [b"", b"\0", b"\xff", b"{", b"[" * 100_000, b'{"a":' * 100_000, b"1" * 10_000, b"NaN,"],
)
def test_what_is_not_json_is_refused(data: bytes) -> None:
    assert refusal(data) == f"is damaged: it is not JSON{RESTORE}"


@pytest.mark.parametrize("data", [b"[]", b"null", b"1", b'"format"', b"NaN"])
def test_what_is_no_object_is_refused(data: bytes) -> None:
    assert refusal(data) == f"is damaged: it is no JSON object{RESTORE}"


def test_another_spelling_of_the_same_content_is_damage() -> None:
    data, told = sealed(), f"is damaged: its content does not match its SHA-256{RESTORE}"
    assert refusal(data + b" ") == told
    assert refusal(data.replace(b"\n", b"\r\n")) == told
    assert refusal(data.replace(b'{\n  "files"', b'{\n  "format": 1,\n  "files"')) == told
    assert refusal(data.replace(b'"unrolled": "', b'"unrolled": "9')) == told
