"""Inputs that nobody would write on purpose."""

import gzip
import lzma
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

from faults.folders import changed_bytes
from faults.harness import MODELS, Case, Chance, data_of, kept, once, training

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
    ".trees": "(1 (0 the) (1 cat))\n(0 (0 (0 a) (0 dog)) (1 sat))\n" * 5,
    ".mrg": "( (S (NP (DT the) (NN cat))\n  (VP (VBD ran))) )\n" * 5,
    ".conll": "the DET\ncat B-X\nran O\n\na DET\ndog B-X\nsat O\n\n" * 4,
}


def hostile_inputs(work: Path) -> Callable[[Chance], Iterator[Case]]:
    """Data to train on, to score and to predict from."""

    def cases(chance: Chance) -> Iterator[Case]:
        name = chance.choice(list(MODELS))
        task, _ = MODELS[name]
        own = data_of(name)["train"]
        texts = {own.suffix: own.read_bytes(), **{k: v.encode() for k, v in FORMATS.items()}}
        suffix = own.suffix if chance.random() < 0.6 else chance.choice(list(texts))
        data = hostile(texts[suffix], chance)
        path = work / f"input{chance.choice([suffix, suffix, suffix, '.gz', '.xz', ''])}"
        path.write_bytes(data)
        more = [f"--encoding={chance.choice(ENCODINGS)}"] if chance.random() < 0.1 else []
        if chance.random() < 0.25:
            shutil.rmtree(work / "out", ignore_errors=True)
            options = [
                o for o in training(name) if not o.startswith(("--train", "--dev", "--test"))
            ]
            given = [*once(options), f"--train={path}", f"--out={work / 'out'}"]
            yield Case([*given, *more], f"train {name} {suffix}", len(data))
            return
        reading = [
            ["evaluate", str(kept(name)), str(path)],
            *(
                [use_name, str(kept(name)), str(path)]
                for use_name, use in TASKS[task].uses.items()
                if use.by_line
            ),
            ["lab", "agreement", str(kept(name)), str(path)],
            ["lab", "directions", f"--data={path}", "--hidden=2", "--epochs=1"],
            ["lab", "padding", f"--data={path}", "--hidden=2", "--updates=1"],
        ]
        yield Case([*chance.choice(reading), *more], f"{name} {suffix}", len(data))

    return cases
