"""Losses and gradients of networks over trees, and what a batch's neighbours may not change."""

from itertools import pairwise

import numpy as np
import pytest
import torch
from torch.nn import functional

from unrolled.config import settings_for
from unrolled.nn.trees import forest
from unrolled.tasks.tree.data import labels_of
from unrolled.tasks.tree.model import TreeModel
from unrolled.tasks.tree.network import Sentences, TreeBatch
from unrolled.tasks.tree.settings import TreeRun
from unrolled.tasks.tree.update import TreeUpdate
from unrolled.text.brackets import read_tree, write_tree
from unrolled.text.word_encoder import WordEncoder

pytestmark = pytest.mark.arithmetic

TREES = [
    read_tree(text)
    for text in (
        "(1 (0 (0 a) b) (1 (1 c) (0 a)))",
        "(0 d)",
        "(0 (1 b) (1 (0 c) (1 (0 a) (0 d))))",
    )
]
COMPOSITIONS = ("treelstm", "childsum", "rntn", "rnn", "mvrnn", "autoencoder")
SMALL = {"model.hidden_size": 4, "model.embedding_size": 5, "model.dropout": 0.0}


def model_of(composition="treelstm", trees=TREES, **more):
    chosen = {"model.composition": composition, "model.word_dropout": 0.0, **SMALL, **more}
    run = settings_for(TreeRun, overrides=chosen)
    torch.manual_seed(1)
    encoder = WordEncoder.build(tree.words for tree in trees)
    return TreeModel.create(run, encoder, labels_of(trees, source="x"))


def batch_of(model, trees=TREES):
    ready = model.ready(trees)
    return TreeBatch.of(forest(ready.nodes), ready.targets)


@pytest.mark.row("O1", "O6", "O7")
@pytest.mark.parametrize("pooling", ["root", "mean"])
@pytest.mark.parametrize("composition", COMPOSITIONS)
def test_gradients_are_those_of_finite_differences(composition, pooling):
    model = model_of(composition, **{"model.pooling": pooling})
    network, batch = model.network.double(), batch_of(model)
    names, weights = zip(*network.named_parameters(), strict=True)

    def loss(*values):
        return torch.func.functional_call(
            _Loss(network),
            {f"network.{n}": v for n, v in zip(names, values, strict=True)},
            (batch,),
        )

    assert torch.autograd.gradcheck(loss, weights, atol=1e-7)


class _Loss(torch.nn.Module):
    def __init__(self, network):
        super().__init__()
        self.network = network

    def forward(self, batch):
        return self.network.loss(batch).total


@pytest.mark.row("O8")
@pytest.mark.parametrize("composition", COMPOSITIONS)
def test_a_tree_is_read_the_same_alone_and_among_others(composition):
    model = model_of(composition)
    together = model.read(TREES)
    for tree, among in zip(TREES, together, strict=True):
        (alone,) = model.read([tree])
        assert np.allclose(alone.probabilities, among.probabilities, atol=1e-6)
        assert np.allclose(alone.vector, among.vector, atol=1e-6)
        assert alone.tree == among.tree


@pytest.mark.row("O7")
def test_the_loss_is_surprise_at_labels_and_an_autoencoder_adds_its_error():
    model = model_of("autoencoder", **{"model.alpha": 0.25})
    found, total, count = model.read(TREES), 0.0, 0
    for tree, ready in zip(found, model.ready(TREES).targets, strict=True):
        asked = ready >= 0
        nats = -np.log(tree.probabilities[asked, ready[asked]])
        total += 0.25 * tree.errors.sum() + 0.75 * nats.sum()
        count += int(asked.sum())
    loss = model.network.loss(batch_of(model))
    assert (float(loss.total.detach()), loss.count) == (pytest.approx(total, rel=1e-5), count)


@pytest.mark.row("O1")
def test_a_chain_is_a_recurrent_network():
    """p = tanh(W [c1; c2] + b) over a left fold reads word after word as an RNN does."""
    model = model_of("rnn", **{"model.embedding_size": 4})
    tree = read_tree("(1 (0 (0 a b) c) d)")
    (found,) = model.read([tree])
    rnn, network = model.network.composition, model.network
    ids = model.encoder.words.encode(tree.words).tolist()
    h = network.embedding[ids[0]]
    for word in ids[1:]:
        h = torch.tanh(
            functional.linear(torch.cat([h, network.embedding[word]]), rnn.weight, rnn.bias)
        )
    assert np.allclose(found.vector, h.detach().numpy(), atol=1e-6)


def test_word_gradients_by_rows_take_the_same_steps_as_all_rows():
    steps = {}
    for sparse in (True, False):
        model = model_of()
        update = TreeUpdate(model, model.settings.train)
        model.network.sparse = sparse
        update.begin()
        for trees in (TREES, TREES[:1], TREES[1:]):
            update.step(batch_of(model, trees), 0.1)
        steps[sparse] = model.network.embedding.detach().clone()
    assert torch.equal(steps[True], steps[False])


def test_words_that_are_seldom_seen_are_sometimes_unknown_in_training():
    model = model_of(**{"model.word_dropout": 1e9})
    network, words = model.network, torch.tensor([1, 4, 5])
    network.train()
    assert torch.equal(network.words(words), network.embedding[[1, 1, 1]])
    network.eval()
    assert torch.equal(network.words(words), network.embedding[words])


@pytest.mark.row("O3")
def test_greedy_trees_carry_the_sentences_label_and_are_the_ones_that_are_shown():
    model = model_of("autoencoder", **{"model.tree": "greedy", "model.labels": "sentence"})
    ready = model.ready(TREES)
    words = [each.word[each.word >= 0] for each in ready.nodes]
    grown = model.network.grown(Sentences(words, [1, 0, 1]))
    assert grown.targets[grown.forest.roots].tolist() == [1, 0, 1]
    assert sorted(grown.targets.tolist()) == [0] + [1] * 14
    for tree, found in zip(TREES, model.read(TREES), strict=True):
        assert found.given.words == tree.words
        assert sorted(found.steps.tolist()) == [-1] * len(tree.words) + [
            *range(len(tree.words) - 1)
        ]
        first = int(np.flatnonzero(found.steps == 0)[0]) if len(tree.words) > 1 else None
        if first is not None:
            assert found.errors[first] == pytest.approx(least_first_error(model, tree), rel=1e-5)


def least_first_error(model, tree):
    """Of all pairs of neighbours, by brute force."""
    words = tree.words
    pairs = (read_tree(f"(1 {a} {b})") for a, b in pairwise(words))
    plain = model_of("autoencoder")
    return min(float(found.errors[-1]) for found in plain.read(list(pairs)))


def test_a_single_word_and_a_very_deep_tree():
    model = model_of()
    (one,) = model.read([read_tree("(1 a)")])
    assert (one.tree[0], len(one.probabilities)) == ("(", 1)
    deep = read_tree("(1 " * 3000 + "a" + " b)" * 3000)
    (found,) = model.read([deep])
    assert np.isfinite(found.probabilities).all()
    assert write_tree(found.given) == write_tree(deep)
    with torch.enable_grad():
        model.network.loss(batch_of(model, [deep])).total.backward()
    assert model.network.embedding.grad.isfinite().all()


@pytest.mark.parametrize("composition", ["rntn", "mvrnn", "autoencoder"])
def test_words_of_another_size_than_nodes_are_projected(composition):
    model = model_of(composition)
    assert model.network.project.shape == (model.network.composition.word_size, 5)
    same = model_of(composition, **{"model.embedding_size": model.network.composition.word_size})
    assert same.network.project is None
