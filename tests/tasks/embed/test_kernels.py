"""The compiled trainer against its twin in torch, and the twin against finite differences."""

from itertools import pairwise

import numpy as np
import pytest
import torch

from unrolled.nn import embed_kernels
from unrolled.nn.embed_kernels import Matrices, Step, train_lines
from unrolled.tasks.embed.blocks import blocks, kept_words
from unrolled.tasks.embed.data import Corpus
from unrolled.tasks.embed.draws import alias_table, chances_of, draws, key_of, noise
from unrolled.tasks.embed.network import EmbedNetwork
from unrolled.tasks.embed.update import PlainLearner

pytestmark = pytest.mark.arithmetic
compiled = pytest.mark.skipif(not embed_kernels.active(), reason="no compiled kernels")
both = pytest.mark.parametrize("cbow", [False, True], ids=["skip-gram", "cbow"])


def corpus_of(V, lines, seed=0):
    chance = np.random.default_rng(seed)
    lengths = chance.integers(0, 23, size=lines)
    ids = chance.integers(0, V, size=lengths.sum(), dtype=np.int32)
    return Corpus(ids, np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64))


def network_of(V, E, *, cbow, dtype=torch.float32):
    torch.manual_seed(3)
    network = EmbedNetwork(V, E, cbow=cbow).to(dtype)
    with torch.no_grad():
        network.input.uniform_(-1, 1)
        network.output.uniform_(-1, 1)
    return network


def parts(V, lines):
    corpus = corpus_of(V, lines)
    counts = np.bincount(corpus.ids, minlength=V) + 1
    return corpus, chances_of(counts, subsample=0.02, noise_power=0.75)


def options(**more):
    return Step(
        **{
            "window": 3,
            "words": 16,
            "shared": 16,
            "negatives": 5,
            "rate": 0.05,
            "key": key_of(1, 2),
        }
        | more
    )


@compiled
@both
@pytest.mark.parametrize(
    ("E", "block", "shared", "window"),
    [(1, 16, 16, 1), (100, 16, 32, 5), (17, 5, 16, 100), (250, 64, 64, 2)],
)
def test_the_kernel_takes_the_twins_step(cbow, E, block, shared, window):
    V = 60
    corpus, chances = parts(V, 25)
    network = network_of(V, E, cbow=cbow)
    matrices = Matrices(network.input.detach(), network.output.detach(), copies=1)
    step = options(cbow=cbow, words=block, shared=shared, window=window)
    mine = train_lines(matrices, corpus.ids, corpus.starts, (1, 24), chances, step, threads=1)
    twin = PlainLearner(network.double(), corpus, chances)
    theirs = twin.learn((1, 24), step)
    assert mine[1] == theirs[1] > 0
    assert mine[0] == pytest.approx(theirs[0], rel=1e-5)
    for own, other in zip((matrices.input, matrices.output), twin.vectors(), strict=True):
        torch.testing.assert_close(own, other.float(), rtol=1e-4, atol=1e-5)
    assert not matrices.rows[:, E:].any()


