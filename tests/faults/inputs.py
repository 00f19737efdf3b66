"""Inputs that nobody would write on purpose, other tools' files, options beyond all measure."""

import gzip
import lzma
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

from faults.folders import changed_bytes
from faults.harness import DATA, KEPT, Case, Chance, data_of, kept, uses_of
from golden_data import TRAIN

from unrolled.config import option_name, sections
from unrolled.tasks import TASKS

STRANGE = [
    *("", " ", "\t", "\r", "\x00", "\x1b[31m", "\x85", "\u2028", "\ufeff", "\u200b", "\u3000", "é"),
    *('"', "\\", "'", "{", "}", "[", "]", "<unk>", "<s>", "</s>", "<pad>", "\\data\\", "-1e400"),
    *("\ud800", "\\ud800", "\U0001f600", "x" * 70_000, "a " * 5000, "NAN", "inf", "9" * 5000, "#"),
    *("1.7e308", "-99", "0", "1-2", "1.1", "B-", "I-X", "O", "_", "{}", "[]", "null", "\n", "\n\n"),
]
ENCODINGS = [
    *("utf-8", "utf-16", "utf-32", "latin-1", "cp1252", "shift_jis", "punycode", "idna", "rot13"),
    *(
        "utf-7",
        "base64",
        "undefined",
        "raw_unicode_escape",
        "unicode_escape",
        "x" * 500,
        "",
        "\x00",
    ),
]
NUMBERS = [
    *(
        "0",
        "1",
        "-1",
        "2",
        "3",
        "0.5",
        "-0.5",
        "1e-40",
        "1e-320",
        "1e308",
        "-1e308",
        "1e400",
        "nan",
    ),
    *(
        "inf",
        "-inf",
        "9" * 25,
        "-" + "9" * 25,
        "9" * 5000,
        "0x10",
        "1_0",
        "",
        "x",
        "1e3",
        "1.0",
        "²",
    ),
    *("18446744073709551616", "9223372036854775807", "9223372036854775808", "2147483648", "[1]"),
]
WORDS = [
    *NUMBERS,
    "x" * 5000,
    "\x1b[2J",
    "[" * 3000,
    "{a=" * 500,
    "true",
    "'",
    '"',
    "a\nb",
    "0,1,2",
]
WORDS += ["0,1180591620717411303424", "lstm", "none", "1,0", "0,0,-1", "2GB", "1e99999GB", "½"]


def changed_text(data: bytes, chance: Chance) -> bytes:
    """Words, cells or lines replaced, doubled, joined, left out."""
    lines = data.decode("utf-8", "surrogateescape").split("\n")
    for _ in range(chance.choice([1, 1, 2, 5])):
        place = chance.randrange(len(lines))
        parting = chance.choice([" ", "\t", ",", ":"])
        cells = lines[place].split(parting)
        cells[chance.randrange(len(cells))] = chance.choice(STRANGE)
        strange = parting.join(cells)
        act = chance.random()
        if act < 0.6:
            lines[place] = strange
        elif act < 0.7:
            lines[place : place + 1] = []
        elif act < 0.8:
            lines.insert(place, strange)
        elif act < 0.9:
            lines[place] = lines[place].replace("\t", chance.choice([" ", "\t\t", ",", ""]))
        else:
            lines[place] += chance.choice(STRANGE)
        lines = lines or [""]
    return "\n".join(lines).encode("utf-8", chance.choice(["surrogatepass", "replace"]))


def hostile(data: bytes, chance: Chance) -> bytes:
    """Changed as text, as bytes, or packed and then changed."""
    act = chance.random()
    if act < 0.6:
        return changed_text(data, chance)
    if act < 0.8:
        return changed_bytes(data, chance)
    if act < 0.9:
        packed = chance.choice([gzip.compress, lzma.compress])(data)
        return changed_bytes(packed, chance) if chance.random() < 0.8 else packed
    return data.decode().encode(chance.choice(["utf-16", "utf-32", "cp1252", "utf-8-sig"]))


# The same sentence in every format that a reader knows, for changes to begin from.
CONLLU = "# text = the cat ran\n" + "".join(
    f"{i}\t{word}\t{word}\tNOUN\tNN\t_\t0\troot\t_\t_\n"
    for i, word in enumerate(["the", "cat", "ran"], 1)
)
FORMATS = {
    ".txt": "the cat ran\na dog sat\n" * 9,
    ".tsv": "yes\tthe cat ran\nno\ta dog sat\n" * 9,
    ".csv": 'label,text\nyes,"the cat, ran"\nno,a dog sat\n' * 5,
    ".jsonl": '{"label": "yes", "text": "the cat"}\n{"label": "no", "text": "a dog"}\n' * 5,
    ".conllu": (CONLLU + "\n") * 4,
    ".conll": "the DET\ncat B-X\nran O\n\na DET\ndog B-X\nsat O\n\n" * 4,
}


