"""Saving is whole or absent, reading notices every damage."""

import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from unrolled.errors import ModelError, StorageError
from unrolled.store import files, manifest
from unrolled.store.files import (
    MANIFEST,
    clean_temporaries,
    read_folder,
    write_file,
    write_folder,
    write_into_folder,
)

pytestmark = pytest.mark.slow

SMALL = {
    "config.toml": b'task = "lm"\nhidden_size = 8\n' * 8,
    "model.safetensors": bytes(range(256)) * 2,
    "vocab.json": '["a", "β", "<unk>"]'.encode() * 10,
}
RETURNED = {name: data for name, data in SMALL.items() if name != "model.safetensors"}


@pytest.fixture
def model(tmp_path: Path) -> Path:
    write_folder(tmp_path / "model", SMALL)
    return tmp_path / "model"


def refusal(folder: Path, *, required: tuple[str, ...] = ()) -> str:
    with pytest.raises(ModelError) as caught:
        read_folder(folder, required=required)
    return str(caught.value)


def contents(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir() if path.is_file()}


def run_python(*arguments: object, cwd: Path | None = None) -> str:
    environment = {**os.environ, "PYTHONPATH": str(Path(files.__file__).parents[1])}
    command = [sys.executable, *map(str, arguments)]
    done = subprocess.run(
        command, env=environment, cwd=cwd, capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


# Round trips


def test_a_folder_reads_back_as_written_but_for_tensors_which_stay_on_disk(model: Path) -> None:
    assert read_folder(model, required=["config.toml", "model.safetensors"]) == RETURNED
    assert contents(model).keys() == SMALL.keys() | {MANIFEST}
    assert (model / "model.safetensors").read_bytes() == SMALL["model.safetensors"]
    assert os.listdir(model.parent) == ["model"]


def test_the_same_files_give_the_same_bytes_in_any_order(model: Path, tmp_path: Path) -> None:
    write_folder(tmp_path / "again", dict(reversed(SMALL.items())))
    assert contents(tmp_path / "again") == contents(model)


def test_empty_files_and_no_files_are_saved_too(tmp_path: Path) -> None:
    write_folder(tmp_path / "a", {"empty.txt": b"", "none.safetensors": b""})
    write_folder(tmp_path / "b", {})
    assert read_folder(tmp_path / "a", required=["empty.txt"]) == {"empty.txt": b""}
    assert read_folder(tmp_path / "b", required=[]) == {}


def test_missing_parents_are_made(tmp_path: Path) -> None:
    write_folder(tmp_path / "runs" / "1" / "model", SMALL)
    assert read_folder(tmp_path / "runs" / "1" / "model", required=SMALL) == RETURNED


def test_saved_files_have_the_rights_the_user_wants(tmp_path: Path) -> None:
    script = (
        "import os; from pathlib import Path; os.umask(0o027);"
        "from unrolled.store.files import write_file, write_folder;"
        "write_file(Path('a'), b''); write_folder(Path('b'), {'c': b''})"
    )
    run_python("-c", script, cwd=tmp_path)
    modes = [(tmp_path / name).stat().st_mode & 0o777 for name in ("a", "b/c", "b/MANIFEST.json")]
    assert modes == [0o640] * 3
    assert (tmp_path / "b").stat().st_mode & 0o777 == 0o750


def test_a_file_is_replaced(tmp_path: Path) -> None:
    write_file(tmp_path / "state.json", b"1")
    write_file(tmp_path / "state.json", b"22")
    assert contents(tmp_path) == {"state.json": b"22"}


def test_a_saved_folder_is_replaced_and_loses_its_old_files(model: Path) -> None:
    write_folder(model, {"new.txt": b"new"})
    assert contents(model).keys() == {"new.txt", MANIFEST}
    assert os.listdir(model.parent) == ["model"]


def test_a_symbolic_link_to_a_folder_stays_one_when_the_folder_is_replaced(model: Path) -> None:
    link = model.parent / "latest"
    link.symlink_to(model)
    write_folder(link, {"new.txt": b"new"})
    assert link.is_symlink()
    assert read_folder(link, required=["new.txt"]) == {"new.txt": b"new"}
    assert sorted(os.listdir(model.parent)) == ["latest", "model"]


def test_an_empty_folder_is_replaced(tmp_path: Path) -> None:
    (tmp_path / "model").mkdir()
    write_folder(tmp_path / "model", SMALL)
    assert read_folder(tmp_path / "model", required=[]) == RETURNED


@pytest.mark.parametrize("foreign", ["thesis.tex", "checkpoints", ".lock"])
def test_a_folder_with_other_things_in_it_is_never_replaced(model: Path, foreign: str) -> None:
    (model / foreign).mkdir()
    with pytest.raises(StorageError) as caught:
        write_folder(model, {})
    assert str(caught.value) == (
        f"{model}: cannot be replaced: it holds {foreign!r}, which no save has written; "
        "move it away or choose another folder."
    )
    (model / foreign).rmdir()
    assert read_folder(model, required=[]) == RETURNED


def test_a_folder_without_a_sound_manifest_is_never_replaced(model: Path) -> None:
    (model / MANIFEST).write_bytes(b"{}")
    with pytest.raises(StorageError, match=r"it holds 'config\.toml', which no save has written"):
        write_folder(model, {})
    assert {**contents(model), MANIFEST: b""} == {**SMALL, MANIFEST: b""}


def test_a_run_folder_becomes_a_model_and_keeps_its_other_things(tmp_path: Path) -> None:
    (tmp_path / "checkpoints").mkdir()
    (tmp_path / "metrics.jsonl").write_bytes(b"{}\n")
    (tmp_path / "config.toml").write_bytes(b"old")
    write_into_folder(tmp_path, SMALL)
    assert read_folder(tmp_path, required=SMALL) == RETURNED  # metrics.jsonl is not listed
    assert contents(tmp_path).keys() == SMALL.keys() | {MANIFEST, "metrics.jsonl"}


def test_a_file_in_pieces_is_the_same_file(tmp_path: Path) -> None:
    whole, cut = tmp_path / "whole", tmp_path / "cut"
    for folder, content in (
        (whole, b"abcdef"),
        (cut, list(map(memoryview, (b"abc", b"", b"def")))),
    ):
        folder.mkdir()
        write_into_folder(folder, {"weights.bin": content})
    for name in ("weights.bin", MANIFEST):
        assert (cut / name).read_bytes() == (whole / name).read_bytes()


def test_a_finished_model_is_not_written_into(model: Path) -> None:
    with pytest.raises(ModelError) as caught:
        write_into_folder(model, {"config.toml": b"other"})
    assert str(caught.value) == (
        f"{model}: already holds a finished model (MANIFEST.json); choose another folder."
    )
    assert read_folder(model, required=[]) == RETURNED


# Crashes, full disks, refused operations: save_faults.py breaks every operation in turn


@pytest.fixture
def memory_disk() -> Iterator[Path]:
    """Where a thousand flushes take no time, if there is such a place."""
    place = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
    with tempfile.TemporaryDirectory(dir=place) as folder:
        yield Path(folder)


@pytest.mark.parametrize("scenario", ["new", "replace", "into", "file"])
@pytest.mark.parametrize("fault", ["crash", "fail", "stay-broken", "file-size"])
def test_a_fault_at_any_operation_leaves_old_or_new(
    memory_disk: Path, scenario: str, fault: str
) -> None:
    script = Path(__file__).with_name("save_faults.py")
    broken = int(run_python(script, memory_disk, scenario, fault))
    assert broken >= {"crash": 6, "fail": 30, "stay-broken": 6, "file-size": 20}[fault]


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of 64 kB; only an administrator can make one."""
    disk = tmp_path / "disk"
    disk.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", str(disk)]
    if sys.platform != "linux" or subprocess.run(mount, capture_output=True).returncode != 0:
        pytest.skip("cannot mount a small disk")
    yield disk
    subprocess.run(["umount", str(disk)], check=True)


def test_a_full_disk_costs_nothing_that_was_saved(small_disk: Path) -> None:
    write_folder(small_disk / "model", SMALL)
    write_file(small_disk / "state.json", b"old")
    for kilobytes in range(0, 80, 4):
        with suppress(StorageError):
            write_folder(small_disk / "other", {"a.bin": bytes(1024 * kilobytes), "b.bin": b"b"})
            write_file(small_disk / "state.json", bytes(1024 * kilobytes))
        assert read_folder(small_disk / "other", required=["a.bin"])["b.bin"] == b"b"
        assert read_folder(small_disk / "model", required=SMALL) == RETURNED
        assert sorted(os.listdir(small_disk)) == ["model", "other", "state.json"]
    told = "cannot write: No space left on device; free some space, or choose another disk, and"
    with pytest.raises(StorageError, match=told):
        write_file(small_disk / "state.json", bytes(100_000))
    with pytest.raises(StorageError, match=told):
        write_folder(small_disk / "other", {"a.bin": bytes(100_000)})
    assert sorted(os.listdir(small_disk)) == ["model", "other", "state.json"]


def test_what_a_crash_left_is_cleaned_up(model: Path) -> None:
    parent = model.parent
    torn, half, link = (parent / f".tmp-{letter * 12}" for letter in "1af")
    torn.write_bytes(b"torn")
    half.mkdir()
    (half / "file").write_bytes(b"torn")
    link.symlink_to(model)
    write_folder(parent / ".tmp-old-model", {})
    clean_temporaries(parent)
    assert os.listdir(parent) == ["model"]
    assert read_folder(model, required=SMALL) == RETURNED
    clean_temporaries(parent / "not there")


def test_what_no_save_has_made_is_left_alone(model: Path) -> None:
    parent = model.parent
    for name in (".tmp-notes", ".tmp-old-notes", ".tmp-old-model", ".tmp-0123456789abc"):
        (parent / name).mkdir()
        (parent / name / "thoughts").write_bytes(b"mine")
    (parent / ".tmp-12").write_bytes(b"mine")
    (parent / ".tmp-old-link").symlink_to(model)
    before = sorted(os.listdir(parent))
    clean_temporaries(parent)
    assert sorted(os.listdir(parent)) == before
    with pytest.raises(StorageError):  # the name that a former folder would need is taken
        write_folder(model, {"new.txt": b"new"})
    assert sorted(os.listdir(parent)) == before
    assert read_folder(model, required=SMALL) == RETURNED


def test_a_link_is_replaced_and_a_folder_or_device_refused(tmp_path: Path) -> None:
    (tmp_path / "target").write_bytes(b"mine")
    (tmp_path / "link").symlink_to(tmp_path / "target")
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "folder").mkdir()
    write_file(tmp_path / "link", [b"no", memoryview(b"t mine")])
    assert (tmp_path / "target").read_bytes() == b"mine"
    assert (tmp_path / "link").read_bytes() == b"not mine"
    for name, kind in (("pipe", "no regular file"), ("folder", "a folder")):
        with pytest.raises(StorageError, match=f"{name}: cannot write: it is {kind}; choose"):
            write_file(tmp_path / name, b"")
    assert sorted(os.listdir(tmp_path)) == ["folder", "link", "pipe", "target"]


def test_a_former_folder_whose_successor_never_came_gets_its_name_back(model: Path) -> None:
    aside = model.rename(model.with_name(".tmp-old-model"))
    assert refusal(model) == (
        f"{model}: no such folder: a save was cut short; rename {aside} to it."
    )
    clean_temporaries(model.parent)
    assert read_folder(model, required=SMALL) == RETURNED
    assert not aside.exists()


@pytest.mark.parametrize("successor_came", [False, True])
def test_the_next_save_clears_up_after_a_cut_one(model: Path, successor_came: bool) -> None:
    model.rename(model.with_name(".tmp-old-model"))
    if successor_came:
        write_folder(model.with_name("successor"), {"a": b"a"})
        model.with_name("successor").rename(model)
    write_folder(model, {"b": b"b"})
    assert read_folder(model, required=["b"]) == {"b": b"b"}
    assert os.listdir(model.parent) == ["model"]


def test_a_place_that_cannot_be_is_a_storage_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"mine")
    below = tmp_path / "file" / "model"
    for save in (lambda: write_folder(below, SMALL), lambda: write_file(below, b"")):
        with pytest.raises(StorageError) as caught:
            save()
        assert str(caught.value) == (
            f"{below}: cannot write: {caught.value.__cause__.strerror}; "
            "check the path and the disk, then try again."
        )
    with pytest.raises(StorageError, match="file: cannot write: Not a directory; check the path"):
        write_folder(tmp_path / "file", SMALL)
    with pytest.raises(StorageError, match="none: cannot write: No such file or directory; check"):
        write_into_folder(tmp_path / "none", SMALL)
    assert contents(tmp_path) == {"file": b"mine"}
    assert os.listdir(tmp_path) == ["file"]


# A script, because only a process that gave up its own rights can be refused when root tests.
WITHOUT_RIGHTS = """
import os
from pathlib import Path
from unrolled.errors import StorageError
from unrolled.store.files import read_folder, write_file, write_folder, write_into_folder
write_folder(Path("warm"), {})  # imports what it needs while that can be read
if os.getuid() == 0:
    os.setuid(65534)
for work in (lambda: write_file(Path("shut/a"), b""), lambda: write_folder(Path("shut/a"), {}),
             lambda: write_into_folder(Path("shut"), {}),
             lambda: read_folder(Path("secret"), required=[]),
             lambda: read_folder(Path("sealed"), required=[])):
    try:
        work()
    except StorageError as error:
        print(error)
"""


def test_missing_rights_are_a_storage_error(tmp_path: Path) -> None:
    tmp_path.chmod(0o755)
    (tmp_path / "shut").mkdir(mode=0o555)
    write_folder(tmp_path / "secret", SMALL)
    (tmp_path / "secret" / "config.toml").chmod(0)
    write_folder(tmp_path / "sealed", SMALL)
    (tmp_path / "sealed").chmod(0)
    told = "Permission denied; check the permissions or choose another place."
    assert run_python("-c", WITHOUT_RIGHTS, cwd=tmp_path).splitlines() == [
        f"shut/a: cannot write: {told}",
        f"shut/a: cannot write: {told}",
        f"shut: cannot write: {told}",
        f"secret: cannot read: {told}",
        f"sealed: cannot read: {told}",
    ]
    (tmp_path / "sealed").chmod(0o755)


# Damage


def test_every_flipped_bit_is_noticed(model: Path) -> None:
    flips = 0
    for name, data in contents(model).items():
        with open(model / name, "r+b", buffering=0) as stream:
            for index, byte in enumerate(data):
                for bit in range(8):
                    os.pwrite(stream.fileno(), bytes([byte ^ 1 << bit]), index)
                    assert refusal(model).startswith(f"{model}/")
                    flips += 1
                os.pwrite(stream.fileno(), bytes([byte]), index)
    assert flips == 8 * sum(map(len, contents(model).values()))
    assert read_folder(model, required=SMALL) == RETURNED


def test_every_truncation_is_noticed(model: Path) -> None:
    for name, data in contents(model).items():
        for length in reversed(range(len(data))):
            os.truncate(model / name, length)
            assert refusal(model).startswith(f"{model / name}: is damaged: ")
        (model / name).write_bytes(data + b"\n")
        assert refusal(model).startswith(f"{model / name}: is damaged: ")
        (model / name).write_bytes(data)
    assert read_folder(model, required=SMALL) == RETURNED


def test_damage_names_file_and_remedy(model: Path) -> None:
    config = model / "config.toml"
    size = len(SMALL["config.toml"])
    config.write_bytes(bytes(size))
    assert refusal(model) == (
        f"{config}: is damaged: its SHA-256 is not the one in the manifest; "
        "restore it from a copy or train again."
    )
    config.write_bytes(b"short")
    assert refusal(model) == (
        f"{config}: is damaged: 5 bytes, but the manifest says {size}; "
        "restore it from a copy or train again."
    )
    config.unlink()
    assert refusal(model) == f"{config}: is missing; restore it from a copy or train again."


def test_a_required_file_must_be_listed(model: Path) -> None:
    (model / "tokenizer.json").write_bytes(b"{}")
    assert refusal(model, required=("config.toml", "tokenizer.json")) == (
        f"{model / MANIFEST}: does not list tokenizer.json; restore it from a copy or train again."
    )


def test_files_that_are_not_listed_are_not_read(model: Path) -> None:
    (model / "extra.toml").symlink_to("/dev/zero")
    assert read_folder(model, required=[]) == RETURNED


@pytest.mark.parametrize("name", [*SMALL, MANIFEST])
def test_links_are_refused(model: Path, name: str) -> None:
    elsewhere = (model / name).rename(model.parent / "elsewhere")
    (model / name).symlink_to(elsewhere)
    assert refusal(model) == (
        f"{model / name}: is a symbolic link, but must be a regular file; "
        "restore it from a copy or train again."
    )
    (model / name).unlink()
    os.link(elsewhere, model / name)
    assert refusal(model) == (
        f"{model / name}: has 2 hard links, but must have 1; copy the folder and use that."
    )


@pytest.mark.parametrize("make", [os.mkfifo, os.mkdir])
@pytest.mark.parametrize("name", [*SMALL, MANIFEST])
def test_only_regular_files_are_opened(model: Path, name: str, make) -> None:
    (model / name).unlink()
    make(model / name)
    assert refusal(model) == (
        f"{model / name}: is no regular file, but must be a regular file; "
        "restore it from a copy or train again."
    )


def test_a_folder_that_is_no_model_says_why(tmp_path: Path) -> None:
    run, other, file = tmp_path / "run", tmp_path / "other", tmp_path / "file"
    (run / "checkpoints").mkdir(parents=True)
    other.mkdir()
    file.write_bytes(b"")
    assert refusal(tmp_path / "none") == f"{tmp_path / 'none'}: no such folder; check the path."
    assert refusal(file) == f"{file}: is a file, but must be a model folder; check the path."
    assert refusal(other) == (
        f"{other}: is not a model folder: it has no MANIFEST.json; check the path."
    )
    assert refusal(run) == (
        f"{run}: holds a run that has not finished; run the same command with --resume."
    )


def test_a_large_file_is_refused_or_left_alone_unread(model: Path) -> None:
    listed = {name: {"bytes": 1 << 33, "sha256": "0" * 64} for name in ("a.json", "b.safetensors")}
    (model / MANIFEST).write_bytes(manifest._sealed({"files": listed, "format": 1, "unrolled": ""}))
    for name in listed:
        with open(model / name, "wb") as stream:
            stream.truncate(1 << 33)  # a hole
    found = read_folder(model, required=[])  # nobody asks for them
    with pytest.raises(ModelError, match=r"a\.json: has 8589934592 bytes, but only tensors may"):
        found["a.json"]
    assert refusal(model, required=("a.json",)).startswith(f"{model / 'a.json'}: has 8589934592 ")


def test_an_oversized_manifest_is_refused_unread(model: Path) -> None:
    with open(model / MANIFEST, "r+b") as stream:
        stream.truncate(1 << 40)  # a hole: takes no room, would take a terabyte in memory
    assert refusal(model) == (
        f"{model / MANIFEST}: is damaged: it is larger than 1000000 bytes; "
        "restore it from a copy or train again."
    )


def test_a_reader_sees_only_whole_saves_under_fresh_names(tmp_path: Path) -> None:
    script = (
        "from pathlib import Path; from unrolled.store.files import write_folder\n"
        "for n in range(60): write_folder(Path(f'step-{n:03}'), {'a': b'a' * n, 'n': b'%d' % n})"
    )
    environment = {**os.environ, "PYTHONPATH": str(Path(files.__file__).parents[1])}
    writer = subprocess.Popen([sys.executable, "-c", script], env=environment, cwd=tmp_path)
    reads = 0
    while writer.poll() is None:
        for folder in sorted(tmp_path.glob("step-*"))[-3:]:
            found = read_folder(folder, required=["a", "n"])
            assert found == {
                "a": b"a" * int(found["n"]),
                "n": folder.name[5:].lstrip("0").encode() or b"0",
            }
            reads += 1
    assert writer.returncode == 0
    assert reads > 10
    assert len(os.listdir(tmp_path)) == 60
