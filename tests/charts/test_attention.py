"""Attention is drawn where it is, tokens may repeat, and every refusal says why."""

import math

import numpy as np
import pytest
from chart_data import rows

from unrolled.charts.attention import MOST_TOKENS, alignment_links, attention_map
from unrolled.charts.page import save
from unrolled.errors import ConfigError, NumericError

SOURCE, TARGET = ["the", "cat", "the", 'a"b\\'], ["кот", "Größe", "日本"]
WEIGHTS = np.array([[0.5, 0.5, 0.0, 0.0], [0.0, 0.1, 0.7, 0.2], [0.125, 0.25, 0.375, 0.25]])

# ------------------------------------------------------------------ the map


@pytest.mark.row("Q11")
def test_every_weight_is_a_cell_at_its_place_also_where_words_repeat():
    cells = rows(attention_map(WEIGHTS, SOURCE, TARGET), 0)
    table = np.full((3, 4), np.nan)
    for cell in cells:
        table[cell["target"], cell["source"]] = cell["weight"]
        assert cell["source_token"] == SOURCE[cell["source"]]
        assert cell["target_token"] == TARGET[cell["target"]]
    assert len(cells) == 12
    assert np.array_equal(table, WEIGHTS)


def test_the_words_are_written_along_both_sides(tmp_path):
    save(attention_map(WEIGHTS, SOURCE, TARGET, title="Map"), tmp_path / "map.svg")
    drawn = (tmp_path / "map.svg").read_text(encoding="utf-8")
    assert drawn.count(">the</text>") == 2
    for word in ("кот", "Größe", "日本", "cat", "Map", "source", "target"):
        assert f">{word}</text>" in drawn
    assert 'a"b\\</text>' in drawn or "a&quot;b\\</text>" in drawn


def test_a_threshold_frames_the_cells_from_it_on(tmp_path):
    chart = attention_map(WEIGHTS, SOURCE, TARGET, threshold=0.5)
    frames = chart.to_dict()["layer"][1]
    assert frames["transform"] == [{"filter": "(datum.weight >= 0.5)"}]
    assert chart.to_dict()["title"]["subtitle"] == "framed: weight ≥ 0.5"
    save(chart, tmp_path / "map.svg")
    drawn = (tmp_path / "map.svg").read_text(encoding="utf-8")
    assert drawn.count(f'stroke="{frames["mark"]["stroke"]}"') == 3
    assert len(attention_map(WEIGHTS, SOURCE, TARGET).to_dict()["layer"]) == 1


def test_sixty_words_are_drawn_with_every_label(tmp_path):
    words = [f"w{i}" for i in range(60)]
    save(attention_map(np.eye(60), words, words), tmp_path / "map.svg")
    drawn = (tmp_path / "map.svg").read_text(encoding="utf-8")
    assert all(drawn.count(f">{word}</text>") == 2 for word in words)
    save(attention_map(np.zeros((1, 1)), ["a"], ["b"]), tmp_path / "small.png")
    assert (tmp_path / "small.png").read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize(
    ("word", "angle"), [("x", 0), ("</s>", 0), ("word5", -60), ("日本語", -60)]
)
def test_narrow_words_are_level_and_others_slanted(word, angle):
    chart = attention_map(np.eye(3), ["a", "b", word], ["a", "b", "c"])
    assert chart.to_dict()["layer"][0]["encoding"]["x"]["axis"]["labelAngle"] == angle


# ------------------------------------------------------------------ the links


@pytest.mark.row("Q11")
def test_links_are_the_weights_from_the_threshold_on():
    chart = alignment_links(WEIGHTS, SOURCE, TARGET, threshold=0.25)
    links = rows(chart, 0)
    found = {(link["target"], link["source"]): link["weight"] for link in links}
    assert found == {
        (i, j): w for (i, j), w in np.ndenumerate(WEIGHTS) if w >= 0.25
    }  # fmt: skip
    assert [link["weight"] for link in links] == sorted(found.values())


def test_a_link_joins_the_middles_of_its_words():
    chart = alignment_links(WEIGHTS, SOURCE, TARGET, threshold=0.25)
    source, target = rows(chart, 1), rows(chart, 3)
    for link in rows(chart, 0):
        upper, lower = source[link["source"]], target[link["target"]]
        assert (link["x"], link["y"]) == (upper["x"], upper["y"])
        assert (link["x2"], link["y2"]) == (lower["x"], lower["y"])


def test_words_without_a_link_are_marked_on_both_sides(tmp_path):
    chart = alignment_links(WEIGHTS, SOURCE, TARGET, threshold=0.45, title="Links")
    assert [word["spurious"] for word in rows(chart, 1)] == [False, False, False, True]
    assert [word["spurious"] for word in rows(chart, 3)] == [False, False, True]
    save(chart, tmp_path / "links.svg")
    drawn = (tmp_path / "links.svg").read_text(encoding="utf-8")
    for word in ("Links", "日本", "кот", "cat"):
        assert f">{word}</text>" in drawn


HALVES = {"word": 16.0, "日本語": 24.0, "a": 4.0, "end": 12.0}  # pixels: half of each word


@pytest.mark.parametrize("count", [4, 60])
def test_words_stand_apart_level_or_upright_and_inside_the_picture(count):
    words = ["word", "日本語", "a"] * (count // 3) + ["end"]
    weights = np.eye(len(words))[: len(words) - 1]
    chart = alignment_links(weights, words, words[:-1], threshold=0.5)
    spec, upper, lower = chart.to_dict(), rows(chart, 1), rows(chart, 3)
    upright = "angle" in spec["layer"][1]["mark"]
    assert upright == (count == 60)
    for row in (upper, lower):
        x = np.array([word["x"] for word in row])
        halves = np.array([9.0 if upright else HALVES[w["token"]] for w in row])
        assert (np.diff(x) >= halves[1:] + halves[:-1]).all()
        assert x[0] >= halves[0]
        assert x[-1] + halves[-1] <= spec["width"]
        assert 0 < row[0]["y"] < spec["height"]


# ------------------------------------------------------------------ what cannot be drawn


@pytest.mark.parametrize(
    "draw", [attention_map, lambda *given: alignment_links(*given, threshold=0.5)]
)
def test_weights_that_cannot_be_drawn_are_refused(draw):
    with pytest.raises(ConfigError, match=r"weights has shape \(1, 2\), but there are 2 target"):
        draw([[0.5, 0.5]], ["a"], ["b", "c"])
    with pytest.raises(NumericError, match=r"weights\[1\] is nan"):
        draw([[0.5, math.nan]], ["a", "b"], ["c"])
    with pytest.raises(ConfigError, match=r"weights\[1, 0\] is -3, but a weight is a .*softmax"):
        draw([[0.5], [-3.0]], ["a"], ["b", "c"])
    with pytest.raises(ConfigError, match=r"weights\[0, 0\] is 1\.5, but a weight is a share"):
        draw([[1.5]], ["a"], ["b"])
    many = MOST_TOKENS + 1
    with pytest.raises(ConfigError, match=rf"1 target and {many} source tokens, but a picture"):
        draw(np.zeros((1, many)), ["a"] * many, ["b"])
    with pytest.raises(ConfigError, match="0 target and 1 source tokens, but a picture holds 1 to"):
        draw(np.zeros((0, 1)), ["a"], [])


def test_a_threshold_that_marks_everything_or_nothing_is_refused():
    for wrong in (0.0, 1.5, math.nan):
        with pytest.raises(ConfigError, match=rf"threshold is {wrong:g}, but must be above 0"):
            attention_map([[1.0]], ["a"], ["b"], threshold=wrong)
