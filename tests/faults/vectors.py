"""What other tools write: ARPA files, vectors in every form, questions and pairs of words."""

import shutil
import struct
from collections.abc import Callable, Iterator
from pathlib import Path

from faults.folders import changed_bytes
from faults.harness import DATA, KEPT, Case, Chance, once, training
from faults.inputs import hostile

WORDS = ["cat", "dog", "the", "saw", "a", "here"]
ROWS = [
    f"{word} {' '.join(str((k * n) % 7 - 3.5) for n in range(6))}" for k, word in enumerate(WORDS)
]
GLOVE = "\n".join(ROWS) + "\n"
BINARY = b"6 6\n" + b"".join(
    word.encode() + b" " + struct.pack("<6f", *(float((k * n) % 7) for n in range(6))) + b"\n"
    for k, word in enumerate(WORDS)
)
FORMS = {"glove": GLOVE.encode(), "text": b"6 6\n" + GLOVE.encode(), "binary": BINARY}
ASKED = {  # what is read beside vectors
    "questions": b": places\ncat dog the saw\ncat the dog a\n: more\na here cat dog\n",
    "likeness": b"cat dog 8.5\ncat the 1\nsaw a 2,5\ndog\there\t3\n",
    "pairs": b"cat dog\nthe a\n",
    "keep": b"saw\nhere\n",
    "weat": b"cat dog\nthe a\nsaw here\ncat the\n",
}
BEGIN = {  # tasks that can begin with vectors, and by which option
    "tag": "--vectors",
    "lm": "--vectors",
    "classify": "--vectors",
    "bahdanau": "--source-vectors",
    "tree": "--vectors",
}


def asked_of_vectors(work: Path, vectors: str = "text") -> Iterator[Case]:
    """Every question that is asked of a file of vectors, and of what lies beside it."""
    for name, data in {**FORMS, **ASKED}.items():
        (work / name).write_bytes(data)
    file, out = str(work / vectors), str(work / "out.txt")
    beside = [f"--pairs={work / 'pairs'}", f"--keep={work / 'keep'}", f"--weat={work / 'weat'}"]
    yield Case(["vectors", "neighbours", file, "cat"], "neighbours")
    yield Case(["vectors", "analogy", file, "cat", "dog", "the"], "analogy")
    yield Case(["vectors", "odd-one-out", file, "cat", "dog", "the"], "odd one out")
    yield Case(
        ["vectors", "evaluate", file, *(str(work / n) for n in ("questions", "likeness"))], ""
    )
    yield Case(["vectors", "map", file, "--method=pca", "--json"], "map")
    yield Case(["vectors", "debias", file, out, *beside], "debias")
    for form in FORMS:
        yield Case(["vectors", "convert", file, out, f"--format={form}"], "convert")


def hostile_vectors(work: Path) -> Callable[[Chance], Iterator[Case]]:
    """Vectors, or what is asked about them, changed; asked, or begun with."""

    def cases(chance: Chance) -> Iterator[Case]:
        form = chance.choice(list(FORMS))
        asked = chance.choice(list(asked_of_vectors(work, form)))
        name = chance.choice([form, form, *ASKED])
        change = changed_bytes if name == "binary" else hostile
        data = change({**FORMS, **ASKED}[name], chance)
        (work / name).write_bytes(data)
        if name != form or chance.random() < 0.7:
            yield asked._replace(about=f"{asked.about} {name}", size=len(data))
            return
        shutil.rmtree(work / "out", ignore_errors=True)
        begun = chance.choice(list(BEGIN))
        more = [f"{BEGIN[begun]}={work / form}", "--embedding-size=6", f"--out={work / 'out'}"]
        yield Case([*once(training(begun)), *more], f"{begun} begins with {form}", len(data))

    return cases


def hostile_models(work: Path) -> Callable[[Chance], Iterator[Case]]:
    """ARPA files to import."""
    arpa = work / "whole.arpa"

    def cases(chance: Chance) -> Iterator[Case]:
        from unrolled.app.cli import main

        if not arpa.exists():
            assert main(["export", str(KEPT / "ngram"), f"--arpa={arpa}"]) == 0
        shutil.rmtree(work / "out", ignore_errors=True)
        data = hostile(arpa.read_bytes(), chance)
        (work / "changed.arpa").write_bytes(data)
        given = ["import", str(work / "changed.arpa"), f"--out={work / 'out'}"]
        yield Case(given, "import", len(data))
        if (work / "out").exists():
            yield Case(["score", str(work / "out"), f"{DATA}/asked.txt"], "score of imported")

    return cases
