"""Kills training runs with SIGKILL and resumes them until they end; then compares every byte.

    python kill_runs.py FOLDER SCENARIO KILLS SEED

test_resume.py runs it on its own: each run is a fork of this process, which has loaded torch
already. Every other kill is aimed at a checkpoint that is just being written. Prints how many
kills hit a run that was under way.
"""

import os
import random
import signal
import sys
import time
from pathlib import Path

import torch

from unrolled.app.cli import main
from unrolled.store.files import TEMPORARY

SCENARIOS = {
    "stream": {
        "model.layers": 2,
        "model.dropout": 0.3,
        "model.first_state": "learned",
        "train.checkpoint_seconds": 0,
    },
    "line": {
        "model.context": "line",
        "model.cell": "gru",
        "model.first_state": "learned",
        "train.optimizer": "sgd",
        "train.learning_rate": 1.0,
        "train.schedule": "plateau",
        "train.early_stop": 3,
        "train.checkpoint_seconds": 0,
    },
    "seldom": {"train.optimizer": "adam", "model.tied": False, "train.checkpoint_seconds": 0.05},
}
SMALL = {"model.hidden_size": 16, "train.batch_tokens": 128, "train.steps": 16}
WORDS = ["cat", "cow", *"abcdefghijklmnopq"]


def write_texts(folder: Path) -> None:
    chance = random.Random(1)
    for name, lines in (("train", 120), ("dev", 20), ("test", 20)):
        text = [" ".join(chance.choices(WORDS, k=chance.randint(1, 12))) for _ in range(lines)]
        (folder / f"{name}.txt").write_text("\n".join(text) + "\n")


def command(folder: Path, out: Path, scenario: str) -> list[str]:
    texts = [f"--{name}={folder / name}.txt" for name in ("train", "dev", "test")]
    settings = {**SMALL, **SCENARIOS[scenario]}
    choices = [f"--set={name}={value}" for name, value in settings.items()]
    return ["train", "lm", *texts, f"--out={out}", "--epochs=4", "--threads=1", *choices]


def start(arguments: list[str], log: Path) -> int:
    if child := os.fork():
        return child
    log_file = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    os.dup2(log_file, 1)
    os.dup2(log_file, 2)
    os._exit(main(arguments))


def finish(child: int) -> int:
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def is_writing(out: Path) -> bool:
    """Whether a temporary thing lies in the run's folders at this moment."""
    return any(
        name.startswith(TEMPORARY)
        for folder in (out, out / "checkpoints")
        if folder.is_dir()
        for name in os.listdir(folder)
    )


def kill(child: int, out: Path, chance: random.Random, *, seconds: float, aimed: bool) -> int:
    """Kill after a random time, or in the middle of the first write after it; the exit code."""
    moment = time.monotonic() + chance.uniform(0.0, seconds)
    while time.monotonic() < moment or (aimed and not is_writing(out)):
        done, status = os.waitpid(child, os.WNOHANG)
        if done:
            return os.waitstatus_to_exitcode(status)
    os.kill(child, signal.SIGKILL)
    return finish(child)


def result(out: Path) -> dict[str, bytes]:
    """All that must be the same: the model folder, the metrics, and the last checkpoint."""
    last = max((out / "checkpoints").glob("step-*"))
    best = max((out / "checkpoints").glob("best-*"))
    folders = {"": out, "last/": last, "best/": best}
    return {
        prefix + path.name: path.read_bytes()
        for prefix, folder in folders.items()
        for path in folder.iterdir()
        if path.is_file() and path.name not in (".lock", "times.jsonl")
    } | {"last": last.name.encode(), "best": best.name.encode()}


def go(folder: Path, scenario: str, kills: int, chance: random.Random) -> int:
    write_texts(folder)
    log, whole = folder / "log.txt", folder / "whole"
    begun = time.monotonic()
    assert finish(start(command(folder, whole, scenario), log)) == 0, log.read_text()
    seconds, expected, hit, journey = time.monotonic() - begun, result(whole), 0, 0
    while hit < kills:
        out, journey = folder / f"killed-{journey}", journey + 1
        arguments = [*command(folder, out, scenario), "--resume"]
        code, tried = -signal.SIGKILL, 0
        while code == -signal.SIGKILL:
            tried += 1
            share = seconds / 3 if tried < 8 else 2 * seconds
            aimed = (hit + tried) % 2 == 0
            code = kill(start(arguments, log), out, chance, seconds=share, aimed=aimed)
            hit += code == -signal.SIGKILL
        assert code == 0, (code, log.read_text()[-2000:])
        found = result(out)
        different = [name for name in expected if found.get(name) != expected[name]]
        assert found.keys() == expected.keys(), found.keys() ^ expected.keys()
        assert not different, (journey, different)
        assert not is_writing(out)
    return hit


if __name__ == "__main__":
    torch.set_num_threads(1)
    torch.optim.SGD([torch.zeros(1, requires_grad=True)], lr=1.0).step()  # loads what it loads late
    print(go(Path(sys.argv[1]), sys.argv[2], int(sys.argv[3]), random.Random(int(sys.argv[4]))))
