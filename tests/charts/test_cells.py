"""A text in cells holds the right numbers, and every refusal says why."""

import math
from itertools import pairwise

import numpy as np
import pytest
from chart_data import rows

from unrolled.charts.base import BLUE, ORANGE
from unrolled.charts.cells import ROW_WIDTH, surprise, token_shares
from unrolled.charts.page import save
from unrolled.errors import ConfigError, NumericError


def test_surprise_is_in_bits_and_whitespace_is_visible():
    chart = surprise(["a", " ", "\t", "", "b\n"], math.log(2) * np.array([1, 2, 3, 0, 8]))
    cells = rows(chart, 0)
    assert [cell["bits"] for cell in cells] == pytest.approx([1, 2, 3, 0, 8], rel=1e-15)
    assert [cell["shown"] for cell in cells] == ["a", "·", "→", "∅", "b⏎"]
    assert [cell["token"] for cell in cells] == ["a", " ", "\t", "", "b\n"]
    assert rows(chart, 1) == cells
    assert chart.to_dict()["layer"][0]["encoding"]["color"]["legend"]["title"] == "surprise (bits)"


def test_characters_wrap_at_sixty_and_at_a_line_break():
    cells = rows(surprise([*("x" * 61), "\n", "y"], np.ones(63)), 0)
    assert [cell["row"] for cell in cells] == [0] * 60 + [1, 1, 2]


def test_words_wrap_where_they_no_longer_fit():
    cells = rows(surprise(["seven77"] * 25, np.ones(25)), 0)
    assert [cell["row"] for cell in cells] == [0] * 12 + [1] * 12 + [2]


def test_cells_of_a_row_touch_and_never_overlap_or_leave_the_page():
    words = ["a", "of", "naïve", "日本語", "x" * 100, "end"] * 20
    cells = rows(surprise(words, np.ones(120)), 0)
    for left, right in pairwise(cells):
        assert right["left"] == (left["right"] if left["row"] == right["row"] else 0)
    assert max(cell["right"] for cell in cells) <= ROW_WIDTH
    assert cells[4]["shown"] == "x" * 39 + "…"


def test_rounding_below_zero_counts_as_no_surprise():
    assert rows(surprise(["a"], [-1e-7]), 0)[0]["bits"] == 0.0


def test_surprise_that_cannot_be_drawn_is_refused():
    with pytest.raises(NumericError, match=r"nats\[1\] is nan"):
        surprise(["a", "b"], [1.0, math.nan])
    with pytest.raises(ConfigError, match=r"there are 2 tokens but 1 values in nats"):
        surprise(["a", "b"], [1.0])
    with pytest.raises(ConfigError, match=r"nats\[1\] is -2.5.*minus the log-probability"):
        surprise(["a", "b"], [1.0, -2.5])
    with pytest.raises(ConfigError, match="there are 0 tokens, but a picture holds 1 to 10000"):
        surprise([], [])
    with pytest.raises(ConfigError, match=r"there are 10001 tokens.*Draw a part of the text"):
        surprise(["a"] * 10_001, np.ones(10_001))


# ------------------------------------------------------------------ each token's part


def test_shares_are_drawn_from_white_or_to_both_sides_of_it():
    chart = token_shares(["a", "b"], [0.25, 0.75], name="attention")
    assert [row["share"] for row in rows(chart, 0)] == [0.25, 0.75]
    scale = chart.to_dict()["layer"][0]["encoding"]["color"]["scale"]
    assert scale == {"domain": [0.0, 0.75], "range": ["white", BLUE], "interpolate": "rgb"}
    signed = token_shares(["a", "b"], [-0.75, 0.25]).to_dict()
    scale = signed["layer"][0]["encoding"]["color"]["scale"]
    assert (scale["domain"], scale["range"]) == ([-0.75, 0.0, 0.75], [ORANGE, "white", BLUE])


def test_shares_of_nothing_at_all_are_drawn(tmp_path):
    save(token_shares(["a"], [0.0], title="none"), tmp_path / "shares.svg")
    assert "none" in (tmp_path / "shares.svg").read_text()


def test_shares_are_one_a_token_and_finite():
    with pytest.raises(ConfigError, match=r"2 tokens but 1 values in shares\. Give one"):
        token_shares(["a", "b"], [1.0])
    with pytest.raises(NumericError, match=r"shares\[0\] is nan, but only finite numbers"):
        token_shares(["a"], [math.nan])
