"""Pictures of the lab: heat maps, graphs, deviations."""

import numpy as np
import pytest
from chart_data import rows

from unrolled.charts import Arrow, Box, Frame, deviations, diagram, grouped_shares, heat_map
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


BOXES = [Box("a", 0, 0, "A", [("1 2", "red"), ("3", "blue")]), Box("b", 2, 0, "B")]


def test_a_diagram_has_its_boxes_texts_and_arrows():
    chart = diagram(BOXES, [Arrow("a", "b", label="w")], column=100)
    line, heads, rectangles, titles, lines, labels = (rows(chart, k) for k in range(6))
    assert [row["text"] for row in (*titles, *labels)] == ["A", "B", "w"]
    assert [(row["text"], row["colour"]) for row in lines] == [("1\xa02", "red"), ("3", "blue")]
    a, b = rectangles
    assert a["x2"] == line[0]["x"] < line[1]["x"] == heads[0]["x"] < b["x"]  # clear of its head
    assert heads[0]["angle"] == pytest.approx(90.0)  # a triangle that points to the right
    assert (b["x"] + b["x2"]) / 2 == pytest.approx(200.0)


def test_an_arrow_goes_by_way_of_its_points_and_a_frame_is_round_its_boxes():
    way = [(1.0, 1.0), (2.0, 1.0)]
    framed = diagram(BOXES, [Arrow("a", "b", way)], frames=[Frame("F", ["a"])], column=100, row=50)
    frame, title, line, _, rectangles = (rows(framed, k) for k in range(5))
    assert [(point["x"], point["y"]) for point in line[1:-1]] == [(100, 50), (200, 50)]
    assert title[0]["text"] == "F"
    assert frame[0]["x"] < rectangles[0]["x"] < rectangles[0]["x2"] < frame[0]["x2"]
    assert frame[0]["x2"] < rectangles[1]["x"]


@pytest.mark.parametrize(
    ("boxes", "arrows", "frames", "message"),
    [
        (BOXES, [Arrow("a", "c")], [], "'c' has no place"),
        (BOXES, [], [Frame("F", ["d"])], "'d' has no place"),
        ([*BOXES, BOXES[0]], [], [], "'a' names two boxes"),
        ([], [], [], "there are no boxes"),
    ],
)
def test_diagrams_that_cannot_be_drawn(boxes, arrows, frames, message):
    with pytest.raises(ConfigError, match=message):
        diagram(boxes, arrows, frames=frames)


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
