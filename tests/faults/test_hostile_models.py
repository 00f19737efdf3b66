"""Texts of a model that somebody made to be obeyed: by a browser, by a terminal. And large ones."""

import json
import os
import re
import sys
from xml.etree import ElementTree

import pytest
from faults.folders import fit_manifest
from faults.harness import DATA, KEPT, MODELS, fall_of, kept, more_of, uses_of
from golden_data import own_copy

from unrolled.app.cli import main
from unrolled.store.files import MANIFEST
from unrolled.store.tensors import read_tensors, tensor_bytes
from unrolled.tasks import TASKS

pytestmark = [pytest.mark.trains, pytest.mark.arithmetic]
RUN = "</script><script>document.title='owned'</script>\x1b]0;owned\x07\x9b31m"
LISTS = ("labels", "tags", "tokens")  # what the files of models call their texts


def hostile(folder):
    """Every label, tag and token of a model with more behind it."""
    for path in folder.glob("*.json"):
        value = json.loads(path.read_bytes())
        if path.name in (MANIFEST, "tokenizer.json") or "tokenizer" in path.name:
            continue
        for name in LISTS:
            if isinstance(value, dict) and isinstance(value.get(name), list):
                kept = 4 if name == "tokens" else 0
                value[name][kept:] = [text + RUN for text in value[name][kept:]]
        path.write_text(json.dumps(value))
    fit_manifest(folder)


@pytest.mark.parametrize("task", TASKS)
def test_no_text_of_a_model_reaches_a_terminal_or_a_picture_as_it_is(
    task, tmp_path, capsys, monkeypatch
):
    folder = tmp_path / f"m{RUN.replace('/', '')}"
    own_copy(kept(task), folder)
    hostile(folder)
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True, raising=False)
    for case in uses_of(folder, task):
        if "--json" in case.arguments:
            continue
        drawn = [] if case.about == "info" else [f"--out={tmp_path / 'x.svg'}"]
        code = main([*case.arguments, *drawn])
        out, err = capsys.readouterr()
        assert code in (0, 2, 3, 4), err
        assert not re.search(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]", out + err)
        if (tmp_path / "x.svg").exists():
            tree = ElementTree.parse(tmp_path / "x.svg")
            assert not [e for e in tree.iter() if e.tag.endswith("script")]
            (tmp_path / "x.svg").unlink()


@pytest.mark.parametrize("name", MODELS)
def test_weights_that_lead_to_no_number_print_none(name, tmp_path):
    """They are numbers themselves, but what is made of them overflows."""
    folder = tmp_path / "m"
    own_copy(kept(name), folder)
    for path in folder.glob("*.safetensors"):
        tensors = read_tensors(path, None)
        grown = {k: t.sign() * 3e38 if t.is_floating_point() else t for k, t in tensors.items()}
        path.write_bytes(tensor_bytes(grown))
    fit_manifest(folder)
    for case in [*uses_of(folder, name), *more_of(folder, name)]:
        assert fall_of(case) is None, case.about


def test_a_label_that_would_run_in_a_page_does_not(tmp_path, capsys):
    own_copy(KEPT / "classify", tmp_path / "m")
    hostile(tmp_path / "m")
    page = tmp_path / "x.html"
    given = ["predict", str(tmp_path / "m"), f"{DATA}/asked.txt", "--explain", f"--out={page}"]
    assert main(given) == 0
    html = page.read_text(encoding="utf-8")
    assert html.count("<script") == html.count("</script") == 2
    assert "document.title='owned'" in html


LARGE = {
    "nobody asks for it": ("spare.json", lambda file: file.truncate(3 << 30)),
    "asked for": ("vocab.json", lambda file: file.truncate(3 << 30)),
    "lists in a list": (
        "vocab.json",
        lambda file: file.write(b'{"tokens":[' + b"[]," * 10**7 + b"0]}"),
    ),
    "empty names": (
        "vocab.json",
        lambda file: file.write(b'{"tokens":[' + b'"",' * 10**7 + b"0]}"),
    ),
    "metrics": ("metrics.json", lambda file: file.write(b"[" + b"[]," * 10**7 + b"0]")),
    "settings": ("config.toml", lambda file: file.write(b"a.b=1\n" * 10**7)),
}


def used(*arguments):
    """The exit code and the megabytes that a command took, in a fork of this process."""
    if (child := os.fork()) == 0:
        null = os.open(os.devnull, os.O_WRONLY)
        os.dup2(null, 1)
        os.dup2(null, 2)
        os._exit(main([*arguments]))
    _, status, usage = os.wait4(child, 0)
    return os.waitstatus_to_exitcode(status), usage.ru_maxrss / 1000


@pytest.mark.parametrize("kind", LARGE)
def test_a_large_file_in_a_folder_takes_no_memory(kind, tmp_path):
    folder = own_copy(KEPT / "lm", tmp_path / "m")
    _, usual = used("info", str(folder))
    name, fill = LARGE[kind]
    with open(folder / name, "wb") as file:
        fill(file)
    size = (folder / name).stat().st_size / 1e6
    listed = json.loads((folder / MANIFEST).read_bytes())["files"]
    if size > 1000:  # a hole in the disk: its digest is not worth the time
        _list(folder, {**listed, name: {"bytes": 3 << 30, "sha256": "0" * 64}})
    else:
        fit_manifest(folder)
    code, megabytes = used("info", str(folder))
    assert code == (0 if kind == "nobody asks for it" else 4)
    assert megabytes < usual + 300 + min(2 * size, 100)


def _list(folder, entries):
    from unrolled.store.manifest import _sealed

    manifest = _sealed({"files": entries, "format": 1, "unrolled": "0"})
    (folder / MANIFEST).write_bytes(manifest)
