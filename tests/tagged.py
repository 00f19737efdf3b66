"""What the tests of taggers share: small tagged corpora with something to learn."""

import random

from unrolled.config import TagRun, settings_for
from unrolled.models.tag import TagModel
from unrolled.training.tag import TagJob, tag_job

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


# The word "back" as adjective, noun, verb and adverb.
BACK = {
    "DT JJ NN VBD": ["the back door opened", "a back seat creaked", "the back yard flooded"],
    "PRP$ NN VBZ RB": ["my back hurts now", "his back aches again", "her back heals slowly"],
    "NNS VBP DT NN": ["senators back the bill", "voters back a plan", "unions back the law"],
    "PRP VBD RB RB": ["they went back quickly", "we came back late", "she drove back home"],
}


def back_lines(times: int) -> list[str]:
    """Every sentence so many times, in columns."""
    pairs = [(s.split(), tags.split()) for tags, group in BACK.items() for s in group]
    one = [[*(f"{w} {t}" for w, t in zip(*pair, strict=True)), ""] for pair in pairs]
    return [line for sentence in one * times for line in sentence]


def small_settings(**overrides: object) -> TagRun:
    """Settings of a run of seconds; `model__cell` stands for model.cell."""
    dotted = {name.replace("__", "."): value for name, value in overrides.items()}
    settings = settings_for("tag", overrides={**SMALL, **dotted})
    assert isinstance(settings, TagRun)
    return settings


def small_job(lines: list[str] | None = None, **overrides: object) -> TagJob:
    """A job whose dev data are its training data."""
    lines = span_lines(60) if lines is None else lines
    texts = {"train": lines, "dev": lines}
    return tag_job(small_settings(**overrides), texts, {"train": "train.txt", "dev": "dev.txt"})


def small_model(**overrides: object) -> TagModel:
    """A model with fresh weights."""
    return small_job(**overrides).model
