"""The kernels of trees against torch's operators, whatever the instruction set."""

import numpy as np
import pytest
import torch
from kernel_checks import SETS, instructions, needs_kernels, same_bits, threads, worst
from torch import Tensor
from tree_examples import left_chain, random_tree

from unrolled.errors import ConfigError
from unrolled.nn import tree_kernels
from unrolled.nn.tree_composition import Composition
from unrolled.nn.tree_compositions import Autoencoder, RecursiveNet
from unrolled.nn.tree_fold import fold
from unrolled.nn.tree_lstm import TreeLSTM
from unrolled.nn.trees import Forest, Tree, forest, tree

pytestmark = [needs_kernels, pytest.mark.arithmetic]

MAKERS = {
    "rnn": RecursiveNet,
    "autoencoder": Autoencoder,
    "treelstm": lambda H: TreeLSTM(H, H),
    "treelstm of other words": lambda H: TreeLSTM(H + 5, H),
}
SIZES = [1, 3, 8, 15, 16, 17, 33, 50]


def trees(count: int) -> list[Tree]:
    """Of 1 to 24 words, one of them a chain of 40: levels of many rows and of few."""
    rng = np.random.default_rng(count)
    batch = [random_tree(1 + 7 * k % 24, rng, V=30) for k in range(count)]
    return [*batch, left_chain(rng.integers(0, 30, 40).tolist())]


def made(name: str, H: int, dtype: torch.dtype) -> tuple[Composition, Tensor]:
    torch.manual_seed(H)
    composition = MAKERS[name](H).to(dtype)
    torch.nn.init.normal_(composition.weights()[1], std=0.3)
    return composition, torch.randn(30, composition.word_size, dtype=dtype)


def with_gradients(composition: Composition, woods: Forest, table: Tensor, run) -> list[Tensor]:
    x = table[woods.words].requires_grad_()
    h = run(composition, woods, x)
    generator = torch.Generator().manual_seed(1)
    upstream = torch.randn(h.shape, generator=generator, dtype=torch.float64).to(h.dtype)
    wanted = [x, *composition.kernel_weights()]
    return [h.detach(), *torch.autograd.grad(h, wanted, upstream)]


def by_kernels(composition: Composition, woods: Forest, x: Tensor) -> Tensor:
    node = composition.node
    assert node is not None
    return tree_kernels.compose(node, composition.plain, woods, x, *composition.kernel_weights())


def by_torch(composition: Composition, woods: Forest, x: Tensor) -> Tensor:
    states = composition.leaf(x)
    return fold(composition.join, composition.weights(), woods, states)[
        :, : composition.hidden_size
    ]


@pytest.mark.parametrize("H", SIZES)
@pytest.mark.parametrize("kind", MAKERS)
@pytest.mark.parametrize("name", SETS)
def test_every_instruction_set_computes_what_torch_does(name, kind, H):
    """As near to float64 as torch's own operators of that type are, whatever was drawn."""
    woods = forest(trees(12))
    for dtype, allowed in ((torch.float32, 2e-6), (torch.float64, 1e-13)):
        composition, table = made(kind, H, dtype)
        with instructions(name):
            found = with_gradients(composition, woods, table, by_kernels)
        plain = with_gradients(composition, woods, table, by_torch)
        exact, exact_table = composition.double(), table.double()
        expected = with_gradients(exact, woods, exact_table, by_torch)
        assert worst(found, expected) < max(allowed, 4 * worst(plain, expected))


@pytest.mark.parametrize("kind", MAKERS)
def test_bits_are_the_same_for_any_number_of_threads(kind):
    woods = forest(trees(12))
    composition, table = made(kind, 19, torch.float32)
    results = []
    for count in (1, 2, 3):
        with threads(count):
            results.append(with_gradients(composition, woods, table, by_kernels))
    assert same_bits(results[0], results[1])
    assert same_bits(results[0], results[2])


@pytest.mark.row("O8")
@pytest.mark.parametrize("kind", MAKERS)
@torch.no_grad()
def test_a_tree_has_the_same_bits_alone_and_in_a_batch(kind):
    composition, table = made(kind, 19, torch.float32)
    batch = trees(9)
    woods = forest(batch)
    x = table
    together = by_kernels(composition, woods, x[woods.words])[torch.argsort(woods.nodes)]
    parts = together.split([len(each.parent) for each in batch])
    for each, part in zip(batch, parts, strict=True):
        own = forest([each])
        alone = by_kernels(composition, own, x[own.words])
        assert torch.equal(alone[torch.argsort(own.nodes)], part)


