"""Compositions in batches against the same node by node, finite differences, and folds."""

import copy

import numpy as np
import pytest
import torch
from kernel_checks import worst
from torch import Tensor
from tree_examples import NAMES, H, left_chain, make, one_by_one, random_tree

from unrolled.errors import ConfigError
from unrolled.nn.tree_composition import Composition
from unrolled.nn.tree_compositions import COMPOSITIONS, Autoencoder, RecursiveNet
from unrolled.nn.trees import Forest, Tree, forest

pytestmark = pytest.mark.arithmetic

V = 7
ALLOWED = {torch.float64: 1e-12, torch.float32: 1e-6}


def batch(composition: Composition, count: int = 8) -> list[Tree]:
    rng = np.random.default_rng(count)
    most = 2 if composition.is_binary else 4
    return [random_tree(1 + 5 * k % 9, rng, V=V, most=most) for k in range(count)]


def table_for(composition: Composition) -> Tensor:
    like = next(composition.parameters())
    torch.manual_seed(11)
    return (0.5 * torch.randn(V, composition.word_size, dtype=like.dtype)).requires_grad_()


def in_batch(composition: Composition, woods: Forest, table: Tensor) -> Tensor:
    """In the order of the trees' own nodes."""
    vectors = composition.compose(woods, table[woods.words])
    return vectors[torch.argsort(woods.nodes)]


def composing(composition):
    """The parameters that vectors are made by."""
    return [p for name, p in composition.named_parameters() if "decoder" not in name]


@pytest.mark.row("O8")
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("name", NAMES)
def test_a_batch_equals_its_trees_node_by_node(name, dtype):
    composition = make(name, dtype)
    trees, table = batch(composition), table_for(composition)
    exact, exact_table = copy.deepcopy(composition).double(), table.detach().double()
    exact_table.requires_grad_()
    found = in_batch(composition, forest(trees), table)
    expected = torch.cat([one_by_one(exact, each, exact_table) for each in trees])
    upstream = torch.randn_like(found)
    mine = torch.autograd.grad(found, [table, *composing(composition)], upstream)
    wanted = [exact_table, *composing(exact)]
    theirs = torch.autograd.grad(expected, wanted, upstream.double())
    assert worst([found, *mine], [expected, *theirs]) < ALLOWED[dtype]


@pytest.mark.row("O1", "O2", "O7")
@pytest.mark.parametrize("name", NAMES)
def test_gradients_are_finite_differences_and_so_are_theirs(name):
    composition = make(name)
    trees = batch(composition, 2)
    table = table_for(composition).detach()[:, : composition.word_size].requires_grad_()
    weights = dict(composition.named_parameters())

    def run(x: Tensor, *values: Tensor) -> Tensor:
        given = dict(zip(weights, values, strict=True))
        woods = forest(trees)
        vectors = torch.func.functional_call(composition, given, (woods, x[woods.words]))
        return vectors.square().sum() + vectors.sum()

    inputs = (table, *weights.values())
    assert torch.autograd.gradcheck(run, inputs)
    assert torch.autograd.gradgradcheck(run, inputs, fast_mode=True)


@pytest.mark.parametrize("name", ["autoencoder", "autoencoder, of any length"])
@pytest.mark.row("O2")
@torch.no_grad()
def test_reconstruction_errors_are_the_equation_s(name):
    net = make(name)
    assert isinstance(net, Autoencoder)
    trees, table = batch(net), table_for(net)
    woods = forest(trees)
    vectors = net.compose(woods, table[woods.words])
    found = net.errors(woods, vectors)
    for j, place in enumerate(woods.inner.tolist()):
        left, right = int(woods.first[j]), int(woods.first[j]) + 1
        again = net.decoder @ vectors[place] + net.decoder_bias
        apart = [(again[:H] - vectors[left]).square().sum()]
        apart.append((again[H:] - vectors[right]).square().sum())
        n1, n2 = (int(woods.sizes[left]), int(woods.sizes[right])) if net.weighted else (1, 1)
        assert float(found[j]) == pytest.approx(
            float((n1 * apart[0] + n2 * apart[1]) / (n1 + n2)), rel=1e-12
        )


@pytest.mark.row("O2")
def test_errors_differentiate_by_finite_differences():
    net = make("autoencoder")
    assert isinstance(net, Autoencoder)
    woods = forest(batch(net, 3))
    table = table_for(net)

    def run(x: Tensor, *values: Tensor) -> Tensor:
        given = dict(zip(dict(net.named_parameters()), values, strict=True))
        return torch.func.functional_call(
            _Errors(net), {f"net.{k}": v for k, v in given.items()}, (woods, x[woods.words])
        )

    assert torch.autograd.gradcheck(run, (table, *net.parameters()))


class _Errors(torch.nn.Module):
    def __init__(self, net: Autoencoder) -> None:
        super().__init__()
        self.net = net

    def forward(self, woods: Forest, x: Tensor) -> Tensor:
        return self.net.errors(woods, self.net.compose(woods, x))


@pytest.mark.row("O1")
def test_a_chain_is_a_fold_of_a_simple_recurrent_net():
    net = RecursiveNet(H).double()
    words = [3, 0, 5, 5, 1, 2]
    table = torch.randn(V, H, dtype=torch.float64)
    woods = forest([left_chain(words)])
    root = net.compose(woods, table[woods.words])[woods.roots][0]
    cell = torch.nn.RNNCell(H, H).double()
    with torch.no_grad():
        cell.weight_hh.copy_(net.weight[:, :H])
        cell.weight_ih.copy_(net.weight[:, H:])
        cell.bias_hh.copy_(net.bias)
        cell.bias_ih.zero_()
        h = table[words[:1]]
        for word in words[1:]:
            h = cell(table[[word]], h)
    assert torch.allclose(root, h[0], rtol=0, atol=1e-13)


@pytest.mark.parametrize("name", NAMES)
def test_a_word_alone_is_a_tree(name):
    composition = make(name)
    table = table_for(composition)
    woods = forest([left_chain([2])])
    (found,) = composition.compose(woods, table[woods.words])
    assert torch.allclose(found, one_by_one(composition, left_chain([2]), table)[0], rtol=1e-14)
    found.sum().backward()


def test_a_deep_chain_has_gradients():
    composition = COMPOSITIONS["treelstm"](2, 3)
    woods = forest([left_chain([0, 1] * 1000)])
    x = torch.randn(2, 2, requires_grad=True)
    composition.compose(woods, x)[woods.roots].sum().backward()
    assert bool(x.grad.isfinite().all())
    assert bool(x.grad.any())


def test_frozen_weights_have_no_gradient_and_words_do():
    composition = make("treelstm")
    composition.requires_grad_(False)
    table = table_for(composition)
    woods = forest(batch(composition))
    composition.compose(woods, table[woods.words]).sum().backward()
    assert table.grad is not None
    assert all(w.grad is None for w in composition.parameters())
    assert not composition.compose(woods, table.detach()[woods.words]).requires_grad


def test_words_that_are_not_one_vector_each_are_refused():
    composition = make("rnn")
    woods = forest(batch(composition))
    with pytest.raises(ConfigError, match=r"of shape \(3, 4\), but must be \(7, 4\): one for each"):
        composition.compose(woods, torch.zeros(3, H))


def test_binary_compositions_refuse_other_trees():
    woods = forest([random_tree(9, np.random.default_rng(0), most=4)])
    with pytest.raises(ConfigError, match="one child or more than two, but RecursiveNet needs two"):
        make("rnn").compose(woods, torch.zeros(len(woods.words), H))
