"""Small data for every task, and the options to train on them in a moment."""

import random
import shutil
from pathlib import Path

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
    "embed": [
        *("--train={data}/lines.txt", "--test={data}/lines.txt", *SMALL),
        *("--set=model.embedding_size=6", "--set=train.batch_tokens=64"),
    ],
    "tree": ["--train={data}/trees.txt", "--test={data}/trees.txt", *WORDS],
    "translate": [
        *("--train={data}/pairs.tsv", "--dev={data}/pairs.tsv", "--test={data}/pairs.tsv"),
        *NET,
    ],
}


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
        "trees.txt": [bracketed(line) for line in lines],
        "asked.txt": ["the cow met a dog here", "a bird saw the zebra"],
    }
    folder.mkdir(parents=True)
    for name, content in files.items():
        (folder / name).write_text("\n".join(content) + "\n", encoding="utf-8")


def bracketed(line: str) -> str:
    """A sentence as a tree that branches to the left, a label at every node."""
    first, *words = line.split()
    place = 1 + PLACES.index(words[-1])
    tree = f"(0 {first})"
    for n, word in enumerate(words, 1):
        last = n == len(words)
        tree = f"({place if last else 0} {tree} ({place if last else 0} {word}))"
    return tree


def own_copy(folder: Path, target: Path) -> Path:
    """A copy that may be written to, though what is copied may be read alone."""
    shutil.copytree(folder, target)
    for path in (target, *target.rglob("*")):
        path.chmod(path.stat().st_mode | 0o200)
    return target
