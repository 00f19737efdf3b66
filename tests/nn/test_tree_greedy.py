"""Trees built by the lowest reconstruction error, against a search written down at leisure."""

import contextlib
import itertools
from collections.abc import Iterator
from unittest.mock import patch

import numpy as np
import pytest
import torch
from kernel_checks import SETS, instructions, needs_kernels, threads
from torch import Tensor
from tree_examples import H, children_of

from unrolled.errors import ConfigError
from unrolled.nn import tree_kernels
from unrolled.nn.tree_compositions import Autoencoder
from unrolled.nn.tree_greedy import greedy
from unrolled.nn.trees import forest, tree

pytestmark = pytest.mark.arithmetic

LENGTHS = [1, 2, 7, 3, 12, 1, 5]


def made(**options: bool) -> tuple[Autoencoder, list[np.ndarray], Tensor]:
    torch.manual_seed(5)
    net = Autoencoder(H, **options).double()
    for weight in net.parameters():
        torch.nn.init.normal_(weight, std=0.6)
    rng = np.random.default_rng(1)
    return net, [rng.integers(0, 20, n) for n in LENGTHS], torch.randn(20, H, dtype=torch.float64)


@torch.no_grad()
def candidate(net: Autoencoder, left: tuple, right: tuple) -> tuple[float, tuple]:
    """The error of a pair of (vector, words, text), and its parent."""
    p = torch.tanh(net.weight @ torch.cat([left[0], right[0]]) + net.bias)
    p = p / p.norm() if net.normalise else p
    again = net.decoder @ p + net.decoder_bias
    n1, n2 = (left[1], right[1]) if net.weighted else (1, 1)
    apart = (again[:H] - left[0]).square().sum() * n1 + (again[H:] - right[0]).square().sum() * n2
    return float(apart / (n1 + n2)), (p, left[1] + right[1], (left[2], right[2]))


def by_brute_force(
    net: Autoencoder, words: np.ndarray, vectors: Tensor
) -> tuple[tuple, list[float]]:
    """All pairs tried anew at every step: the tree as nested pairs, and the errors."""
    row = [(vectors[w], 1, int(w)) for w in words]
    errors = []
    while len(row) > 1:
        tried = [candidate(net, *pair) for pair in itertools.pairwise(row)]
        at = min(range(len(tried)), key=lambda k: tried[k][0])
        errors.append(tried[at][0])
        row[at : at + 2] = [tried[at][1]]
    return row[0][2], errors


def nested(merged) -> tuple:
    texts: list = []
    for below, word in zip(children_of(merged.tree), merged.tree.word.tolist(), strict=True):
        texts.append(tuple(texts[node] for node in below) if below else word)
    return texts[-1]


WAYS = ["torch", *SETS]


@contextlib.contextmanager
def way(name: str) -> Iterator[None]:
    """Build trees by torch's operators, or by the kernels of an instruction set."""
    if name != "torch":
        with instructions(name):
            yield
        return
    with patch.object(tree_kernels, "_kernels", None):
        yield


@pytest.mark.row("O3")
@pytest.mark.parametrize("name", WAYS)
@pytest.mark.parametrize("options", [{}, {"normalise": False, "weighted": False}])
def test_every_merge_is_the_one_of_lowest_error(options, name):
    net, sentences, vectors = made(**options)
    with way(name):
        built = greedy(net, sentences, vectors)
    for words, merged in zip(sentences, built, strict=True):
        for mine, theirs in zip(
            tree(merged.tree.parent, merged.tree.word), merged.tree, strict=True
        ):
            assert np.array_equal(mine, theirs)
        text, errors = by_brute_force(net, words, vectors)
        assert nested(merged) == text
        inner = merged.step >= 0
        assert sorted(merged.step[inner]) == [*range(len(words) - 1)]  # n words, n − 1 merges
        found = merged.error[np.argsort(merged.step)[-len(errors) :]] if errors else []
        assert found == pytest.approx(errors, rel=1e-12)


@pytest.mark.row("O3")
@pytest.mark.parametrize("name", WAYS)
def test_of_equal_errors_the_leftmost_wins(name):
    net, _, vectors = made()
    with way(name):
        (merged,) = greedy(net, [np.array([3, 3, 3, 3])], vectors)
        again = greedy(net, [np.array([3, 3, 3, 3])], vectors)[0]
    first = int(np.flatnonzero(merged.step == 0)[0])
    assert first == 2  # of the first two leaves, in post-order
    assert np.array_equal(again.tree.parent, merged.tree.parent)


def test_errors_are_those_of_the_tree_that_was_built():
    net, sentences, vectors = made()
    built = greedy(net, sentences, vectors)
    woods = forest([merged.tree for merged in built])
    with torch.no_grad():
        errors = net.errors(woods, net.compose(woods, vectors[woods.words]))
    kept = np.concatenate([merged.error for merged in built])[woods.nodes[woods.inner]]
    assert errors.numpy() == pytest.approx(kept, rel=1e-12)


@needs_kernels
def test_trees_do_not_depend_on_threads_and_neighbours():
    net, _, vectors = made()
    rng = np.random.default_rng(2)
    sentences = [rng.integers(0, 20, n) for n in rng.integers(1, 40, 60)]
    with threads(1):
        one = greedy(net.float(), sentences, vectors.float())
    with threads(3):
        three = greedy(net, sentences, vectors.float())
    alone = [greedy(net, [words], vectors.float())[0] for words in sentences]
    for others in (three, alone):
        for mine, theirs in zip(one, others, strict=True):
            assert np.array_equal(mine.tree.parent, theirs.tree.parent)
            assert np.array_equal(mine.error, theirs.error)


@pytest.mark.parametrize("name", WAYS)
def test_numbers_that_are_none_still_give_a_tree(name):
    net, sentences, vectors = made()
    vectors[:] = torch.nan
    with way(name):
        built = greedy(net, sentences, vectors)
    assert [len(merged.tree.parent) for merged in built] == [2 * n - 1 for n in LENGTHS]


def test_words_without_a_vector_are_refused():
    net, _, vectors = made()
    for wrong in (20, -1):
        with pytest.raises(ConfigError, match=r"words are from .* but there are 20 vectors"):
            greedy(net, [np.array([0, wrong])], vectors)
    with pytest.raises(ConfigError, match=r"words' vectors is of shape \(20, 3\), .* \(20, 4\)"):
        greedy(net, [np.array([0])], vectors[:, :3])


def test_no_sentences_no_trees():
    net, _, vectors = made()
    assert greedy(net, [], vectors) == []


def test_a_sentence_without_words_is_refused():
    net, _, vectors = made()
    with pytest.raises(ConfigError, match="a sentence has no words"):
        greedy(net, [np.array([1]), np.array([], np.int64)], vectors)
