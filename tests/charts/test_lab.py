"""Pictures of the lab: heat maps, graphs, deviations."""

import numpy as np
import pytest
from chart_data import rows

from unrolled.charts import computation_graph, deviations, grouped_shares, heat_map
from unrolled.errors import ConfigError, NumericError

NAMES = {"row_title": "r", "column_title": "c", "value_title": "v"}


def cells(chart):
    return rows(chart, 0)


def test_a_heat_map_has_a_cell_for_every_size_but_nothing():
    chart = heat_map([[1.0, 0.0], [0.5, 2.0]], rows=["a", "b"], columns=["x", "y"], **NAMES)
    assert {(cell["of"], cell["by"]): cell["size"] for cell in cells(chart)} == {
        ("a", "x"): 1.0,
        ("b", "x"): 0.5,
        ("b", "y"): 2.0,
    }


@pytest.mark.parametrize(
    ("table", "names", "error", "message"),
    [
        ([[1.0]], ["a", "b"], ConfigError, "must have"),
        ([[-1.0], [1.0]], ["a", "b"], ConfigError, "never negative"),
        ([[np.nan], [1.0]], ["a", "b"], NumericError, "is nan"),
        ([[1.0], [1.0]], ["a", "a"], ConfigError, "twice"),
    ],
)
def test_tables_that_cannot_be_drawn(table, names, error, message):
    with pytest.raises(error, match=message):
        heat_map(table, rows=names, columns=["x"], **NAMES)


def test_a_graph_has_its_boxes_and_arrows():
    boxes = {"a": ("[1 2] [3 4]", "[5]"), "b": ("6", "7")}
    chart = computation_graph(boxes, [("a", "b")], places={"a": (0, 0), "b": (1, 0)})
    arrows, words = rows(chart, 0), rows(chart, 2)
    assert len(arrows) == 1
    assert [row["text"].strip() for row in words] == ["a", "[1 2]", "[3 4]", "[5]", "b", "6", "7"]
    with pytest.raises(ConfigError, match="'c' has no place"):
        computation_graph(boxes, [("a", "c")], places={"a": (0, 0), "b": (1, 0)})


def test_deviations_have_two_points_a_name():
    chart = deviations(["E1", "E2"], [0.5, 2.0], [0.0, 1e-9])
    assert len(cells(chart)) == 4
    assert min(cell["off"] for cell in cells(chart)) > 0.0  # a scale of powers has no 0


def test_bars_by_group_have_means_and_ranges():
    chart = grouped_shares({"a": {"x": [0.2, 0.4]}, "b": {"x": [1.0]}}, x_title="s")
    assert [(r["place"], r["mean"], r["low"], r["high"]) for r in cells(chart)] == [
        ("x: a", pytest.approx(0.3), 0.2, 0.4),
        ("x: b", 1.0, 1.0, 1.0),
    ]
    with pytest.raises(ConfigError, match="there are 0 bars"):
        grouped_shares({}, x_title="s")
    with pytest.raises(NumericError, match="x of a"):
        grouped_shares({"a": {"x": [np.nan]}}, x_title="s")
