"""Bad input: one clear sentence or two on stderr, the right exit code, nothing on stdout."""

import json
import pickle
import re
import shutil
from pathlib import Path

import pytest

from unrolled.store.files import write_folder

pytestmark = [pytest.mark.arithmetic, pytest.mark.trains]

TEXTS = {
    "ok.txt": b"the cat sat\na dog ran\n" * 9,
    "empty.txt": b"",
    "blank.txt": b"\n \n\t\n",
    "word.txt": b"hello",
    "same.txt": b"a a a\na a\n" * 5,
    "bad.txt": b"good line\nbad \xff byte\n",
    "nul.txt": b"a b\nc \0 d\n",
    "unknown.txt": b"zzz yyy\nqqq\n",
    "unknown.toml": b"[train]\nspeed = 9\n",
    "junk.toml": b"= =",
    "folder/thesis.txt": b"mine",
}

TRAIN = "train lm --out new --threads 1 --set model.hidden_size=8 --epochs 1 "
OK = TRAIN + "--train ok.txt "
CASES = [  # arguments, exit code, what stderr says; M is a model folder
    # the text
    (TRAIN + "--train empty.txt", 3, r"empty\.txt: holds no text, but there must be some to learn"),
    (TRAIN + "--train blank.txt", 3, r"blank\.txt: holds no text"),
    (TRAIN + "--train word.txt", 3, r"word\.txt: holds too little text to keep some for devel"),
    (TRAIN + "--train same.txt", 3, r"gives a vocabulary of 1 at level word, but a model chooses"),
    (TRAIN + "--train bad.txt", 3, r"bad\.txt, line 2, column 5: byte 0xff is not valid utf-8"),
    (TRAIN + "--train nul.txt", 3, r"nul\.txt, line 2, column 3: holds the character NUL"),
    (TRAIN + "--train none.txt", 5, r"none\.txt: there is no such file; check the spelling"),
    (TRAIN + "--train folder", 5, r"folder: this is a folder, but a file is needed"),
    (OK + "--dev unknown.txt", 3, r"unknown\.txt: all 3 tokens are outside the"),
    (OK + "--dev empty.txt", 3, r"empty\.txt: holds no text, but at least one"),
    (OK + "--test unknown.txt", 3, r"unknown\.txt: all 3 tokens are outside"),
    (
        OK + "--encoding klingon",
        2,
        r"encoding is 'klingon', but must be one that",
    ),
    # the folder to make
    (
        OK + "--out M",
        2,
        r"already holds a run\. Choose another folder, or add --r",
    ),
    (OK + "--out folder", 2, r"--out folder holds no run, but 'thesis\.txt'"),
    (OK + "--out ok.txt", 5, r"ok\.txt: cannot be made: File exists\. Choose"),
    (OK + "--out ok.txt/x", 5, r"ok\.txt/x: cannot be made: Not a directory\."),
    (OK + "--out /proc/1/x", 5, r"/proc/1/x: cannot be made: "),
    (
        OK + "--out M --resume",
        2,
        r"--resume: \S+ is .*, but was .* when the run in",
    ),
    # settings
    (
        "train taag --train ok.txt --out new",
        2,
        r"task is 'taag', but must be one of classify, .*, tag, translate, tree, window",
    ),
    (OK + "--set model.hiden_size=9", 2, r"Did you mean 'hidden_size'\?"),
    (
        OK + "--set model.cell=lstn",
        2,
        r"model\.cell is 'lstn', but must be one of",
    ),
    (OK + "--set clip", 2, r"--set 'clip' is not of the form section\.key=value"),
    (
        OK + "--set train.clip=-1",
        2,
        r"train\.clip is -1, but must be greater than",
    ),
    (OK + "--epochs 0", 2, r"train\.epochs is 0, but must be greater than or"),
    (
        OK + "--epochs two",
        2,
        r"'--epochs': it must be a valid integer.*train --help",
    ),
    (
        OK + "--minutes 1",
        2,
        r"epochs is 1 and minutes is 1\.0, but a run ends by",
    ),
    (OK + "--minutes -1", 2, r"--minutes is -1\.0, but must be from 0\.001 to"),
    (OK + "--seed -1", 2, r"--seed is -1, but must be from 0 to"),
    (
        OK + "--config unknown.toml",
        2,
        r"setting in section train is 'speed', but",
    ),
    (OK + "--config junk.toml", 2, r"junk\.toml: is not valid TOML"),
    (OK + "--config none.toml", 5, r"none\.toml: cannot be read: No such file"),
    # usage
    ("train lm --train ok.txt", 2, r"Missing option '--out'\. See `unrolled train --help`"),
    (OK + "--what 3", 2, r"option of train lm is '--what', but must be one of"),
    (OK + "--hidden-sise 3", 2, r"Did you mean '--hidden-size'\?"),
    (OK + "--hidden-size 0", 2, r"model\.hidden_size is 0"),
    ("wat", 2, r"No such command 'wat'\. See `unrolled --help`"),
    ("generat lm", 2, r"Did you mean 'generate'\? See `unrolled --help`"),
    # the model folder
    ("info none", 4, r"none: no such folder; check the path"),
    ("info ok.txt", 4, r"ok\.txt: is a file, but must be a model folder"),
    ("info folder", 4, r"folder: is not a model folder: it has no MANIFEST\.json"),
    ("next cut the", 4, r"cut/model\.safetensors: is damaged: 1000 bytes, but the manifest says"),
    ("next flipped the", 4, r"flipped/model\.safetensors: is damaged: its SHA-256 is not the one"),
    ("next lacking the", 4, r"lacking/vocab\.json: is missing; restore it"),
    ("next pickled the", 4, r"pickled/model\.safetensors: is not a sound safetensors file"),
    ("next newer the", 4, r"newer/MANIFEST\.json: was written by a newer version \(format 2\)"),
    ("next strange the", 4, r"strange: does not describe a model: .*'future'"),
    (
        "next running the",
        4,
        r"running: holds a run that has not finished; .*best-\d+ is its best",
    ),
    # generate, next, score, evaluate
    ("generate M --temperature -1", 2, r"temperature is -1\.0, but must be 0 or in 0\.0001"),
    ("generate M --tokens 0", 2, r"tokens is 0, but must be at least 1"),
    ("generate M --count 0", 2, r"count is 0, but must be at least 1"),
    ("generate M --top-k 0", 2, r"top_k is 0, but must be at least 1"),
    ("generate M --top-p 1.5", 2, r"top_p is 1\.5, but must be in \(0, 1\]"),
    ("generate M --tokens 1000000000", 2, r"one call makes at most 10000000 tokens"),
    ("generate M --seed 99999999999999999999", 2, r"--seed is 9{20}, but must be less than"),
    ("next M the --top 0", 2, r"top is 0, but must be at least 1"),
    ("score M empty.txt", 3, r"empty\.txt: holds no line to score"),
    ("score M bad.txt", 3, r"bad\.txt, line 2, column 5"),
    ("score M none.txt", 5, r"none\.txt: there is no such file"),
    (
        f"score M {'x' * 5000}",
        5,
        r"unrolled: x{999}…: File name too long",
    ),
    (
        f"train ngram --train ok.txt --out {'x' * 5000}",
        5,
        r"unrolled: x{999}…: File name too long",
    ),
    ("score M ok.txt --encoding klingon", 2, r"encoding is 'klingon'"),
    ("evaluate M unknown.txt", 3, r"unknown\.txt: all 3 tokens are outside the model's vocabulary"),
    ("evaluate M empty.txt", 3, r"empty\.txt: holds no text"),
    ("evaluate M folder", 5, r"folder: this is a folder"),
    ("demo --minutes 0", 2, r"--minutes is 0\.0, but must be from 0\.001 to"),
    # numbers
    (
        OK + "--set train.learning_rate=1e38",
        6,
        r"is nan \(weight bias is not finite\)\. Nothing of it is saved",
    ),
]