@compiled
@both
def test_threads_learn_on_copies_and_their_changes_are_summed(cbow):
    V, E = 50, 20
    corpus, chances = parts(V, 30)
    before = network_of(V, E, cbow=cbow)
    step = options(cbow=cbow)
    matrices = Matrices(before.input.detach(), before.output.detach(), copies=3)
    train_lines(matrices, corpus.ids, corpus.starts, (0, 30), chances, step, threads=3)
    words = corpus.starts[-1]
    cuts = [0, *np.searchsorted(corpus.starts, [words * k // 3 for k in (1, 2)]), 30]
    summed = [before.input.detach().double(), before.output.detach().double()]
    for bounds in pairwise(cuts):
        twin = PlainLearner(network_of(V, E, cbow=cbow).double(), corpus, chances)
        start = [value.clone() for value in twin.vectors()]
        twin.learn(bounds, step)
        summed = [
            s + (now - then) for s, now, then in zip(summed, twin.vectors(), start, strict=True)
        ]
    torch.testing.assert_close(matrices.input, summed[0].float(), rtol=1e-4, atol=1e-5)
    torch.testing.assert_close(matrices.output, summed[1].float(), rtol=1e-4, atol=1e-5)
    assert all(torch.equal(copy, matrices.rows) for copy in matrices.copies)


@compiled
def test_the_same_bytes_every_time_for_a_number_of_threads():
    corpus, chances = parts(80, 200)
    network = network_of(80, 30, cbow=False)

    def trained(threads):
        matrices = Matrices(network.input.detach(), network.output.detach(), copies=threads)
        for epoch in range(3):
            step = options(cbow=False, key=key_of(1, epoch))
            train_lines(
                matrices, corpus.ids, corpus.starts, (0, 200), chances, step, threads=threads
            )
        return matrices.rows

    assert torch.equal(trained(2), trained(2))
    assert not torch.equal(trained(2), trained(3))


@pytest.mark.row("C1", "C2")
@both
def test_gradients_are_those_of_finite_differences(cbow):
    corpus, chances = parts(12, 6)
    network = network_of(12, 4, cbow=cbow, dtype=torch.float64)
    step = options(cbow=cbow)
    kept = kept_words(corpus.ids, corpus.starts, (0, 6), chances, step.key)
    block = next(blocks(kept, chances, step))

    def loss(vectors, outputs):
        network.input.data, network.output.data = vectors, outputs
        return torch.func.functional_call(
            _Lost(network), {"network.input": vectors, "network.output": outputs}, (block,)
        )

    given = [w.detach().clone().requires_grad_() for w in (network.input, network.output)]
    assert torch.autograd.gradcheck(loss, given, eps=1e-5, atol=1e-8, rtol=1e-6)


class _Lost(torch.nn.Module):
    def __init__(self, network):
        super().__init__()
        self.network = network

    def forward(self, block):
        return self.network.loss(block).total


@pytest.mark.row("C2")
def test_pairs_are_exactly_those_of_the_windows():
    corpus, chances = parts(40, 20)
    step = options(cbow=False, window=4)
    kept = kept_words(corpus.ids, corpus.starts, (0, 20), chances, step.key)
    found = [
        (int(block.words[w]), int(n))
        for block in blocks(kept, chances, step)
        for w, n in zip(block.pair_word, block.pair_neighbour, strict=True)
    ]
    expected = []
    for line in range(20):
        own = [
            i
            for i in range(len(kept.words))
            if corpus.starts[line] <= kept.places[i] < corpus.starts[line + 1]
        ]
        for k, i in enumerate(own):
            draw = int(draws(step.key, np.array([2 * kept.places[i] + 1]))[0])
            reach = 1 + ((draw >> 32) * 4 >> 32)
            expected += [
                (kept.words[i], kept.words[own[j]])
                for j in range(max(0, k - reach), min(len(own), k + reach + 1))
                if j != k
            ]
    assert found == expected


@pytest.mark.row("C1")
def test_the_order_of_neighbours_changes_nothing_in_cbow():
    corpus, chances = parts(40, 8)
    network = network_of(40, 9, cbow=True, dtype=torch.float64)
    step = options(cbow=True)
    block = next(
        blocks(kept_words(corpus.ids, corpus.starts, (0, 8), chances, step.key), chances, step)
    )
    order = torch.randperm(len(block.pair_word))
    turned = block._replace(
        pair_word=block.pair_word[order], pair_neighbour=block.pair_neighbour[order]
    )
    torch.testing.assert_close(network.losses(block), network.losses(turned), rtol=1e-12, atol=0)


def test_noise_is_drawn_by_count_to_the_power():
    counts = np.array([1, 16, 81, 256, 625, 10_000])
    chances = chances_of(counts, subsample=0.0, noise_power=0.75)
    drawn = np.bincount(noise(chances, 7, np.arange(400_000)), minlength=6)
    expected = counts**0.75 / (counts**0.75).sum() * 400_000
    assert ((drawn - expected) ** 2 / expected).sum() < 25  # χ² with 5 degrees of freedom, p ≈ 1e-4
    assert drawn[1] / drawn[0] == pytest.approx(8.0, rel=0.1)


def test_an_alias_table_is_the_distribution():
    weights = np.array([5.0, 0.0, 1.0, 2.5, 0.01])
    share, other = alias_table(weights)
    total = share.copy()
    np.add.at(total, other, 1.0 - share)
    np.testing.assert_allclose(total / 5, weights / weights.sum(), rtol=1e-12, atol=1e-15)


def test_frequent_words_are_kept_as_often_as_the_formula_says():
    counts = np.array([900_000, 90_000, 10_000])
    keep = chances_of(counts, subsample=1e-2, noise_power=0.75).keep
    f = counts / counts.sum()
    np.testing.assert_allclose(keep, np.minimum(1, (np.sqrt(f / 1e-2) + 1) * 1e-2 / f), rtol=1e-6)
