"""The full and the hierarchical softmax: sums, depths, gradients, and the compiled step."""

import numpy as np
import pytest
import torch

import unrolled
from unrolled.nn import embed_kernels
from unrolled.nn.embed_kernels import Matrices, Step, train_lines
from unrolled.tasks.embed.blocks import Block
from unrolled.tasks.embed.data import Corpus
from unrolled.tasks.embed.draws import chances_of, key_of
from unrolled.tasks.embed.network import EmbedNetwork
from unrolled.tasks.embed.trees import TREES, paths_of
from unrolled.tasks.embed.update import PlainLearner

pytestmark = pytest.mark.arithmetic
trees = pytest.mark.parametrize("tree", TREES)
both = pytest.mark.parametrize("cbow", [False, True], ids=["skip-gram", "cbow"])


def falling(V, seed=0):
    return np.sort(np.random.default_rng(seed).zipf(1.4, size=V).clip(max=10**6))[::-1].copy()


def network_of(V, E, *, cbow, output, tree="huffman", dtype=torch.float64):
    torch.manual_seed(2)
    paths = paths_of(tree, falling(V)) if output == "hierarchical" else None
    network = EmbedNetwork(V, E, cbow=cbow, output=output, paths=paths).to(dtype)
    torch.nn.init.uniform_(network.input, -1, 1)
    torch.nn.init.uniform_(network.output, -1, 1)
    return network


@pytest.mark.row("C5")
@pytest.mark.parametrize("V", [2, 3, 7, 1000])
@pytest.mark.parametrize(
    ("output", "tree"), [("softmax", ""), *(("hierarchical", t) for t in TREES)]
)
def test_probabilities_of_all_words_sum_to_one(V, output, tree):
    network = network_of(V, 5, cbow=False, output=output, tree=tree)
    row = torch.randn(1, 5, dtype=torch.float64).expand(V, 5)
    lost = network._positive(row, torch.arange(V))
    assert float((-lost).exp().sum().detach()) == pytest.approx(1.0, abs=1e-12)


@pytest.mark.row("C4")
@both
def test_the_loss_is_cross_entropy_and_0_only_for_a_word_that_is_certain(cbow):
    """−Σ y log ŷ of the definition, for each pair (skip-gram) or word (CBOW)."""
    network = network_of(6, 3, cbow=cbow, output="softmax")
    pairs = torch.tensor([0, 0, 1])
    block = Block(torch.tensor([4, 2]), pairs, torch.tensor([1, 5, 3]), pairs, 1.0)
    rows, output = network.input.detach().numpy(), network.output.detach().numpy()
    asked = [((1, 5), 4), ((3,), 2)] if cbow else [((4,), 1), ((4,), 5), ((2,), 3)]
    expected = 0.0
    for given, target in asked:
        scores = output @ rows[[*given]].mean(0)
        expected -= np.eye(6)[target] @ np.log(np.exp(scores) / np.exp(scores).sum())
    found = network.loss(block).total
    assert float(found.detach()) == pytest.approx(expected, rel=1e-12)
    assert (network.losses(block) > 0).all()
    only = torch.full((6, 3), -1e6, dtype=torch.float64)
    only[3] = 0.0
    network.output.data = only
    certain = network._positive(torch.ones(2, 3, dtype=torch.float64), torch.tensor([3, 1]))
    assert certain.tolist() == [0.0, 3e6]


def test_the_softmax_stands_scores_of_a_thousand():
    network = network_of(4, 1, cbow=False, output="softmax")
    network.output.data = torch.tensor([[1000.0], [-1000.0], [0.0], [999.0]], dtype=torch.float64)
    lost = network._positive(torch.ones(2, 1, dtype=torch.float64), torch.tensor([0, 1]))
    np.testing.assert_allclose(lost.detach(), [np.log1p(np.exp(-1)), 2000 + np.log1p(np.exp(-1))])


@pytest.mark.row("C5")
def test_a_balanced_tree_is_no_deeper_than_the_logarithm():
    for V in (2, 3, 1000, 1025):
        depth = np.diff(paths_of("balanced", falling(V)).starts)
        assert depth.max() <= np.ceil(np.log2(V))


