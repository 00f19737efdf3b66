"""Bracketed trees: what is read, what is refused and where, and that they come out again."""

import numpy as np
import pytest

from unrolled.errors import DataError
from unrolled.text.brackets import is_tree_like, read_tree, read_trees, write_tree
from unrolled.text.formats import recognise
from unrolled.text.trees import FOLDS, binary, folded

SENTIMENT = "(3 (2 It) (4 (2 is) (4 good)))"


def test_a_label_at_every_node():
    tree = read_tree(SENTIMENT)
    assert tree.words == ("It", "is", "good")
    assert tree.parents.tolist() == [4, 3, 3, 4, -1]
    assert tree.labels == ("2", "2", "4", "4", "3")
    assert (tree.label, tree.depth, tree.is_binary) == ("3", 2, True)
    assert [span.tolist() for span in tree.spans] == [[0, 1, 2, 1, 0], [1, 2, 3, 3, 3]]


@pytest.mark.row("O5")
def test_penn_style_over_several_lines_with_an_empty_outer_bracket():
    lines = ["( (S ", "    (NP (PRP It))", "    (VP (VBZ is) very good)) )", "", "(X (Y a) b)"]
    first, second = read_trees(lines, source="wsj.mrg")
    assert write_tree(first) == "(S (NP (PRP It)) (VP (VBZ is) very good))"
    assert (first.line, second.line) == (1, 5)
    assert write_tree(binary(first)) == "(S (NP It) (VP (VBZ is) ( very good)))"
    assert write_tree(second) == "(X (Y a) b)"


def test_trees_without_labels_and_of_one_word():
    assert write_tree(read_tree("( ( It is ) good )")) == "( ( It is) good)"
    assert read_tree("( ( It is ) good )").labels == (None,) * 5
    for text in ("(2 a)", "( a)"):
        tree = read_tree(text)
        assert (tree.words, len(tree), write_tree(tree)) == (("a",), 1, text)


@pytest.mark.parametrize(
    ("text", "line", "column", "problem"),
    [
        ("(3 (2 a)", 1, 1, "this bracket is not closed at the end"),
        ("(3 (2 a\n(2 b)", 1, 4, "not closed when line 2 begins another, nor are 1 around it"),
        ("(3 a))", 1, 6, "this bracket closes none"),
        ("()", 1, 1, "the tree or node that begins here is empty"),
        ("(2 (3 a) ( ))", 1, 10, "the tree or node that begins here is empty"),
        ("(1 a)\n(3 (2) b)", 2, 4, "the node with label '2' has neither word nor node"),
        ("(2 a) b", 1, 7, "'b' stands outside of any tree"),
    ],
)
def test_what_is_wrong_is_named_by_line_and_column(text, line, column, problem):
    with pytest.raises(DataError, match=problem) as raised:
        list(read_trees(text.split("\n"), source="trees.txt"))
    assert (raised.value.line, raised.value.column) == (line, column)
    assert str(raised.value).startswith(f"trees.txt, line {line}, column {column}: ")


def test_a_text_that_is_to_be_one_tree_is_one():
    with pytest.raises(DataError, match="holds 2 trees, but must hold one"):
        read_tree("(2 a) (3 b)")
    with pytest.raises(DataError, match="holds 0 trees, but must hold one"):
        read_tree("")


def test_labels_can_be_checked_where_they_stand():
    def check(label):
        return "" if label == "1" else f"no {label} here"

    with pytest.raises(DataError, match="column 5: no 7 here"):
        read_tree("(1 (7 a) b)", check=check)


def test_a_bracket_that_is_a_word_is_written_by_its_name():
    tree = folded(["(", "so", ")"], "left", label="a b(c)")
    assert write_tree(tree) == "(a_b_c_ ( -LRB- so) -RRB-)"
    assert read_tree(write_tree(tree)).words == ("-LRB-", "so", "-RRB-")


def random_tree(generator, words, labels):
    """Brackets over words, of any number of children; None: no label."""
    nodes = [f"({label} {w})" if (label := labels()) else w for w in words]
    while len(nodes) > 1:
        begin = int(generator.integers(len(nodes) - 1))
        end = begin + int(generator.integers(2, 5))
        nodes[begin:end] = [f"({labels() or ' '} {' '.join(nodes[begin:end])})"]
    return nodes[0]


def test_any_tree_comes_back_as_it_was():
    generator = np.random.default_rng(1)
    for size in [2, 3, 5, 20] * 10:
        words = [f"w{k}" for k in range(size)]
        text = random_tree(generator, words, lambda: generator.choice(["", "1", "NP"]))
        tree = read_tree(text)
        again = read_tree(write_tree(tree))
        assert tree.words == again.words == tuple(words)
        assert (tree.parents.tolist(), tree.labels) == (again.parents.tolist(), again.labels)
        two = binary(tree)
        assert two.is_binary
        assert two.words == tree.words
        spans, kept = ({*zip(*map(np.ndarray.tolist, t.spans), strict=True)} for t in (tree, two))
        assert spans <= kept  # every phrase is still one


def test_of_a_chain_the_topmost_label_stays():
    assert write_tree(binary(read_tree("(A (B (C c)))"))) == "(A c)"
    assert write_tree(binary(read_tree("(A (B (C c) d))"))) == "(A (C c) d)"


def test_a_tree_100000_deep_is_read_folded_and_written():
    deep = "(1 " * 100_000 + "a" + " b)" * 100_000
    tree = read_tree(deep)
    assert (len(tree), tree.depth) == (200_001, 100_000)
    assert read_tree(write_tree(tree)).parents.tolist() == tree.parents.tolist()
    flat = read_tree("(1 " + "a " * 100_000 + ")")
    assert binary(flat).depth == 99_999


@pytest.mark.slow
def test_a_tree_of_a_million_nodes():
    tree = read_tree("(1 " + "(2 (3 a) (4 b))" * 333_334 + ")")
    assert len(tree) == 1_000_003
    assert tree.labels[:3] == ("3", "4", "2")


@pytest.mark.row("O4")
def test_folds_of_words():
    words = list("abcde")
    shapes = {how: write_tree(folded(words, how, label="r")) for how in FOLDS}
    assert shapes == {
        "right": "(r a ( b ( c ( d e))))",
        "left": "(r ( ( ( a b) c) d) e)",
        "balanced": "(r ( a b) ( c ( d e)))",
    }
    for how in FOLDS:
        assert write_tree(folded(["a"], how, label="r")) == "(r a)"
        for size in range(2, 20):
            tree = folded([str(k) for k in range(size)], how)
            assert read_tree(write_tree(tree)).parents.tolist() == tree.parents.tolist()
    assert folded(["w"] * 1024, "balanced").depth == 10


def test_trees_are_known_by_their_name_or_their_brackets():
    assert is_tree_like(["( (S", "   (NP a)))", "", "(S b)"])
    assert not is_tree_like(["(so) it is", "and so on"])
    assert not is_tree_like([])
    assert recognise([SENTIMENT], name="a.txt").format == "trees"
    assert recognise(["whatever"], name="a.mrg").format == "trees"
    assert recognise([SENTIMENT], name="a.txt", among=("text", "tsv")).format == "text"
