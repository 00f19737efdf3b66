"""A small trained model, and a way to run the command in this process."""

from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import pytest
import torch

from unrolled.app.cli import main

TRAIN = "the cat sat on a mat\na dog ran to the house\nit was not very big\n" * 20
SMALL = ["--threads=1", "--set=model.hidden_size=8", "--set=train.batch_tokens=128"]


class Done(NamedTuple):
    code: int
    out: str
    err: str


@pytest.fixture
def call(capsys: pytest.CaptureFixture) -> Callable[..., Done]:
    """Run the command and say how it ended and what it printed."""

    def run(*arguments: object) -> Done:
        capsys.readouterr()
        code = main([str(argument) for argument in arguments])
        return Done(code, *capsys.readouterr())

    return run


@pytest.fixture(scope="session")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a finished model of words, and train.txt beside it."""
    torch.set_num_threads(1)
    folder = tmp_path_factory.mktemp("model")
    (folder / "train.txt").write_text(TRAIN)
    texts = [f"--train={folder / 'train.txt'}", f"--test={folder / 'train.txt'}"]
    assert main(["train", "lm", *texts, f"--out={folder / 'm'}", "--epochs=2", *SMALL]) == 0
    return folder / "m"


@pytest.fixture
def text(model: Path) -> Path:
    return model.parent / "train.txt"
