"""Word vectors that are stopped within an epoch and resumed."""

import os
import random
import signal

import pytest

from unrolled.errors import Stopped
from unrolled.tasks.run import train

pytestmark = [pytest.mark.arithmetic, pytest.mark.trains]
SETTINGS = {"model.embedding_size": 12, "tokens.min_count": 1, "train.batch_tokens": 200}
KINDS = {
    "skip-gram": {},
    "cbow": {"model.objective": "cbow"},
    "hierarchical": {"model.output": "hierarchical"},
    "balanced tree, cbow": {
        "model.objective": "cbow",
        "model.output": "hierarchical",
        "model.tree": "balanced",
    },
    "sub-words": {"model.subwords": True},
    "sub-words, cbow": {"model.subwords": True, "model.objective": "cbow"},
    "glove": {"model.objective": "glove", "train.batch_tokens": 0},
}


@pytest.fixture(scope="module")
def text(tmp_path_factory):
    chance, path = random.Random(5), tmp_path_factory.mktemp("text") / "text.txt"
    names = ["".join(chance.choices("abcdefgh", k=5)) for _ in range(60)]
    lines = (" ".join(chance.choices(names, k=chance.randint(1, 12))) for _ in range(180))
    path.write_text("".join(f"{line}\n" for line in lines))
    return path


@pytest.mark.parametrize("kind", KINDS)
def test_a_run_that_is_stopped_within_epochs_ends_in_the_same_bytes(kind, text, tmp_path):
    common = {"train": text, "epochs": 3, "threads": 2, "settings": SETTINGS | KINDS[kind]}
    steps = []
    train("embed", out=tmp_path / "whole", watch=lambda status: steps.append(status), **common)
    last = max(status.step for status in steps)
    an_epoch = last // 3
    stops = [2, an_epoch + an_epoch // 2, last - 2]
    assert an_epoch > 4, "there must be steps within an epoch to stop at"
    for resumed, at in enumerate(stops):

        def stop(status, at=at):
            if status.step == at:
                os.kill(os.getpid(), signal.SIGTERM)

        with pytest.raises(Stopped):
            train("embed", out=tmp_path / "parts", resume=resumed > 0, watch=stop, **common)
    train("embed", out=tmp_path / "parts", resume=True, **common)
    for name in ("model.safetensors", "words.json", "metrics.jsonl"):
        assert (tmp_path / "whole" / name).read_bytes() == (tmp_path / "parts" / name).read_bytes()
