"""Word vectors that were learned elsewhere: frozen or trained on, in each task."""

import numpy as np
import pytest

from unrolled.app.cli import main
from unrolled.errors import ConfigError
from unrolled.evaluate.report import saved_reports
from unrolled.tasks.run import train

pytestmark = [pytest.mark.arithmetic, pytest.mark.trains]
LINES = ["the rat ate the cheese", "the cat saw the rat", "the dog saw a cat"] * 4
VECTORS = {"the": [1, 2, 3, 4], "rat": [5, 6, 7, 8], "cat": [-1, -2, -3, -4]}
FORMS = {
    "lm": "\n".join(LINES),
    "window": "\n".join(LINES),
    "classify": "\n".join(f"{'x' if 'rat' in line else 'y'}\t{line}" for line in LINES),
    "translate": "\n".join(f"{line}\t{line.upper()}" for line in LINES),
}
SIZES = {
    "model.embedding_size": 4,
    "model.hidden_size": 5,
    "tokens.level": "word",
    "model.tied": False,
    "train.baselines": False,
}
EMBEDDINGS = {
    "lm": lambda network: network.embedding,
    "window": lambda network: network.embedding,
    "classify": lambda network: network.embedder.embedding,
    "translate": lambda network: network.source_embedding,
}
every_task = pytest.mark.parametrize("task", FORMS)


def settings(task, path, **more):
    name = "model.source_vectors" if task == "translate" else "model.vectors"
    chosen = {**SIZES, name: str(path), **more}
    if task == "classify":
        del chosen["model.tied"]
    return chosen


@pytest.fixture
def vectors(tmp_path):
    path = tmp_path / "vectors.txt"
    path.write_text("".join(f"{w} {' '.join(map(str, v))}\n" for w, v in VECTORS.items()))
    return path


def trained(task, tmp_path, chosen):
    path = tmp_path / "data.tsv"
    path.write_text(FORMS[task] + "\n")
    out = tmp_path / f"out-{len(list(tmp_path.iterdir()))}"
    model = train(task, train=path, out=out, epochs=1, settings=chosen)
    encoder = model.source if task == "translate" else getattr(model, "encoder", None)
    vocabulary = model.reader.vocabulary if encoder is None else encoder.vocabulary
    rows = {word: vocabulary.tokens.index(word) for word in VECTORS if word in vocabulary.tokens}
    weight = EMBEDDINGS[task](model.network).weight.detach().numpy()
    return {word: weight[row] for word, row in rows.items()}


@pytest.mark.row("A5")
@every_task
@pytest.mark.parametrize("freeze", [False, True])
def test_vectors_are_kept_when_frozen_and_change_when_not(task, freeze, tmp_path, vectors):
    chosen = settings(task, vectors, **{"model.freeze_vectors": freeze})
    found = trained(task, tmp_path, chosen)
    assert found.keys() == VECTORS.keys()
    for word, row in found.items():
        assert np.array_equal(row, VECTORS[word]) is freeze
        np.testing.assert_allclose(row, VECTORS[word], atol=0.5)


@every_task
def test_vectors_of_another_length_are_refused(task, tmp_path, vectors):
    with pytest.raises(ConfigError, match=r"is 6, but the vectors have 4 numbers. Set it to 4"):
        trained(task, tmp_path, settings(task, vectors, **{"model.embedding_size": 6}))


@every_task
def test_vectors_of_words_are_not_for_characters(task, tmp_path, vectors):
    with pytest.raises(ConfigError, match=r'vectors of words, but tokens.level is "char"'):
        trained(task, tmp_path, settings(task, vectors, **{"tokens.level": "char"}))


def test_a_tied_softmax_is_not_frozen(tmp_path, vectors):
    chosen = settings("lm", vectors, **{"model.tied": True, "model.freeze_vectors": True})
    chosen["model.hidden_size"] = 4
    with pytest.raises(ConfigError, match="the softmax would be frozen"):
        trained("lm", tmp_path, chosen)


@every_task
def test_there_must_be_something_to_freeze(task, tmp_path, capsys):
    (tmp_path / "data.tsv").write_text(FORMS[task])
    options = [f"--train={tmp_path / 'data.tsv'}", f"--out={tmp_path / 'out'}"]
    assert main(["train", task, *options, "--set", "model.freeze_vectors=true"]) == 2
    assert "there are no vectors to freeze" in capsys.readouterr().err


def topics(tmp_path):
    """A plain text of two topics, and labelled texts of a word of a topic and two of none.

    In the training data every word comes once: what matters can only be known from the plain text.
    """
    chance = np.random.default_rng(4)
    sea, war, neutral = ([f"{name}{k}" for k in range(100)] for name in ("sea", "war", "any"))
    own = [chance.choice((sea, war)[k % 2], 4) for k in range(8000)]
    mixed = [chance.permutation([*words, *chance.choice(neutral, 3)]) for words in own]
    (tmp_path / "plain").write_text("\n".join(map(" ".join, mixed)))
    train = [
        (label, [neutral[4 * k + side], words[k], neutral[4 * k + 2 + side]])
        for k in range(20)
        for side, (label, words) in enumerate((("sea", sea), ("war", war)))
    ]
    test = [
        (label, [*chance.choice(neutral[:80], 2), words[k % 20]])
        for k in range(100)
        for label, words in (("sea", sea), ("war", war))
    ]
    for name, rows in {"train": train, "dev": test[100:], "test": test[:100]}.items():
        lines = "".join(f"{label}\t{' '.join(words)}\n" for label, words in rows)
        (tmp_path / name).write_text(lines)
    return {name: tmp_path / name for name in ("train", "dev", "test")}


def accuracy(files, out, seed, **chosen):
    sizes = {"model.embedding_size": 10, "model.hidden_size": 8, "train.learning_rate": 0.01}
    more = {"tokens.splitter": "space", "tokens.min_count": 1, "train.baselines": False}
    train("classify", **files, out=out, settings=sizes | more | chosen, epochs=20, seed=seed)
    return saved_reports(out)["test"].scores[0].value


@pytest.mark.row("C17")
@pytest.mark.parametrize("freeze", [True, False])
def test_vectors_of_a_plain_text_help_small_data(freeze, tmp_path):
    """Five seeds; the 95 % interval of the mean difference (Student's t) lies above 0."""
    files = topics(tmp_path)
    settings = {"model.embedding_size": 10, "train.subsample": 0.0, "train.batch_tokens": 5000}
    settings["tokens.splitter"] = "space"
    train("embed", train=tmp_path / "plain", out=tmp_path / "v", settings=settings, epochs=4)
    given = {"model.vectors": str(tmp_path / "v"), "model.freeze_vectors": freeze}
    gains = [
        accuracy(files, tmp_path / f"with{seed}", seed, **given)
        - accuracy(files, tmp_path / f"without{seed}", seed)
        for seed in range(1, 6)
    ]
    assert np.mean(gains) - 2.776 * np.std(gains, ddof=1) / 5**0.5 > 0.0
