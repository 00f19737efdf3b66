"""The limit of a window: evidence that lies outside it cannot matter.

    as the proctor started the clock the students opened their exams
    as the teacher started the clock the students opened their books

Who is spoken of decides the last word, eight or more words later; everything between is drawn
without regard to it. A model of the last three words can do no better than chance, whatever it is
made of; one that remembers, or whose window is long enough, can be right every time.
"""

import random
from collections.abc import Mapping, Sequence
from itertools import cycle, islice
from pathlib import Path
from typing import Any

from unrolled.store.files import write_file
from unrolled.tasks.run import train
from unrolled.tasks.shared.language_model import LanguageModel

OPENED = {"proctor": "exams", "teacher": "books"}
DID = (
    "started the clock",
    "closed the door",
    "raised a hand",
    "sat down at the desk",
    "wrote on the board",
)

Kind = tuple[str, Mapping[str, Any]]  # a task and its settings
NETWORK = {
    "model.hidden_size": 64,
    "model.tied": False,
    "model.dropout": 0.0,
    "train.learning_rate": 0.005,
    "train.batch_tokens": 256,
    "train.epochs": 12,
    "train.threads": 1,
}
RECURRENT = {  # begins as a memory that loses nothing (Le et al. 2015, arXiv:1504.00941)
    "model.context": "line",
    "model.cell": "rnn",
    "model.activation": "relu",
    "model.init": "identity",
}
KINDS: dict[str, Kind] = {
    "4-gram": ("ngram", {"model.order": 4}),
    "window of 3": ("window", {**NETWORK, "model.window": 3}),
    "window of 12": ("window", {**NETWORK, "model.window": 12}),
    "rnn": ("lm", {**NETWORK, **RECURRENT}),
}


def corpus(size: int, *, seed: int) -> list[str]:
    """Lines, as many of the one ending as of the other if `size` is even."""
    chance = random.Random(seed)
    lines = [
        f"as the {who} {chance.choice(DID)} the students opened their {what}"
        for who, what in islice(cycle(OPENED.items()), size)
    ]
    chance.shuffle(lines)
    return lines


def accuracy(model: LanguageModel, lines: Sequence[str]) -> float:
    """The share of lines whose own last word is likelier than the other one."""
    beginnings = [line.rpartition(" ")[0] for line in lines]
    scores = [
        [score.log_probability for score in model.score([f"{text} {what}" for text in beginnings])]
        for what in OPENED.values()
    ]
    chosen = [max(zip(pair, OPENED.values(), strict=True)) for pair in zip(*scores, strict=True)]
    right = sum(line.endswith(what) for line, (_, what) in zip(lines, chosen, strict=True))
    return right / len(lines)


def window_limit(folder: Path, *, size: int = 600, seed: int = 1) -> dict[str, float]:
    """Train each kind of model on `size` lines in the folder; its accuracy on as many others."""
    text = folder / "corpus.txt"
    write_file(text, ("\n".join(corpus(size, seed=seed)) + "\n").encode())
    held_out = corpus(size, seed=seed + 1)
    found = {}
    for name, (task, settings) in KINDS.items():
        out = folder / name.replace(" ", "-")
        model = train(task, train=text, out=out, seed=seed, settings=settings)
        found[name] = accuracy(model, held_out)
    return found
