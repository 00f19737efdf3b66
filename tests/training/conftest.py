"""A small run to break: its texts, and a function that trains on them."""

import json
import random
from collections.abc import Callable
from pathlib import Path

import pytest
import torch

from unrolled.tasks.run import train

SMALL = {
    "model.hidden_size": 8,
    "train.batch_tokens": 128,
    "train.steps": 16,
    "train.checkpoint_seconds": 0,
}
WORDS = ["cat", "cow", *"abcdefghijklmnopq"]


@pytest.fixture(autouse=True)
def one_thread():
    torch.set_num_threads(1)


@pytest.fixture
def texts(tmp_path: Path) -> dict[str, Path]:
    """Paths of a train and a dev text."""
    chance, paths = random.Random(1), {}
    for name, lines in (("train", 60), ("dev", 10)):
        text = [" ".join(chance.choices(WORDS, k=chance.randint(1, 9))) for _ in range(lines)]
        paths[name] = tmp_path / f"{name}.txt"
        paths[name].write_text("\n".join(text) + "\n")
    return paths


@pytest.fixture
def run(texts: dict[str, Path], tmp_path: Path) -> Callable[..., Path]:
    """Train in a folder of that name; settings and options by keyword."""

    def start(name: str, settings: dict | None = None, **options) -> Path:
        out = tmp_path / name
        given = {"epochs": 2, **texts, **options}
        train("lm", out=out, settings={**SMALL, **(settings or {})}, **given)
        return out

    return start


@pytest.fixture
def bytes_of() -> Callable[[Path], dict[str, bytes]]:
    """All of a finished run that must be the same in an equal one."""

    def read(out: Path) -> dict[str, bytes]:
        last = max((out / "checkpoints").glob("step-*"))
        files = [*out.iterdir(), *last.iterdir()]
        return {
            str(path.relative_to(out)): path.read_bytes()
            for path in files
            if path.is_file() and path.name not in (".lock", "times.jsonl")
        }

    return read


@pytest.fixture
def metrics() -> Callable[[Path], list[dict]]:
    """The rows of metrics.jsonl after the first, which describes the data."""
    return lambda out: [json.loads(x) for x in (out / "metrics.jsonl").read_text().splitlines()][1:]
