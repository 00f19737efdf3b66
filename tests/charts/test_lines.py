"""Lines hold the right numbers, and every refusal says why."""

import math

import pytest
from chart_data import rows, titles

from unrolled.charts.lines import curves, gradient_curve, length_curve, width_curve
from unrolled.charts.page import save, stack
from unrolled.errors import ConfigError, NumericError


def test_curves_hold_every_line_and_refuse_unequal_ones(tmp_path):
    chart = curves(
        {"train": ([1, 2], [3.0, 2.0]), "dev": ([1, 2], [3.5, 4.0])},
        x="layers",
        y="nats",
        title="t",
    )
    values = rows(chart, layer=0)
    assert {(row["line"], row["x"], row["y"]) for row in values} == {
        ("train", 1.0, 3.0), ("train", 2.0, 2.0), ("dev", 1.0, 3.5), ("dev", 2.0, 4.0)
    }  # fmt: skip
    save(chart, tmp_path / "curves.svg")
    with pytest.raises(ConfigError, match="x of dev has 2 values but y of dev has 1"):
        curves({"dev": ([1, 2], [3.0])}, x="layers", y="nats", title="t")


# ------------------------------------------------------------------ over the length of the source


def test_a_length_curve_has_a_line_a_model_and_a_band_where_there_is_one():
    values = {"with attention": [0.9, 0.8], "without": [0.9, 0.25]}
    band = {"without": [(0.85, 0.95), (0.125, 0.5)]}
    chart = length_curve([5, 50], values, y_title="exact match", intervals=band, title="t")
    assert rows(chart, 0) == [
        {"line": "without", "x": 5.0, "low": 0.85, "high": 0.95},
        {"line": "without", "x": 50.0, "low": 0.125, "high": 0.5},
    ]
    lines = [
        {"line": "with attention", "x": 5.0, "y": 0.9},
        {"line": "with attention", "x": 50.0, "y": 0.8},
        {"line": "without", "x": 5.0, "y": 0.9},
        {"line": "without", "x": 50.0, "y": 0.25},
    ]
    assert rows(chart, 1) == rows(chart, 2) == lines
    assert [layer["mark"]["type"] for layer in chart.to_dict()["layer"]] == [
        "area",
        "line",
        "point",
    ]
    assert titles(chart, "y") == {"exact match"}
    assert len(length_curve([5, 50], values, y_title="y").to_dict()["layer"]) == 2


def test_models_differ_in_colour_and_in_shape():
    points = length_curve([1], {"a": [1], "b": [2]}, y_title="y").to_dict()["layer"][1]["encoding"]
    for channel in ("color", "shape"):
        assert points[channel]["scale"]["domain"] == ["a", "b"]
        assert len({*points[channel]["scale"]["range"]}) == 2


def test_lengths_that_cannot_be_drawn_are_refused():
    with pytest.raises(ConfigError, match="lengths has 2 values but values of a has 1"):
        length_curve([1, 2], {"a": [1.0]}, y_title="y")
    with pytest.raises(ConfigError, match="lengths has 1 values but intervals of a has 2"):
        length_curve([1], {"a": [1.0]}, y_title="y", intervals={"a": [(0, 1), (0, 1)]})
    with pytest.raises(ConfigError, match="lengths has 1 values but intervals of a has 0"):
        length_curve([1], {"a": [1.0]}, y_title="y", intervals={"a": []})
    with pytest.raises(
        ConfigError, match=r"intervals of a has shape \(1, 3\), but must be \(1, 2\)"
    ):
        length_curve([1], {"a": [1.0]}, y_title="y", intervals={"a": [(0, 1, 2)]})
    with pytest.raises(ConfigError, match=r"intervals are given for 'b', but values only for a\."):
        length_curve([1], {"a": [1.0]}, y_title="y", intervals={"b": [(0, 1)]})
    with pytest.raises(NumericError, match=r"values of a\[0\] is nan"):
        length_curve([1], {"a": [math.nan]}, y_title="y")
    with pytest.raises(ConfigError, match="there are 0 lines, but a picture holds 1 to 8"):
        length_curve([1], {}, y_title="y")
    with pytest.raises(ConfigError, match="lengths is empty, but a line needs at least 1 value"):
        length_curve([], {"a": []}, y_title="y")


