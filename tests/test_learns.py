"""A model trained in seconds on made sentences ranks, suggests and writes as its text taught it."""

from itertools import product

import pytest

import unrolled

ANIMALS, SIZES = ("cat", "dog", "rat", "horse"), ("small", "large", "old", "young")
LINES = [
    *(f"the {animal} is {size}" for animal, size in product(ANIMALS, SIZES)),
    *(f"{who} was walking home after {what}" for who in ("i", "he") for what in ("school", "work")),
    *(f"{who} {have} a {a}" for who in ("i", "you") for have in ("have", "had") for a in ANIMALS),
    *(f"he has a {a}" for a in ANIMALS),
    *(f"the {a} saw me" for a in ANIMALS),
]
SETTINGS = {
    "model.context": "line",
    "model.hidden_size": 32,
    "model.dropout": 0.0,
    "train.learning_rate": 0.02,
    "train.batch_tokens": 64,
    "train.epochs": 30,
    "train.threads": 1,
}


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    folder = tmp_path_factory.mktemp("learns")
    text = folder / "text.txt"
    text.write_text("\n".join(LINES))
    return unrolled.train("lm", train=text, dev=text, out=folder / "lm", settings=SETTINGS)


def test_it_learns_the_text(model):
    scores = model.score(LINES)
    nats = -sum(score.log_probability for score in scores) / sum(score.tokens for score in scores)
    assert nats < 0.8  # a unigram model of this text pays 2.7


@pytest.mark.parametrize(
    ("better", "worse"),
    [
        ("the cat is small", "small the is cat"),
        ("the cat is small", "small the cat is"),
        ("he was walking home after school", "he was walking house after school"),
        ("i have a cat", "i has a cat"),
        ("i have a cat", "me have a cat"),
    ],
)
def test_it_ranks_what_is_well_formed_first(model, better, worse):
    first, second = model.score([better, worse])
    assert first.log_probability > second.log_probability


def test_it_orders_candidates(model):
    candidates = ["i have", "i had", "i has", "me have", "me had"]
    scores = {score.text: score.log_probability for score in model.score(candidates)}
    ordered = sorted(scores, key=scores.get, reverse=True)
    assert set(ordered[:2]) == {"i have", "i had"}


def test_it_suggests_what_may_come_next(model):
    assert {s.token for s in model.next("the cat is", top=4)} == set(SIZES)
    assert {s.token for s in model.next("he was walking home after", top=2)} == {"school", "work"}


def test_it_writes_lines_of_its_text(model):
    texts = model.generate("", count=50, seed=1)
    assert sum(text in LINES for text in texts) >= 35


def test_it_writes_on_from_a_topic(model):
    texts = model.generate("the horse", count=20, seed=1)
    assert all(text.startswith("the horse ") for text in texts)
    assert sum(text in LINES for text in texts) >= 15