@pytest.fixture
def here(tmp_path: Path, model: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with wrong texts and, under M and other names, a model in all states of damage."""
    (tmp_path / "folder").mkdir()
    for name, data in TEXTS.items():
        (tmp_path / name).write_bytes(data)
    for name in ("M", "cut", "flipped", "lacking", "newer", "running"):
        shutil.copytree(model, tmp_path / name)
    weights = (model / "model.safetensors").read_bytes()
    (tmp_path / "cut" / "model.safetensors").write_bytes(weights[:1000])
    flipped = bytes([*weights[:-9], weights[-9] ^ 1, *weights[-8:]])
    (tmp_path / "flipped" / "model.safetensors").write_bytes(flipped)
    (tmp_path / "lacking" / "vocab.json").unlink()
    (tmp_path / "running" / "MANIFEST.json").unlink()
    newer = json.loads((model / "MANIFEST.json").read_text()) | {"format": 2}
    (tmp_path / "newer" / "MANIFEST.json").write_text(json.dumps(newer))
    listed = json.loads((model / "MANIFEST.json").read_text())["files"]
    files = {name: (model / name).read_bytes() for name in listed}
    write_folder(tmp_path / "pickled", files | {"model.safetensors": pickle.dumps([1] * 50)})
    strange = files["config.toml"].replace(b"[train]", b"[train]\nfuture = 1")
    write_folder(tmp_path / "strange", files | {"config.toml": strange})
    monkeypatch.chdir(tmp_path)
    return tmp_path


def everything(folder: Path) -> dict[str, bytes]:
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file() and path.name != ".lock"
    }


def test_bad_input_is_refused_in_a_sentence_and_nothing_is_lost(here, call):
    """One test for all: the folders are made once."""
    before = everything(here)
    for arguments, code, message in CASES:
        done = call(*arguments.split())
        *remarks, said = done.err.splitlines()
        place = f"{arguments}\n{done}"
        assert done.code == code, place
        assert said.startswith("unrolled: "), place
        assert re.search(message, said), place
        assert done.out == "", place
        assert "Traceback" not in done.err, place
        assert not [line for line in remarks if "unrolled:" in line], place
        assert said.count(". ") <= 4, place
        if code != 6:
            assert everything(here) == before, place


def test_a_wrong_file_leaves_no_folder_behind(here, call):
    assert call(*(TRAIN + "--train blank.txt").split()).code == 3
    assert not (here / "new").exists()
    assert call(*(TRAIN + "--train ok.txt").split()).code == 0


def test_one_line_of_a_million_tokens(here, call):
    (here / "long.txt").write_text("the cat sat on a mat " * 170_000)
    stream = call(
        *(TRAIN + "--train long.txt --out long").split(), "--set=train.batch_tokens=65536"
    )
    assert stream.code == 0, stream
    line = call(*(TRAIN + "--train long.txt").split(), "--set=model.context=line")
    assert line.code == 3
    assert re.search(
        r"long\.txt, line 1: has \d+ tokens, but a line that is trained on by", line.err
    )
    scored = call("score", "long", "long.txt")
    assert scored.code == 0
    assert scored.out.split("\t")[2] == "1020001"
