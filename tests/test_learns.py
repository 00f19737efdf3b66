"""A model trained in seconds on made sentences ranks, suggests and writes as its text taught it."""

from itertools import product

import pytest

import unrolled

pytestmark = [pytest.mark.arithmetic, pytest.mark.trains]

ANIMALS, SIZES = ("cat", "dog", "rat", "horse"), ("small", "large", "old", "young")
LINES = [
    *(f"the {animal} is {size}" for animal, size in product(ANIMALS, SIZES)),
    *(f"{who} was walking home after {what}" for who in ("i", "he") for what in ("school", "work")),
    *(f"the {a} saw the house after {what}" for a in ANIMALS for what in ("school", "work")),
    *(f"the house is {size}" for size in SIZES),
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
MARGIN = 0.5  # nats


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    folder = tmp_path_factory.mktemp("learns")
    text = folder / "text.txt"
    text.write_text("\n".join(LINES))
    return unrolled.train("lm", train=text, dev=text, out=folder / "lm", settings=SETTINGS)


def test_it_learns_the_text(model):
    scores = model.score(LINES)
    nats = -sum(score.log_probability for score in scores) / sum(score.tokens for score in scores)
    assert nats < 0.85  # its lines have 0.72; a unigram model of this text pays 2.97


@pytest.mark.row("B2")
@pytest.mark.parametrize(
    ("better", "worse"),
    [
        ("the cat is small", "small the is cat"),
        ("the cat is small", "small the cat is"),
        ("walking home after school", "walking house after school"),
        ("he was walking home after school", "he was walking house after school"),
        ("i have a cat", "i has a cat"),
        ("i have a cat", "me have a cat"),
    ],
)
def test_it_ranks_what_is_well_formed_first(model, better, worse):
    first, second = model.score([better, worse])
    assert first.unknown == second.unknown == 0
    assert first.log_probability > second.log_probability + MARGIN


@pytest.mark.row("B2")
def test_it_orders_candidates(model):
    candidates = ["me had", "i has", "i had", "me have", "i have"]
    scores = model.score(candidates)
    assert all(score.unknown == 0 for score in scores)
    ordered = sorted(scores, key=lambda score: score.log_probability, reverse=True)
    assert {score.text for score in ordered[:2]} == {"i have", "i had"}
    assert ordered[2].text == "i has"
    for above, below in ((1, 2), (2, 3)):
        assert ordered[above].log_probability > ordered[below].log_probability + MARGIN


def test_it_suggests_what_may_come_next(model):
    assert {s.token for s in model.next("the cat is", top=4)} == set(SIZES)
    assert {s.token for s in model.next("he was walking home after", top=2)} == {"school", "work"}


def test_it_writes_lines_of_its_text(model):
    texts = model.generate("", count=50, seed=1)
    assert sum(text in LINES for text in texts) >= 35


@pytest.mark.row("I6")
def test_it_writes_on_from_a_topic(model):
    texts = model.generate("the horse", count=20, seed=1)
    assert all(text.startswith("the horse ") for text in texts)
    assert sum(text in LINES for text in texts) >= 15
