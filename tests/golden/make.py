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
import shutil
import signal
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))
from golden_data import TRAIN, write_data

from unrolled.app.cli import main

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
