"""Vectors made of character n-grams: the compiled step, unseen words, folders, taggers."""

import json

import numpy as np
import pytest
import torch

import unrolled
from unrolled.app.cli import main
from unrolled.errors import ConfigError, ModelError
from unrolled.nn import embed_kernels
from unrolled.nn.embed_kernels import Matrices, Step, train_lines
from unrolled.tasks.embed.blocks import Block
from unrolled.tasks.embed.data import Corpus
from unrolled.tasks.embed.draws import chances_of, key_of
from unrolled.tasks.embed.model import grams_of
from unrolled.tasks.embed.network import EmbedNetwork
from unrolled.tasks.embed.trees import paths_of
from unrolled.tasks.embed.update import PlainLearner
from unrolled.tasks.shared.word_vectors import pretrained
from unrolled.text.subwords import Subwords

pytestmark = pytest.mark.arithmetic
both = pytest.mark.parametrize("cbow", [False, True], ids=["skip-gram", "cbow"])
WORDS = sorted({a + b + c for a in ("un", "re", "") for b in ("do", "tie") for c in ("", "ing")})


def network_of(*, cbow, output="negative", E=21):
    torch.manual_seed(2)
    grams = grams_of(Subwords(2, 4, 90), WORDS)
    counts = np.arange(len(WORDS), 0, -1)
    paths = paths_of("huffman", counts) if output == "hierarchical" else None
    network = EmbedNetwork(len(WORDS), E, cbow=cbow, output=output, paths=paths, grams=grams)
    for weight in (network.input, network.output):
        torch.nn.init.uniform_(weight, -1, 1)
    return network, chances_of(counts, subsample=0.0, noise_power=0.75)


@pytest.mark.skipif(not embed_kernels.active(), reason="no compiled kernels")
@both
@pytest.mark.parametrize("output", ["negative", "hierarchical"])
def test_the_kernel_takes_the_twins_step(cbow, output):
    network, chances = network_of(cbow=cbow, output=output)
    chance = np.random.default_rng(0)
    lengths = chance.integers(0, 12, size=15)
    ids = chance.integers(0, len(WORDS), size=lengths.sum(), dtype=np.int32)
    corpus = Corpus(ids, np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64))
    words = 5 if output == "negative" else 1
    step = Step(
        window=3, words=words, shared=16, negatives=5, cbow=cbow, rate=0.02, key=key_of(1, 0)
    )
    matrices = Matrices(network.input.detach(), network.output.detach(), copies=1)
    given = (corpus.ids, corpus.starts, (0, 15), chances, step)
    mine = train_lines(matrices, *given, threads=1, paths=network.paths, grams=network.grams)
    twin = PlainLearner(network.double(), corpus, chances)
    theirs = twin.learn((0, 15), step)
    assert mine[1] == theirs[1] > 0
    assert mine[0] == pytest.approx(theirs[0], rel=1e-5)
    for own, other in zip((matrices.input, matrices.output), twin.vectors(), strict=True):
        torch.testing.assert_close(own, other.float(), rtol=1e-4, atol=1e-5)


@both
def test_gradients_are_those_of_finite_differences(cbow):
    network, _ = network_of(cbow=cbow, E=3)
    network.double()
    pairs = torch.tensor([0, 0, 1, 2, 2])
    block = Block(torch.tensor([4, 0, 7, 3]), pairs, torch.tensor([1, 6, 6, 0, 5]), pairs, 1.0)

    def loss(vectors, outputs):
        return torch.func.functional_call(
            _Lost(network), {"network.input": vectors, "network.output": outputs}, (block,)
        )

    given = [w.detach().clone().requires_grad_() for w in (network.input, network.output)]
    assert torch.autograd.gradcheck(loss, given, eps=1e-6, atol=1e-8, rtol=1e-6)


class _Lost(torch.nn.Module):
    def __init__(self, network):
        super().__init__()
        self.network = network

    def forward(self, block):
        return self.network.loss(block).total


@both
def test_each_row_of_a_mean_moves_as_the_mean_should(cbow):
    """The gradient of a row is the loss's times how many rows the means have."""
    network, _ = network_of(cbow=cbow, E=3)
    network.double()
    block = Block(
        torch.tensor([0]), torch.tensor([0, 0]), torch.tensor([2, 5]), torch.tensor([1, 3]), 0.5
    )
    exact, alike = (
        torch.autograd.grad(network.loss(block, alike=alike).total, network.input)[0]
        for alike in (False, True)
    )
    starts = network.grams.starts
    for word in (2, 5) if cbow else (0,):
        rows = 1 + int(starts[word + 1] - starts[word])
        torch.testing.assert_close(alike[word], exact[word] * rows * (2 if cbow else 1))


def test_refused_where_rows_and_words_differ():
    network, chances = network_of(cbow=False)
    matrices = Matrices(network.input.detach(), network.output.detach(), copies=1)
    step = Step(window=1, words=1, shared=16, negatives=1, cbow=False, rate=0.1, key=1)
    ids, starts = np.zeros(1, np.int32), np.array([0, 1])
    if embed_kernels.active():
        with pytest.raises(ValueError, match=r"there are \d+ vectors for 12 words"):
            train_lines(matrices, ids, starts, (0, 1), chances, step, threads=1)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    path = tmp_path_factory.mktemp("subwords")
    (path / "t").write_text("the walker walked while talkers talked\n" * 20)
    settings = {"model.subwords": True, "model.embedding_size": 6}
    unrolled.train("embed", train=path / "t", out=path / "m", settings=settings, epochs=3)
    return path / "m"


