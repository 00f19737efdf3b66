"""A command that meets something bad ends well, or with 2 to 6 and a sentence: what every case
of these tests is held to. A traceback, NaN that is printed, much time or memory: it has fallen.
"""

import atexit
import contextlib
import io
import random
import re
import resource
import shlex
import shutil
import tempfile
import time
import traceback
import warnings
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import NamedTuple

from golden_data import TRAIN

from unrolled.app.cli import main
from unrolled.store.files import MANIFEST
from unrolled.tasks import TASKS

KEPT = Path(__file__).parents[1] / "golden" / "kept"
DATA = KEPT / "data"
SECONDS = 2.0  # of processor time
TRAINING = 10.0  # where it comes to training, or to a study of the lab
MEGABYTES = 300  # beside twice the size of the file
CODES = {0, 2, 3, 4, 5, 6}
LINES = ["--train={data}/lines.txt", "--test={data}/lines.txt"]
VARIANTS = {  # of tasks whose models differ in what their folders keep
    "byte pairs": ("lm", ["--level=bpe", "--max-size=300", "--cell=gru"]),
    "characters": ("classify", ["--level=char", "--pooling=attention", "--cell=rnn"]),
    "no crf": ("tag", ["--decoder=softmax", "--cell=gru"]),
    "bahdanau": ("translate", ["--placement=bahdanau", "--level=word", "--cell=gru"]),
    "no attention": ("translate", ["--attention=none", "--level=char"]),
    "glove": ("embed", ["--objective=glove"]),
    "subwords": ("embed", ["--subwords"]),
    "hierarchical": ("embed", ["--objective=cbow", "--output=hierarchical"]),
    "childsum": ("tree", ["--composition=childsum"]),
    "tensors": ("tree", ["--composition=rntn"]),
    "matrices": ("tree", ["--composition=mvrnn"]),
    "autoencoder": ("tree", [*LINES, "--composition=autoencoder", "--tree=greedy"]),
    "greedy": ("tree", ["--composition=autoencoder", "--tree=greedy"]),
}
MODELS: dict[str, tuple[str, list[str]]] = {**{task: (task, []) for task in TASKS}, **VARIANTS}
NO_NUMBER = re.compile(r"\b(nan|NaN)\b")
PAIRS = "the cat saw a dog\tthe cat see a dog\na bird here\ta birds here\n"

Chance = random.Random


class Case(NamedTuple):
    """Something to try: the command, and how many bytes it was given beyond the usual."""

    arguments: Sequence[str]
    about: str
    size: int = 0


def fall_of(case: Case) -> str | None:
    """What is wrong with how a command ended, if anything."""
    out, err = io.StringIO(), io.StringIO()
    before, began = peak(), time.process_time()
    try:
        with (
            contextlib.redirect_stdout(out),
            contextlib.redirect_stderr(err),
            warnings.catch_warnings(),
        ):
            warnings.simplefilter("error")
            code = main([*case.arguments])
    except BaseException as error:
        return f"{type(error).__name__}: {error}\n{''.join(traceback.format_exc()[-1500:])}"
    seconds, grown = time.process_time() - began, peak() - before
    said = [line for line in err.getvalue().splitlines() if line.startswith("unrolled: ")]
    if code not in CODES or (code and len(said) != 1):
        return f"exit {code}: {err.getvalue()[-500:]!r}"
    if code and len(said[0]) > 3000:
        return f"a sentence of {len(said[0])} characters"
    if code == 0 and NO_NUMBER.search(_computed(out.getvalue(), case.arguments)):
        return f"NaN is printed: {out.getvalue()[-300:]!r}"
    if seconds > (TRAINING if code == 0 and case.arguments[0] in ("train", "lab") else SECONDS):
        return f"{seconds:.1f} s of processor time (exit {code})"
    if grown > MEGABYTES * 10**6 + 2 * case.size:
        return f"{grown / 1e6:.0f} MB (exit {code})"
    return None


def _computed(printed: str, given: Sequence[str]) -> str:
    """What was printed without the words it was asked with: a file may be called “nan”."""
    for value in (word.rpartition("=")[2] for word in given):
        printed = printed.replace(value, "", 1) if NO_NUMBER.search(value) else printed
    return printed


