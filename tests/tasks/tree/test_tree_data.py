"""What a network over trees reads: given trees, folded texts, labels with a sign, and bad data."""

import numpy as np
import pytest

from unrolled.config import settings_for
from unrolled.errors import ConfigError, DataError
from unrolled.tasks.tree.data import Trees, labels_of, settled
from unrolled.tasks.tree.job import tree_job
from unrolled.tasks.tree.settings import TreeRun
from unrolled.text.brackets import write_tree
from unrolled.text.source import Source

GIVEN = "(3 (2 It) (4 (2 is) (4 good)))\n(0 (2 It) (1 (2 is) (1 bad)))\n(2 (2 a) (2 b))\n"


@pytest.fixture
def read(tmp_path):
    def _read(text, name="data.txt", **overrides):
        path = tmp_path / name
        path.write_text(text, encoding="utf-8")
        return Trees.read(Source(path), settings_for(TreeRun, overrides=overrides))

    return _read


def test_given_trees_and_what_they_settle(read):
    data = read(GIVEN)
    assert [write_tree(tree) for tree in data.trees] == GIVEN.split("\n")[:-1]
    chosen = settled(settings_for(TreeRun), data)
    assert (chosen.model.tree, chosen.model.labels, chosen.data.label_count) == (
        "given",
        "nodes",
        5,
    )
    assert labels_of(data.trees, source="x").names == ("0", "1", "2", "3", "4")


@pytest.mark.row("O4")
def test_labelled_texts_are_folded_as_the_settings_say(read):
    lines = "good\tIt (really) works.\nbad\t\n"
    first, empty = read(lines, "data.tsv").trees
    assert write_tree(first) == "(good It ( -LRB- ( really ( -RRB- ( works .)))))"
    assert write_tree(empty) == "(bad </s>)"
    left, _ = read(lines, "data.tsv", **{"model.tree": "left"}).trees
    assert write_tree(left).startswith("(good ( ( ( ( It -LRB-) really)")
    chosen = settled(settings_for(TreeRun), read(lines, "data.tsv"))
    assert (chosen.model.tree, chosen.model.labels) == ("right", "root")
    own = settled(
        settings_for(TreeRun, overrides={"model.composition": "autoencoder"}),
        read(lines, "data.tsv"),
    )
    assert (own.model.tree, own.model.labels) == ("greedy", "sentence")


def test_a_table_may_hold_trees(read):
    data = read("label\ttext\nyes\t( ( It is ) good )\n", "d.tsv", **{"model.tree": "given"})
    assert write_tree(data.trees[0]) == "(yes ( It is) good)"
    assert data.given
    rows = read('{"text": "a b", "label": 1}\n{"text": "c", "label": 0}\n', "d.jsonl")
    assert [tree.label for tree in rows.trees] == ["1", "0"]


def test_neutral_roots_are_left_out_and_neutral_nodes_have_no_label(read):
    data = read(GIVEN, **{"data.neutral": 2})
    assert [write_tree(tree) for tree in data.trees] == [
        "(positive It (positive is (positive good)))",
        "(negative It (negative is (negative bad)))",
    ]
    assert data.left_out == 1


@pytest.mark.parametrize(
    ("text", "overrides", "problem"),
    [
        ("(7 (2 a) b)", {"data.label_count": 5}, r"column 2: the label is '7', .* in 0..4"),
        ("(2 (NP a) b)", {}, r"column 5: the label is 'NP', but '2' came first"),
        ("(good a)", {"data.neutral": 2}, "the label is 'good', but numbers are expected"),
        ("", {}, "holds no tree and no text"),
        ("(2 (2 a) b)", {"data.neutral": 2}, "holds no tree and no text"),
    ],
)
def test_labels_that_do_not_go_together_are_refused(read, text, overrides, problem):
    with pytest.raises(DataError, match=problem):
        read(text, **overrides)


