"""A beam's tree is drawn without overlaps, with every hypothesis in it, and the best way thick."""

import math
from collections import Counter, defaultdict
from itertools import product

import numpy as np
import pytest
from chart_data import rows

from unrolled.charts.beam import BOX, GAP, PITCH, beam_tree
from unrolled.charts.page import save
from unrolled.errors import ConfigError, NumericError

pytestmark = pytest.mark.slow


def node(name, parent=None, depth=0, state="open", **more):
    return {
        "id": name, "parent": parent, "depth": depth, "label": str(name),
        "log_probability": -1.5 * depth, "score": -1.0 * depth, "state": state,
    } | more  # fmt: skip


def search(width, steps, seed=0):
    """A random search: each step keeps `width` of the children and prunes as many."""
    rng = np.random.default_rng(seed)
    nodes, beam = [node(0)], [0]
    for depth in range(1, steps + 1):
        parents = rng.choice(beam, 2 * width)
        kept = range(len(nodes), len(nodes) + width)
        for rank, parent in enumerate(parents):
            state = "open" if rank < width else "pruned"
            nodes.append(node(len(nodes), int(parent), depth, state))
        beam = list(kept)
    nodes[beam[0]]["state"] = "best"
    return nodes


def test_every_node_is_a_box_with_its_numbers_in_the_order_given():
    nodes = [node("a"), node("b", "a", 1, "best"), node("c", "a", 1, "pruned")]
    boxes = rows(beam_tree(nodes), 1)
    for box, given in zip(boxes, nodes, strict=True):
        for name in ("label", "log_probability", "score", "state"):
            assert box[name] == given[name]
    assert boxes[1]["middle"] < boxes[2]["middle"]
    assert boxes[0]["middle"] == (boxes[1]["middle"] + boxes[2]["middle"]) / 2


@pytest.mark.row("Q10")
def test_edges_lead_from_parent_to_child_and_the_best_way_is_thick():
    nodes = search(3, 6)
    chart = beam_tree(nodes)
    edges, boxes = rows(chart, 0), rows(chart, 1)
    pairs = [(boxes[given["parent"]], boxes[given["id"]]) for given in nodes[1:]]
    expected = Counter((a["right"], a["middle"], b["left"], b["middle"]) for a, b in pairs)
    assert Counter((e["x"], e["y"], e["x2"], e["y2"]) for e in edges) == expected
    way, place = set(), next(n["id"] for n in nodes if n["state"] == "best")
    while place is not None:
        way.add(place)
        place = nodes[place]["parent"]
    assert {n["id"] for n, box in zip(nodes, boxes, strict=True) if box["on_way"]} == way
    assert sum(edge["on_way"] for edge in edges) == len(way) - 1
    assert [edge["on_way"] for edge in edges] == sorted(edge["on_way"] for edge in edges)


@pytest.mark.parametrize(("width", "steps"), [(1, 1), (5, 12), (10, 20)])
@pytest.mark.parametrize("seed", range(5))
def test_no_box_touches_another_and_all_are_inside(width, steps, seed):
    nodes = search(width, steps, seed)
    chart = beam_tree(nodes)
    columns = defaultdict(list)
    for box, given in zip(rows(chart, 1), nodes, strict=True):
        columns[given["depth"]].append(box)
        assert BOX / 2 < box["middle"] < chart.height - BOX / 2
        assert 0 <= box["left"] < box["right"] <= chart.width
    for boxes in columns.values():
        assert len({(box["left"], box["right"]) for box in boxes}) == 1
        middles = sorted(box["middle"] for box in boxes)
        assert all(np.diff(middles) >= PITCH - 1e-9)
    for depth in range(1, steps + 1):
        assert columns[depth][0]["left"] == columns[depth - 1][0]["right"] + GAP


def test_children_are_in_order_around_their_parent_and_no_edges_cross():
    nodes = search(5, 12)
    boxes = rows(beam_tree(nodes), 1)
    below = defaultdict(list)
    for given, box in zip(nodes[1:], boxes[1:], strict=True):
        below[given["parent"]].append(box["middle"])
    for parent, middles in below.items():
        assert middles == sorted(middles)
        assert boxes[parent]["middle"] == pytest.approx((middles[0] + middles[-1]) / 2)
    for one, other in product(below, below):
        together = nodes[one]["depth"] == nodes[other]["depth"]
        if together and boxes[one]["middle"] < boxes[other]["middle"]:
            assert max(below[one]) < min(below[other])


def test_subtrees_share_rows_where_their_outlines_allow():
    deep = [node(1, 0, 1), node(2, 1, 2), node(3, 1, 2), node(4, 1, 2)]
    flat = [node(5, 0, 1), node(6, 0, 1)]
    middles = [box["middle"] for box in rows(beam_tree([node(0), *deep, *flat]), 1)]
    assert middles[1:] == [PITCH * row for row in (1.5, 0.5, 1.5, 2.5, 2.5, 3.5)]


def test_a_wide_label_widens_its_column_and_a_very_long_one_is_cut():
    long = "Donaudampfschifffahrt"
    boxes = rows(
        beam_tree([node(0), node(1, 0, 1, label="日本語日本"), node(2, 1, 2, label=long)]), 1
    )
    widths = [box["right"] - box["left"] for box in boxes]
    assert widths[0] < widths[1] < widths[2]
    assert boxes[2]["shown"] == "Donaudampfsch…"
    assert boxes[2]["label"] == long


def test_a_search_of_width_five_is_written(tmp_path):
    chart = beam_tree(search(5, 12), title="Beam of 5")
    save(chart, tmp_path / "beam.svg")
    drawn = (tmp_path / "beam.svg").read_text(encoding="utf-8")
    for words in ("Beam of 5", "best", "finished", "open", "pruned", "−12.00"):
        assert f">{words}</text>" in drawn
    save(chart, tmp_path / "beam.png")
    assert (tmp_path / "beam.png").read_bytes().startswith(b"\x89PNG")


def test_two_roots_stand_below_each_other():
    boxes = rows(beam_tree([node("a"), node("b"), node("c", "b", 1)]), 1)
    assert boxes[0]["left"] == boxes[1]["left"] == 0.0
    assert boxes[1]["middle"] - boxes[0]["middle"] == PITCH


@pytest.mark.parametrize(
    ("nodes", "message"),
    [
        ([], "there are 0 nodes, but a picture holds 1 to 1000"),
        ([node(0), node(0)], "id 0 is given to two nodes"),
        ([node(0, 7, 1)], "node 0 has the parent 7, which is not among the nodes"),
        ([node(0), node(1, 0, 2)], "node 1 has depth 2, but must have 1"),
        ([node(0, depth=1)], "node 0 has depth 1, but must have 0"),
        ([node(0, 0, 1)], "node 0 has depth 1, but must have 2"),  # its own parent
        ([node(0, state="dead")], "state of node 0 is 'dead', but must be one of best, finished"),
    ],
)
def test_nodes_that_are_no_tree_are_refused(nodes, message):
    with pytest.raises(ConfigError, match=message):
        beam_tree(nodes)


def test_scores_must_be_finite():
    with pytest.raises(NumericError, match=r"score\[0\] is -inf"):
        beam_tree([node(0, score=-math.inf)])
    with pytest.raises(NumericError, match=r"log_probability\[0\] is nan"):
        beam_tree([node(0, log_probability=math.nan)])
