"""Pictures of trees: all that is known of a node is in them, and no line crosses another."""

import pytest

from unrolled.charts import parse_tree
from unrolled.errors import ConfigError

WORDS, PARENTS = ("not", "so", "good"), [4, 3, 3, 4, -1]


def rows(chart, layer):
    return chart.layer[layer].data.values


@pytest.mark.row("Q9")
def test_labels_steps_and_errors_stand_at_their_nodes():
    chart = parse_tree(
        WORDS,
        PARENTS,
        labels=["1", "2", "4", "4", "1"],
        probabilities=[0.9] * 5,
        steps=[0, 0, 0, 1, 2],
        errors=[0, 0, 0, 0.25, 0.5],
        title="not so good",
    )
    nodes = rows(chart, 1)
    assert [node["word"] for node in nodes] == ["not", "so", "good", "", ""]
    assert [node["label"] for node in nodes] == ["1", "2", "4", "4", "1"]
    assert [node["order"] for node in nodes] == ["", "", "", "1", "2"]
    assert [node["cost"] for node in nodes] == ["", "", "", "0.250", "0.500"]
    assert nodes[3]["x"] == (nodes[1]["x"] + nodes[2]["x"]) / 2
    assert nodes[4]["y"] < nodes[3]["y"] < nodes[0]["y"] == nodes[2]["y"]


def test_edges_go_across_and_then_down():
    edges = rows(parse_tree(WORDS, PARENTS), 0)
    assert len(edges) == 8
    assert all(e["x"] == e["x2"] or e["y"] == e["y2"] for e in edges)


def test_what_is_too_large_or_does_not_fit_is_refused():
    with pytest.raises(ConfigError, match="has 1,001 nodes, but a picture holds 1 to 1,000"):
        parse_tree(["a"] * 501, [*range(1, 1001), -1])
    with pytest.raises(ConfigError, match="the tree has 3 leaves, but there are 2 words"):
        parse_tree(WORDS[:2], PARENTS)
