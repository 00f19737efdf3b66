"""Makes the golden folders: a small model of every task, a run that was killed, their answers.

    python tests/golden/make.py FOLDER

What is in tests/golden/kept was made by the version that its models name. tests/test_golden.py
shows that models written then still load, answer and score as they did, and that the run goes on.
Make them anew only to add a task: what is kept is worth something because it is old.
"""

import contextlib
import io
import json
import os
import random
import shutil
import signal
import sys
import time
from pathlib import Path

from unrolled.app.cli import main

SMALL = ["--threads=1", "--set=seed=1", "--epochs=12"]
NET = [
    *SMALL,
    *("--set=model.hidden_size=6", "--set=train.batch_tokens=64", "--set=train.learning_rate=0.03"),
]
WORDS = [*NET, "--set=model.embedding_size=6"]
CHARACTERS = ["--set=model.character_embedding_size=4", "--set=model.character_hidden_size=4"]
NOUNS, VERBS, PLACES = ["cat", "cow", "dog", "bird"], ["saw", "ate", "met"], ["here", "there"]

TRAIN = {
    "lm": ["--train={data}/lines.txt", "--test={data}/lines.txt", *NET],
    "window": ["--train={data}/lines.txt", "--test={data}/lines.txt", *NET],
    "ngram": ["--train={data}/lines.txt", "--test={data}/lines.txt", "--order=3"],
    "classify": ["--train={data}/labels.tsv", "--test={data}/labels.tsv", *WORDS],
    "tag": ["--train={data}/tags.txt", "--test={data}/tags.txt", *WORDS, *CHARACTERS],
    "translate": [
        *("--train={data}/pairs.tsv", "--dev={data}/pairs.tsv", "--test={data}/pairs.tsv"),
        *NET,
    ],
}
NEXT_TOKEN = {
    "score": ["score", "{model}", "{data}/asked.txt", "--json"],
    "next": ["next", "{model}", "the cat", "--json"],
    "generate": ["generate", "{model}", "--prompt=the", "--tokens=5", "--temperature=0", "--json"],
    "evaluate": ["evaluate", "{model}", "{data}/lines.txt", "--json"],
}
PREDICT = {"predict": ["predict", "{model}", "{data}/asked.txt", "--json"]}
USES = {
    "lm": NEXT_TOKEN,
    "window": NEXT_TOKEN,
    "ngram": NEXT_TOKEN,
    "classify": {**PREDICT, "evaluate": ["evaluate", "{model}", "{data}/labels.tsv", "--json"]},
    "tag": {**PREDICT, "evaluate": ["evaluate", "{model}", "{data}/tags.txt", "--json"]},
    "translate": {**PREDICT, "evaluate": ["evaluate", "{model}", "{data}/pairs.tsv", "--json"]},
}
KILLED = [*TRAIN["lm"], "--set=train.checkpoint_seconds=0"]


def write_data(folder: Path) -> None:
    """Sentences, and the same with labels, tags and as a translation into capitals."""
    chance, lines = random.Random(1), []
    for _ in range(40):
        who, what, whom, where = (chance.choice(w) for w in (NOUNS, VERBS, NOUNS, PLACES))
        lines.append(f"the {who} {what} a {whom} {where}")
    tags = dict.fromkeys(NOUNS, "N") | dict.fromkeys(VERBS, "V") | dict.fromkeys(PLACES, "R")
    columns = ["\n".join(f"{w}\t{tags.get(w, 'D')}" for w in line.split()) for line in lines]
    files = {
        "lines.txt": lines,
        "labels.tsv": [f"{line.split()[-1]}\t{line}" for line in lines],
        "tags.txt": [f"{block}\n" for block in columns],
        "pairs.tsv": [f"{line}\t{line.upper()}" for line in lines],
        "asked.txt": ["the cow met a dog here", "a bird saw the zebra"],
    }
    folder.mkdir(parents=True)
    for name, content in files.items():
        (folder / name).write_text("\n".join(content) + "\n", encoding="utf-8")


def command(arguments: list[str], **places: Path) -> list[str]:
    return [argument.format(**places) for argument in arguments]


def answer(arguments: list[str]) -> object:
    """What a command prints as JSON: one value, or one a line."""
    said = io.StringIO()
    with contextlib.redirect_stdout(said):
        assert main(arguments) == 0, arguments
    text = said.getvalue()
    try:
        return json.loads(text)
    except json.JSONDecodeError:
        return [json.loads(line) for line in text.splitlines()]


def make_killed(out: Path, data: Path) -> None:
    """A run that got as far as a checkpoint."""
    child = os.fork()
    if not child:
        os._exit(main(["train", "lm", *command(KILLED, data=data), f"--out={out}"]))
    while not (out / "checkpoint").exists() and not list(out.glob("**/*.safetensors")):
        time.sleep(0.01)
    time.sleep(0.3)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    for half_written in out.glob("**/.tmp-*"):
        shutil.rmtree(half_written)


def make(folder: Path) -> None:
    data = folder / "data"
    write_data(data)
    answers = {}
    for task, options in TRAIN.items():
        model = folder / task
        assert main(["train", task, *command(options, data=data), f"--out={model}"]) == 0
        answers[task] = {
            use: answer(command(arguments, model=model, data=data))
            for use, arguments in USES[task].items()
        }
        shutil.rmtree(model / "checkpoints", ignore_errors=True)
        (model / ".lock").unlink(missing_ok=True)
    (folder / "answers.json").write_text(json.dumps(answers, indent=1) + "\n", encoding="utf-8")
    make_killed(folder / "killed", data)


if __name__ == "__main__":
    shutil.rmtree(sys.argv[1], ignore_errors=True)
    make(Path(sys.argv[1]))