@pytest.mark.row("C5")
@pytest.mark.parametrize("V", [2, 3, 50, 2000])
def test_a_huffman_tree_is_the_shortest(V):
    import heapq

    counts = falling(V)
    depth = np.diff(paths_of("huffman", counts).starts)
    p = counts / counts.sum()
    assert p @ depth <= -(p * np.log2(p)).sum() + 1
    heap, cost = counts.tolist(), 0
    heapq.heapify(heap)
    while len(heap) > 1:
        pair = heapq.heappop(heap) + heapq.heappop(heap)
        cost += pair
        heapq.heappush(heap, pair)
    assert int(counts @ depth) == cost


@pytest.mark.row("C4", "C5")
@both
@pytest.mark.parametrize(
    ("output", "tree"), [("softmax", ""), *(("hierarchical", t) for t in TREES)]
)
def test_gradients_are_those_of_finite_differences(cbow, output, tree):
    network = network_of(9, 3, cbow=cbow, output=output, tree=tree)
    pairs = torch.tensor([0, 0, 1, 2, 2])
    block = Block(torch.tensor([4, 0, 7, 3]), pairs, torch.tensor([1, 8, 8, 0, 5]), pairs, 1.0)

    def loss(vectors, outputs):
        values = {"input": vectors, "output": outputs}
        return torch.func.functional_call(_Lost(network), _named(values), (block,))

    given = [w.detach().clone().requires_grad_() for w in (network.input, network.output)]
    assert torch.autograd.gradcheck(loss, given, eps=1e-6, atol=1e-8, rtol=1e-6)


def _named(values):
    return {f"network.{name}": value for name, value in values.items()}


class _Lost(torch.nn.Module):
    def __init__(self, network):
        super().__init__()
        self.network = network

    def forward(self, block):
        return self.network.loss(block).total


@pytest.mark.skipif(not embed_kernels.active(), reason="no compiled kernels")
@both
@trees
@pytest.mark.parametrize("block", [1, 3])
def test_the_kernel_takes_the_twins_step(cbow, tree, block):
    V, E = 40, 21
    chance = np.random.default_rng(0)
    lengths = chance.integers(0, 12, size=15)
    corpus = Corpus(
        chance.integers(0, V, size=lengths.sum(), dtype=np.int32),
        np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64),
    )
    network = network_of(V, E, cbow=cbow, output="hierarchical", tree=tree, dtype=torch.float32)
    chances = chances_of(falling(V), subsample=0.0, noise_power=0.75)
    step = Step(
        window=3, words=block, shared=16, negatives=5, cbow=cbow, rate=0.05, key=key_of(1, 0)
    )
    matrices = Matrices(network.input.detach(), network.output.detach(), copies=1)
    given = (corpus.ids, corpus.starts, (0, 15), chances, step)
    mine = train_lines(matrices, *given, threads=1, paths=network.paths)
    twin = PlainLearner(network.double(), corpus, chances)
    theirs = twin.learn((0, 15), step)
    assert mine[1] == theirs[1] > 0
    assert mine[0] == pytest.approx(theirs[0], rel=1e-5)
    for own, other in zip((matrices.input, matrices.output), twin.vectors(), strict=True):
        torch.testing.assert_close(own, other.float(), rtol=1e-4, atol=1e-5)


@pytest.mark.trains
@pytest.mark.parametrize("output", ["hierarchical", "softmax"])
def test_vectors_are_trained_kept_and_judged(output, tmp_path):
    (tmp_path / "t").write_text("a rat ate some cheese and ran\n" * 8)
    settings = {"model.output": output, "model.embedding_size": 6, "train.learning_rate": 0.1}
    files = {"train": tmp_path / "t", "test": tmp_path / "t"}
    unrolled.train("embed", **files, out=tmp_path / "m", settings=settings, epochs=5)
    from unrolled.evaluate.report import saved_reports

    report = saved_reports(tmp_path / "m")["test"]
    zero = report.baselines["zero_vectors"][0].value
    assert report.scores[0].value < zero
    if output == "softmax":
        assert zero == pytest.approx(np.log(7), rel=1e-6)
    assert np.isfinite(unrolled.load(tmp_path / "m").vectors.vectors).all()
