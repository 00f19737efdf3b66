"""Trees and forests as arrays."""

import numpy as np
import pytest
import torch
from tree_examples import children_of, from_children, left_chain, random_tree

from unrolled.errors import ConfigError
from unrolled.nn.trees import Tree, forest, tree


def trees(count: int = 9, most: int = 2) -> list[Tree]:
    rng = np.random.default_rng(count)
    return [random_tree(1 + 3 * k % 11, rng, most=most) for k in range(count)]


def test_a_tree_knows_its_heights_and_leaves():
    made = from_children(4, {3: [0, 1], 4: [3, 2]}, [7, 8, 9])
    assert made.parent.tolist() == [2, 2, 4, 4, -1]
    assert made.word.tolist() == [7, 8, -1, 9, -1]
    assert made.height.tolist() == [0, 0, 1, 0, 2]
    assert made.leaves.tolist() == [1, 1, 2, 1, 3]


@pytest.mark.parametrize("most", [2, 5])
def test_a_forest_is_its_trees(most):
    batch = trees(most=most)
    woods = forest(batch)
    offsets = np.cumsum([0, *(len(each.parent) for each in batch)])
    where = {int(node): place for place, node in enumerate(woods.nodes)}
    number = {int(place): j for j, place in enumerate(woods.inner)}
    leaf = {int(place): woods.words[k] for place, k in zip(woods.leaves, woods.word, strict=True)}
    assert len(where) == offsets[-1] == len(leaf) + len(number)
    for index, each in enumerate(batch):
        for node, below in enumerate(children_of(each)):
            place = where[offsets[index] + node]
            assert (int(woods.tree[place]), int(woods.sizes[place])) == (index, each.leaves[node])
            if not below:
                assert leaf[place] == each.word[node]
                continue
            first, end = woods.first[number[place]], woods.first[number[place] + 1]
            assert [*range(first, end)] == [where[offsets[index] + child] for child in below]
        assert where[offsets[index + 1] - 1] == woods.roots.start + index
    assert woods.is_binary == (most == 2)


def test_levels_hold_nodes_of_one_height_the_lowest_first():
    batch = trees()
    woods = forest(batch)
    height = np.concatenate([each.height for each in batch])[woods.nodes[woods.inner]]
    for level, (begin, end) in enumerate(zip(woods.levels, woods.levels[1:], strict=False), 1):
        assert set(height[begin:end]) == {level}
    assert woods.levels[-1] == len(woods.inner)


def test_single_words_make_a_forest_without_inner_nodes():
    woods = forest([tree([-1], [4]), tree([-1], [2])])
    assert woods.words.tolist() == [2, 4]
    assert (woods.word.tolist(), woods.levels, len(woods.inner)) == ([1, 0], (0,), 0)
    assert woods.is_binary


def test_a_tree_may_be_as_deep_as_it_has_nodes():
    woods = forest([left_chain([0] * 100_000)])
    assert len(woods.levels) == 100_000
    assert torch.equal(woods.first, torch.arange(0, 200_000, 2)[: len(woods.first)])


@pytest.mark.parametrize(
    ("parent", "word", "message"),
    [
        ([], [], r"parents of shape \(0,\) .* at least one node"),
        ([-1], [1, 2], r"words of shape \(2,\)"),
        ([2, 2, 1], [0, 1, -1], "parent does not come after it.*root last"),
        ([2, 3, -1], [0, 1, -1], "parent does not come after it"),
        ([0, 2, -1], [0, 1, -1], "parent does not come after it"),
        ([2, 2, -1], [0, -1, -1], "a leaf has no word"),
        ([2, 2, -1], [0, 1, 5], "or an inner node has one"),
    ],
)
def test_what_is_no_tree_is_refused(parent, word, message):
    with pytest.raises(ConfigError, match=message):
        tree(parent, word)


def test_a_forest_needs_a_tree():
    with pytest.raises(ConfigError, match="has no trees"):
        forest([])