@pytest.mark.parametrize("kind", MAKERS)
def test_frozen_weights_and_words_alone(kind):
    composition, table = made(kind, 5, torch.float64)
    woods = forest([tree([-1], [3]), tree([-1], [3]), tree([-1], [1])])
    composition.requires_grad_(False)
    x = table[woods.words].requires_grad_()
    by_kernels(composition, woods, x).sum().backward()
    (expected,) = torch.autograd.grad(composition.leaf(x)[[0, 1, 1], :5].sum(), x)
    assert torch.allclose(x.grad, expected, rtol=1e-12, atol=0.0)


def test_a_vector_of_zeros_has_no_length_and_no_gradient_that_is_none():
    net = Autoencoder(4)
    torch.nn.init.zeros_(net.weight)
    woods = forest([left_chain([0, 1])])
    x = torch.zeros(2, 4, requires_grad=True)
    by_kernels(net, woods, x).sum().backward()
    assert bool(x.grad.isfinite().all())


def test_second_derivatives_are_those_of_the_equations():
    composition, table = made("treelstm", 3, torch.float64)
    woods = forest(trees(1))
    x = table[woods.words].requires_grad_()
    inputs = (x, *(w.detach().requires_grad_() for w in composition.kernel_weights()))
    node = composition.node
    assert node is not None

    def run(*tensors: Tensor) -> Tensor:
        return tree_kernels.compose(node, composition.plain, woods, *tensors).square().sum()

    assert torch.autograd.gradcheck(run, inputs, fast_mode=True)
    assert torch.autograd.gradgradcheck(run, inputs, fast_mode=True)


def changed(array: Tensor, at: int, value: int) -> Tensor:
    array = array.clone()
    array[at] = value
    return array


@pytest.mark.parametrize(
    ("field", "at", "value"),
    [
        ("word", 0, 99),
        ("word", 2, -1),
        ("leaves", 0, 10**12),
        ("leaves", 0, -1),
        ("inner", 0, 10**6),
        ("inner", 1, 0),
        ("tree", 3, 77),
        ("tree", 0, -1),
    ],
)
def test_a_forest_that_was_changed_is_refused(field, at, value):
    composition, table = made("treelstm", 4, torch.float32)
    woods = forest(trees(3))
    wrong = woods._replace(**{field: changed(getattr(woods, field), at, value)})
    x = table[woods.words]
    for run in (
        lambda: by_kernels(composition, wrong, x),
        lambda: _without_gradients(composition, wrong, x),
    ):
        with pytest.raises(ValueError, match="not one that trees were laid out as"):
            run()


@torch.no_grad()
def _without_gradients(composition: Composition, woods: Forest, x: Tensor) -> Tensor:
    return by_kernels(composition, woods, x)


def test_a_child_of_another_tree_is_refused():
    composition, table = made("rnn", 4, torch.float32)
    woods = forest(trees(3))
    other = (int(woods.tree[0]) + 1) % woods.trees
    with pytest.raises(ValueError, match="not one that trees were laid out as"):
        by_kernels(
            composition, woods._replace(tree=changed(woods.tree, 0, other)), table[woods.words]
        )


def test_levels_that_were_changed_are_refused():
    composition, table = made("rnn", 4, torch.float32)
    woods = forest(trees(3))
    x = table[woods.words]
    last = woods.levels[-1]
    for levels in ((0, last), (0, last + 9, last), (1, last), (0, 5), (0, 9, 3, last)):
        with pytest.raises(ValueError, match=r"laid out as|out of range"):
            by_kernels(composition, woods._replace(levels=levels), x)


def test_tensors_that_do_not_fit_are_refused():
    composition, table = made("treelstm", 4, torch.float32)
    woods = forest(trees(3))
    x = table[woods.words]
    weight, bias, own = composition.kernel_weights()

    def run(woods: Forest, *tensors: Tensor) -> None:
        tree_kernels.compose(tree_kernels.LSTM, composition.plain, woods, *tensors)

    with pytest.raises(ConfigError, match=r"words' vectors is of shape \(2, 4\), but must be"):
        run(woods, x[:2], weight, bias, own)
    with pytest.raises(ConfigError, match=r"weights of a tree is of shape \(19, 8\), .* \(20, 8\)"):
        run(woods, x, weight[1:], bias, own)
    with pytest.raises(ConfigError, match=r"bias of a tree is of shape \(3,\), .* \(20,\)"):
        run(woods, x, weight, bias[:3], own)
    with pytest.raises(ConfigError, match=r"weights of words is of shape \(12, 3\), .* \(12, 4\)"):
        run(woods, x, weight, bias, own[:, :3])
    with pytest.raises(ConfigError, match=r"forest.word is torch.int32 .* must be torch.int64"):
        run(woods._replace(word=woods.word.int()), x, weight, bias, own)
    with pytest.raises(ConfigError, match=r"forest.tree is .* of shape \(2,\)"):
        run(woods._replace(tree=woods.tree[:2]), x, weight, bias, own)