# ------------------------------------------------------------------ over places


def test_gradients_are_on_a_scale_of_powers_and_zero_is_an_arrow_below_all(tmp_path):
    chart = gradient_curve(
        [0, 1, 2], {"rnn": [0.0, 1e-6, 1e-3], "lstm": [0.5, 0.5, 0.5]}, title="t"
    )
    drawn = [(row["line"], row["x"], row["y"]) for row in rows(chart, 0)]
    assert drawn == [
        ("rnn", 1.0, 1e-6), ("rnn", 2.0, 1e-3), ("lstm", 0.0, 0.5), ("lstm", 1.0, 0.5),
        ("lstm", 2.0, 0.5),
    ]  # fmt: skip
    assert rows(chart, 2) == [{"line": "rnn", "x": 0.0, "y": pytest.approx(1e-7, rel=1e-15)}]
    spec = chart.to_dict()
    assert spec["layer"][0]["encoding"]["y"]["scale"]["type"] == "log"
    assert spec["title"]["subtitle"] == "↓ exactly 0"
    save(chart, tmp_path / "gradients.svg")
    assert "‖∂L/∂hᵢ‖" in (tmp_path / "gradients.svg").read_text(encoding="utf-8")


def test_gradients_without_a_zero_need_no_arrow_and_only_zeros_are_drawn_too(tmp_path):
    assert len(gradient_curve([0], {"rnn": [1.0]}).to_dict()["layer"]) == 2
    save(gradient_curve([0, 1], {"rnn": [0.0, 0.0]}, title="none"), tmp_path / "none.svg")
    assert (tmp_path / "none.svg").read_text(encoding="utf-8").count(">↓<") == 2


def test_a_negative_norm_is_refused():
    with pytest.raises(ConfigError, match="a norm of 'rnn' is -1, but a norm is never negative"):
        gradient_curve([0], {"rnn": [-1.0]})
    with pytest.raises(ConfigError, match="positions has 1 values but values of rnn has 2"):
        gradient_curve([0], {"rnn": [1.0, 2.0]})


# ------------------------------------------------------------------ over the width of the beam


@pytest.fixture(scope="module")
def beams():
    return width_curve([1, 5, 100], [-3, -2, -1], [20, 25, 24], [1, 4, 50], metric_title="chrF")


def test_three_panels_hold_what_went_in(beams):
    spec = beams.to_dict()
    names = ("model_score", "metric", "seconds")
    for panel, name, values in zip(
        spec["hconcat"], names, ([-3, -2, -1], [20, 25, 24], [1, 4, 50]), strict=True
    ):
        data = spec["datasets"][panel["data"]["name"]]
        assert data == [{"width": w, name: v} for w, v in zip((1, 5, 100), values, strict=True)]
        assert panel["encoding"]["x"]["scale"]["type"] == "log"
        assert panel["encoding"]["x"]["axis"]["values"] == [1, 5, 100]
    assert [panel["encoding"]["y"]["title"] for panel in spec["hconcat"]] == [
        "log-probability per sentence", "chrF", "seconds"
    ]  # fmt: skip


def test_panels_are_written_alone_and_below_another_chart(beams, tmp_path):
    save(beams, tmp_path / "beams.png")
    assert (tmp_path / "beams.png").read_bytes().startswith(b"\x89PNG")
    save(stack(gradient_curve([0], {"rnn": [1.0]}), beams), tmp_path / "both.svg")
    assert (tmp_path / "both.svg").read_text(encoding="utf-8").count(">beam width</text>") == 3


def test_widths_that_cannot_be_drawn_are_refused():
    with pytest.raises(ConfigError, match="widths has 2 values but metric has 1"):
        width_curve([1, 2], [1, 2], [1], [1, 2])
    with pytest.raises(ConfigError, match=r"widths is \[0\.0\], but must hold .* none below 1"):
        width_curve([0], [1], [1], [1])