def test_two_labels_of_one_text_are_refused(read):
    with pytest.raises(DataError, match="line 2: has 2 labels, but a tree's root has one"):
        read("a\tx\na|b\ty\n", "d.tsv")


def job(read, text, name="data.txt", **overrides):
    data = read(text, name, **overrides)
    run = settled(settings_for(TreeRun, overrides=overrides), data)
    return tree_job(run, {"train": data, "dev": data})


def test_one_label_is_too_few(read):
    with pytest.raises(DataError, match="all labels are '2', but a network chooses between 2"):
        job(read, "(2 (2 a) b)\n(2 c)")


@pytest.mark.arithmetic
def test_without_labels_only_an_autoencoder_learns(read):
    with pytest.raises(ConfigError, match="has no labels, and without them only an autoencoder"):
        job(read, "a b c\nd e f\n")
    made = job(read, "a b c\nd e f\n", **{"model.composition": "autoencoder"})
    assert made.model.labels is None
    assert not made.model.network.embedding.requires_grad


def test_settings_that_do_not_go_together_are_refused(read):
    with pytest.raises(
        ConfigError, match=r'model\.tree is "greedy", but only the error of an auto'
    ):
        settings_for(TreeRun, overrides={"model.tree": "greedy"})
    with pytest.raises(ConfigError, match="there are no vectors to freeze"):
        job(read, GIVEN, **{"model.freeze_vectors": True})


def test_vectors_of_another_size_are_refused(read, tmp_path):
    vectors = tmp_path / "v.txt"
    vectors.write_text("it 1 2 3\nzebra 4 5 6\n")
    with pytest.raises(ConfigError, match=r"model\.embedding_size is 300, but the vectors have 3"):
        job(read, GIVEN, **{"model.vectors": str(vectors)})
    made = job(read, GIVEN, **{"model.vectors": str(vectors), "model.embedding_size": 3})
    assert made.facts()["vectors_found"] == 2
    assert made.model.encoder.knows("zebra")
    rows = made.model.encoder.words.encode(["it", "zebra"])
    it, zebra = made.model.network.embedding[rows.tolist()]
    assert float((zebra[0] / it[0]).detach()) == pytest.approx(4.0, rel=1e-5)  # one scale for all


def test_one_tree_cannot_be_split(read):
    with pytest.raises(DataError, match="holds one tree, so none can be kept for development"):
        read("(2 (1 a) b)").split(0.1, 1)
    kept, dev = read(GIVEN * 10).split(0.1, 1)
    assert (len(kept.trees), len(dev.trees)) == (27, 3)
    assert sorted(tree.label for tree in dev.trees) == ["0", "2", "3"]


def test_what_is_learned_where_the_settings_choose(read):
    every = {
        how: job(read, GIVEN, **{"model.labels": how}) for how in ("nodes", "root", "sentence")
    }
    targets = {how: made.batches.targets[0].tolist() for how, made in every.items()}
    assert targets == {"nodes": [2, 2, 4, 4, 3], "root": [-1] * 4 + [3], "sentence": [3] * 5}


@pytest.mark.arithmetic
def test_a_label_never_seen_is_counted_as_wrong_and_listed(read):
    data = read("(good (bad a) b)\n(bad (good b) a)\n")
    other = read("(good (ugly a) b)\n", "dev.txt")
    run = settled(settings_for(TreeRun), data)
    made = tree_job(run, {"train": data, "dev": other})
    assert made.dev_trees.targets[0].tolist() == [2, -1, 1]
    report = made.reports(made.model).reports["dev"]
    assert report.details["labels_not_in_training_data"] == {"ugly": 1}
    assert np.isfinite(made.dev().cost)
    nothing = read("(ugly (ugly a) b)\n", "test.txt")
    with pytest.raises(DataError, match="has the labels ugly, but must have some of the training"):
        tree_job(run, {"train": data, "dev": nothing})