def hostile_inputs(work: Path) -> Callable[[Chance], Iterator[Case]]:
    """Data to train on, to score and to predict from."""

    def cases(chance: Chance) -> Iterator[Case]:
        task = chance.choice(list(TASKS))
        own = data_of(task)["train"]
        texts = {own.suffix: own.read_bytes(), **{k: v.encode() for k, v in FORMATS.items()}}
        suffix = own.suffix if chance.random() < 0.6 else chance.choice(list(texts))
        data = hostile(texts[suffix], chance)
        path = work / f"input{chance.choice([suffix, suffix, suffix, '.gz', '.xz', ''])}"
        path.write_bytes(data)
        more = [f"--encoding={chance.choice(ENCODINGS)}"] if chance.random() < 0.1 else []
        if chance.random() < 0.25:
            shutil.rmtree(work / "out", ignore_errors=True)
            options = [o for o in TRAIN[task] if not o.startswith(("--train", "--dev", "--test"))]
            options = [o.replace("--epochs=12", "--epochs=1") for o in options]
            given = ["train", task, f"--train={path}", *options, f"--out={work / 'out'}"]
            yield Case([*given, *more], f"train {suffix}", len(data))
            return
        reading = [
            ["evaluate", str(kept(task)), str(path)],
            *(
                [name, str(kept(task)), str(path)]
                for name, use in TASKS[task].uses.items()
                if use.by_line
            ),
        ]
        yield Case([*chance.choice(reading), *more], f"{task} {suffix}", len(data))

    return cases


VECTORS = "cat 0.1 0.2 0.3 0.4 0.5 0.6\ndog 1 2 3 4 5 6\nthe -1 0 1 2 1e-3 5\n"
BINARY = b"2 6\ncat " + bytes(24) + b"\ndog " + bytes(range(24)) + b"\n"


def hostile_models(work: Path) -> Callable[[Chance], Iterator[Case]]:
    """ARPA files to import, and vectors to begin with."""
    arpa = work / "whole.arpa"

    def cases(chance: Chance) -> Iterator[Case]:
        from unrolled.app.cli import main

        if not arpa.exists():
            assert main(["export", str(KEPT / "ngram"), f"--arpa={arpa}"]) == 0
        shutil.rmtree(work / "out", ignore_errors=True)
        if chance.random() < 0.7:
            data = hostile(arpa.read_bytes(), chance)
            (work / "changed.arpa").write_bytes(data)
            given = ["import", str(work / "changed.arpa"), f"--out={work / 'out'}"]
            yield Case(given, "import", len(data))
            if (work / "out").exists():
                yield Case(["score", str(work / "out"), f"{DATA}/asked.txt"], "score of imported")
            return
        text = chance.choice([VECTORS, "3 6\n" + VECTORS]).encode()
        data = hostile(text, chance) if chance.random() < 0.6 else changed_bytes(BINARY, chance)
        (work / "vectors").write_bytes(data)
        options = [o.replace("--epochs=12", "--epochs=1") for o in TRAIN["tag"]]
        given = ["train", "tag", *(o.format(data=DATA) for o in options), f"--out={work / 'out'}"]
        yield Case([*given, f"--vectors={work / 'vectors'}"], "vectors", len(data))

    return cases


def hostile_options(work: Path) -> Callable[[Chance], Iterator[Case]]:
    """Values of options and settings; settings of a run that finds no data, or only counts."""

    def cases(chance: Chance) -> Iterator[Case]:
        task = chance.choice(list(TASKS))
        if chance.random() < 0.5:
            yield _use_with_options(task, chance)
            return
        shutil.rmtree(work / "out", ignore_errors=True)
        names = [
            f"{name}.{key}"
            for name, section in sections(TASKS[task].settings).items()
            for key in section.model_fields
        ]
        names += [
            "seed",
            "task",
            "x",
            "model",
            "model.x.y",
            "a" + ".b" * chance.choice([1, 20_000]),
        ]
        source = DATA / "lines.txt" if task == "ngram" else work / "absent"
        given = ["train", task, f"--train={source}", f"--out={work / 'out'}"]
        name = chance.choice(names)
        if chance.random() < 0.5 and "." in name:
            yield Case([*given, option_name(name.split(".")[-1]), chance.choice(WORDS)], "option")
        else:
            yield Case([*given, f"--set={name}={chance.choice(WORDS)}"], "--set")

    return cases


def _use_with_options(task: str, chance: Chance) -> Case:
    case = chance.choice(list(uses_of(kept(task), task)))
    name = case.arguments[0]
    section = TASKS[task].uses[name].options if name in TASKS[task].uses else TASKS[task].scoring
    fields = list(section.model_fields)
    more = []
    for field in chance.sample(fields, min(len(fields), chance.choice([1, 1, 2]))):
        alias = section.model_fields[field].alias or field
        flag = section.model_fields[field].annotation is bool
        more += [option_name(alias) if flag else f"{option_name(alias)}={chance.choice(WORDS)}"]
    return Case([*case.arguments, *more], f"{name} with options")
