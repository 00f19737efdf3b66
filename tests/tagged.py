"""What the tests of taggers share: small tagged corpora with something to learn."""

import random

from unrolled.config import settings_for
from unrolled.tasks.tag.data import Sentences
from unrolled.tasks.tag.job import TagJob, tag_job
from unrolled.tasks.tag.model import TagModel
from unrolled.tasks.tag.settings import TagRun
from unrolled.text.conll import read_tagged

SMALL = {
    "model.embedding_size": 12,
    "model.hidden_size": 10,
    "model.character_embedding_size": 6,
    "model.character_hidden_size": 5,
    "model.dropout": 0.0,
    "train.batch_tokens": 64,
    "train.learning_rate": 0.02,
    "train.epochs": 8,
    "train.checkpoint_seconds": 0,
}
NAMES = ["Mary", "Ann", "Peter", "Lucy", "Otto"]
PLACES = ["Paris", "New York", "Oslo", "Old Town Hall", "Otto"]  # Otto is a person too
VERBS = ["saw", "met", "left"]


def span_lines(sentences: int, *, seed: int = 0) -> list[str]:
    """Columns in IOB1: people, sometimes two side by side, and places of one to three words."""
    chance = random.Random(seed)
    lines = []
    for _ in range(sentences):
        rows = [(chance.choice(NAMES), "I-PER")]
        if chance.random() < 0.3:
            rows.append((chance.choice(NAMES), "B-PER"))
        rows.append((chance.choice(VERBS), "O"))
        rows += [(word, "I-LOC") for word in chance.choice(PLACES).split()]
        rows.append((".", "O"))
        lines += [f"{word} X {tag}" for word, tag in rows] + [""]
    return lines


# The word "back" as adjective, noun and verb, in sentences of the lecture notes; the third as it is
# printed and as it should be.
BACK = {
    "Earnings growth took a back seat.": "NNS NN VBD DT JJ NN .",
    "A small building in the back.": "DT JJ NN IN DT NN .",
    "A clear majority of senators back at the bill.": "DT JJ NN IN NNS VBP IN DT NN .",
    "A clear majority of senators back the bill.": "DT JJ NN IN NNS VBP DT NN .",
}
WORDS = {
    "DT": ["the", "a", "this", "every"],
    "JJ": ["small", "clear", "old", "new", "large"],
    "NN": [
        *("seat", "building", "bill", "door", "garden", "row", "plan", "law", "street", "report"),
        *("growth", "majority"),
    ],
    "NNS": ["senators", "voters", "unions", "earnings", "sales", "members", "workers"],
    "VBD": ["took", "opened", "found", "saw"],
    "VBP": ["support", "want", "like"],
    "IN": ["of", "in", "at", "near"],
    ".": ["."],
}
SUBJECTS = ["DT NN", "DT JJ NN", "NNS", "NNS NN", "DT NN IN NNS", "DT JJ NN IN NNS"]
PREDICATES = [  # "back" stands where its tag is written in small letters
    "VBD DT jj NN .",
    "VBD DT jj NN IN DT NN .",
    "IN DT nn .",
    "VBD DT NN IN DT nn .",
    "VBD DT NN .",
]
OF_MANY = ["vbp DT NN .", "vbp IN DT NN .", "vbp DT JJ NN .", "VBP DT NN ."]  # after a plural


def back_lines(sentences: int, *, seed: int = 0) -> list[str]:
    """Columns of made sentences, most of them with "back" in one of its roles; none is in BACK."""
    chance, lines = random.Random(seed), []
    while sentences:
        subject = chance.choice(SUBJECTS)
        many = subject.endswith("NNS")
        tags = f"{subject} {chance.choice(OF_MANY if many else PREDICATES)}".split()
        words = ["back" if tag.islower() else chance.choice(WORDS[tag]) for tag in tags]
        words[0] = words[0].capitalize()
        if " ".join(words).replace(" .", ".") not in BACK:
            lines += [f"{word} {tag.upper()}" for word, tag in zip(words, tags, strict=True)] + [""]
            sentences -= 1
    return lines


def small_settings(**overrides: object) -> TagRun:
    """Settings of a run of seconds; `model__cell` stands for model.cell."""
    dotted = {name.replace("__", "."): value for name, value in overrides.items()}
    return settings_for(TagRun, overrides={**SMALL, **dotted})


def tagged_sentences(lines: list[str], source: str = "made") -> Sentences:
    """The sentences that lines of columns hold."""
    return Sentences(read_tagged(lines, source=source), source, {})


def small_job(lines: list[str] | None = None, **overrides: object) -> TagJob:
    """A job whose dev data are its training data."""
    lines = span_lines(60) if lines is None else lines
    names = ("train", "dev")
    data = {name: tagged_sentences(lines, f"{name}.txt") for name in names}
    return tag_job(small_settings(**overrides), data)


def small_model(**overrides: object) -> TagModel:
    """A model with fresh weights."""
    return small_job(**overrides).model