@pytest.mark.trains
def test_unseen_words_have_vectors(folder, capsys):
    vectors = unrolled.WordVectors.load(folder)
    trained = unrolled.load(folder).vectors
    np.testing.assert_allclose(vectors.vectors, trained.vectors, rtol=1e-5, atol=1e-7)
    assert "walking" not in vectors
    assert np.isfinite(vectors["walking"]).all()
    np.testing.assert_allclose(vectors["walking"], trained["walking"], rtol=1e-6)
    assert len(vectors.neighbours("walking", 3)) == 3
    assert len(vectors.analogy("walker", "walked", "talkerish", 2)) == 2
    assert -1 <= vectors.similarity("walkers", "talker") <= 1
    assert len(vectors.odd_one_out(["walker", "walkers", "talker"])) == 3
    assert main(["vectors", "neighbours", str(folder), "walkable"]) == 0
    assert capsys.readouterr().out
    with pytest.raises(ConfigError, match="there is no vector of 'zzzz'"):
        vectors.neighbours("zzzz")


@pytest.mark.trains
def test_a_word_by_its_parts_is_the_mean_of_their_vectors(folder):
    vectors = unrolled.WordVectors.load(folder)
    numbers = [n for n in vectors.parts.subwords.of(["walking"])[0] if n in vectors.parts.used]
    rows = np.searchsorted(vectors.parts.used, numbers)
    np.testing.assert_allclose(vectors["walking"], vectors.parts.vectors[rows].mean(0), rtol=1e-6)


@pytest.mark.trains
def test_a_tagger_gets_vectors_of_words_that_the_text_had_not(folder):
    table = pretrained(folder, wanted={"walking", "zzzz", "walker"}, most=0)
    assert sorted(table.words) == ["walker", "walking"]
    np.testing.assert_allclose(
        table.vectors[[*table.words].index("walking")], unrolled.WordVectors.load(folder)["walking"]
    )


@pytest.mark.trains
@pytest.mark.parametrize(
    ("values", "problem"),
    [
        ({"least": 0, "most": 6, "buckets": 1000}, "must be positive numbers"),
        ({"least": 4, "most": 3, "buckets": 1000}, "4 to 3 are no lengths"),
        ({"least": 3, "most": 6, "buckets": 7}, "rows, but"),
        ({"least": 3}, "subwords.json|keys|must"),
    ],
)
def test_folders_that_lie_are_refused(folder, values, problem, tmp_path):
    from unrolled.tasks.shared.vector_folder import parse_subwords
    from unrolled.text.word_parts import WordParts

    words = unrolled.WordVectors.load(folder)
    files = {"subwords.json": json.dumps(values).encode()}
    with pytest.raises((ValueError, ModelError), match=problem):
        WordParts.of(
            parse_subwords(files), words.words, unrolled.load(folder).network.input.detach().numpy()
        )


@pytest.mark.trains
@pytest.mark.parametrize("objective", ["skip-gram", "cbow"])
def test_words_of_like_letters_come_together(objective, tmp_path):
    lines = ["the runner runs in rain", "a singer sings on stage"] * 60
    (tmp_path / "t").write_text("\n".join(lines))
    settings = {"model.subwords": True, "model.embedding_size": 8, "model.objective": objective}
    settings |= {"train.subsample": 0.0, "train.batch_tokens": 200}
    model = unrolled.train("embed", train=tmp_path / "t", out=tmp_path / "m", settings=settings)
    vectors = model.vectors
    assert vectors.similarity("running", "runner") > vectors.similarity("running", "singer")


@pytest.mark.parametrize(
    ("settings", "problem"),
    [
        ({"train.clip": 2.0}, "train.clip is 2.0, but it has no effect on word vectors"),
        ({"train.weight_decay": 0.1}, "train.weight_decay is 0.1, but it has no effect"),
        ({"train.steps": 3}, "train.steps is 3, but it has no effect"),
        ({"train.schedule": "plateau"}, "no dev loss that could stop falling"),
        ({"model.least_ngram": 7}, "model.least_ngram is 7, but model.most_ngram is 6"),
    ],
)
def test_settings_without_effect_are_refused(settings, problem):
    from unrolled.config import settings_for
    from unrolled.tasks.embed.settings import EmbedRun

    with pytest.raises(ConfigError, match=problem):
        settings_for(EmbedRun, overrides=settings)


def test_what_suits_the_objective_is_chosen_and_written_down():
    from unrolled.config import settings_for, to_toml
    from unrolled.tasks.embed.settings import SUITS, EmbedRun

    for objective, suits in SUITS.items():
        settings = settings_for(EmbedRun, overrides={"model.objective": objective})
        assert suits.items() <= settings.train.model_dump().items()
        assert settings.train.batch_tokens == 100_000
        assert f"learning_rate = {suits['learning_rate']}" in to_toml(settings)
    given = settings_for(EmbedRun, overrides={"train.learning_rate": 0.3})
    assert given.train.learning_rate == 0.3
    assert given.given() == {"train.learning_rate"}