def peak() -> int:
    """The most memory that this process has taken so far, in bytes."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def warm_up() -> None:
    """Import what a command imports late, and reach the memory of ordinary work."""
    for name in TASKS:
        for case in uses_of(kept(name), name):
            fall_of(case)


@cache
def kept(name: str) -> Path:
    """A small model of a task: the golden one, or one trained now where there is none yet."""
    if (KEPT / name).exists():
        return KEPT / name
    folder = _trained(name)
    shutil.rmtree(folder / "checkpoints", ignore_errors=True)
    return folder


@cache
def minimal_pairs() -> Path:
    folder = Path(tempfile.mkdtemp())
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    (folder / "pairs.tsv").write_text(PAIRS)
    return folder / "pairs.tsv"


@cache
def cut_short(name: str) -> Path:
    """A run that was killed in its last save."""
    folder = _trained(name, *often(name))
    (folder / MANIFEST).unlink()
    return folder


def often(name: str) -> list[str]:
    """A checkpoint at every step, where there are steps."""
    return [] if name == "ngram" else ["--checkpoint-seconds=0"]


def training(name: str) -> list[str]:
    """How a task, or a variant of it, is trained; --out is still to be said."""
    task, more = MODELS[name]
    return ["train", task, *(option.format(data=DATA) for option in [*TRAIN[task], *more])]


def once(given: list[str]) -> list[str]:
    """The same command, reading its data once."""
    return [option.replace("--epochs=12", "--epochs=1") for option in given]


def _trained(name: str, *more: str) -> Path:
    folder = Path(tempfile.mkdtemp()) / "model"
    atexit.register(shutil.rmtree, folder.parent, ignore_errors=True)
    quiet = io.StringIO()
    with contextlib.redirect_stdout(quiet), contextlib.redirect_stderr(quiet):
        assert main([*training(name), *more, f"--out={folder}"]) == 0, quiet.getvalue()
    return folder


def uses_of(folder: Path, name: str) -> Iterator[Case]:
    """Every way to use a model."""
    task = TASKS[MODELS[name][0]]
    yield Case(["info", str(folder)], "info")
    for use_name, use in task.uses.items():
        required = [field.is_required() for field in use.input.model_fields.values()]
        given = [f"{DATA}/asked.txt"] if use.by_line else ["the cat"] * sum(required)
        few = ["--tokens=5"] if "tokens" in use.options.model_fields else []
        few += [f"--among={DATA}/asked.txt"] if "among" in use.options.model_fields else []
        yield Case([use_name, str(folder), *given, *few], use_name)
        yield Case([use_name, str(folder), *given, *few, "--json"], f"{use_name} --json")
    yield Case(["evaluate", str(folder), str(data_of(name)["test"])], "evaluate")


def more_of(folder: Path, name: str) -> Iterator[Case]:
    """What else is asked about a model: pictures, a comparison, its vectors, studies of it."""
    task = TASKS[MODELS[name][0]]
    test = str(data_of(name)["test"])
    yield Case(["info", str(folder), "--shapes"], "shapes")
    yield Case(["export", str(folder), f"--arpa={folder.parent / 'x.arpa'}"], "export")
    yield Case(["compare", str(folder), str(kept(name)), f"--data={test}"], "compare")
    for view in task.views:
        yield Case(["plot", str(folder), f"--view={view}", f"--data={test}"], view)
    yield Case(["lab", "gradients", str(folder), "the cat saw"], "lab gradients")
    yield Case(["lab", "agreement", str(folder), str(minimal_pairs())], "lab agreement")
    yield Case(["lab", "draw", "generation", f"--model={folder}"], "lab draw")
    if task.name == "embed":
        yield Case(["vectors", "neighbours", str(folder), "cat"], "neighbours")
        yield Case(["vectors", "analogy", str(folder), "cat", "dog", "the"], "analogy")
        yield Case(["vectors", "odd-one-out", str(folder), "cat", "dog", "the"], "odd one out")
        yield Case(["vectors", "map", str(folder), "--method=pca"], "map")


def data_of(name: str) -> dict[str, Path]:
    """The small files of a task or a variant, by split."""
    options = (option.removeprefix("--").partition("=") for option in training(name)[2:])
    return {split: Path(path) for split, _, path in options if split in ("train", "dev", "test")}


def hunt(cases: Callable[[Chance], Iterator[Case]], count: int, seed: int) -> Iterator[str]:
    """Try so many cases: what has fallen, each with the number that makes it again."""
    for number in range(seed, seed + count):
        for case in cases(Chance(number)):
            if (problem := fall_of(case)) is not None:
                yield f"seed {number}: {case.about}: {shlex.join(case.arguments)}\n{problem}"
