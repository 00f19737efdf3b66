"""Charts hold the right numbers, every format is written, and every refusal says why."""

import json
import math
import re
import subprocess
import sys
from itertools import pairwise

import numpy as np
import pytest

from unrolled import charts
from unrolled.errors import ConfigError, NumericError, StorageError


def rows(chart, layer):
    spec = chart.to_dict()
    data = spec.get("data") or spec["layer"][layer]["data"]
    return spec["datasets"][data["name"]]


def titles(chart, channel):
    layers = chart.to_dict()["layer"]
    return {layer["encoding"].get(channel, {}).get("title") for layer in layers} - {None}


# ------------------------------------------------------------------ the loss while training


def test_a_short_run_is_drawn_as_it_is():
    chart = charts.loss_curve([1, 2, 3], np.array([3.0, 2.0, 1.0]))
    assert rows(chart, 0) == [
        {"line": "training", "step": 1.0, "loss": 3.0},
        {"line": "training", "step": 2.0, "loss": 2.0},
        {"line": "training", "step": 3.0, "loss": 1.0},
    ]
    assert len(chart.to_dict()["layer"]) == 1
    assert titles(chart, "y") == {"loss (nats per token)"}
    assert titles(chart, "x") == {"step"}


def test_a_long_run_is_thinned_but_keeps_every_extreme():
    steps = np.arange(50_000)
    losses = np.random.default_rng(0).normal(3.0, 0.1, 50_000)
    losses[31_415], losses[27_182] = 9.0, 0.5
    chart = charts.loss_curve(steps, losses)
    each, smooth = rows(chart, 0), rows(chart, 1)
    assert len(each) <= charts.MOST_POINTS
    assert len(smooth) <= charts.MOST_POINTS
    assert {"line": "training, each step", "step": 31_415.0, "loss": 9.0} in each
    assert {"line": "training, each step", "step": 27_182.0, "loss": 0.5} in each
    assert [row["step"] for row in each] == sorted(row["step"] for row in each)
    assert all(2.9 < row["loss"] < 3.1 for row in smooth)


def test_smoothing_is_the_mean_of_a_centred_window_cut_at_the_ends():
    steps, losses = np.arange(120.0), np.random.default_rng(1).random(120)
    smooth = rows(charts.loss_curve(steps, losses), 1)  # a window of 5
    means = [losses[max(i - 2, 0) : i + 3].mean() for i in range(120)]
    assert [row["loss"] for row in smooth] == pytest.approx(means, rel=1e-12)
    assert [row["step"] for row in smooth] == list(steps)


def test_dev_is_a_line_with_points_and_baselines_are_labelled_rules():
    chart = charts.loss_curve(
        [1, 2],
        [3, 2],
        dev_steps=[2],
        dev_losses=[2.5],
        baselines={"unigram": 3.125, "bigram": 2.0},
        unit="bits per character",
    )
    dev, dashes, _ = chart.to_dict()["layer"][1:]
    assert rows(chart, 1) == [{"line": "dev", "step": 2.0, "loss": 2.5}]
    assert dev["mark"]["point"]
    assert dashes["mark"]["strokeDash"]
    assert [row["loss"] for row in rows(chart, 2)] == [3.125, 2.0]
    assert [row["label"] for row in rows(chart, 3)] == ["unigram 3.12", "bigram 2.00"]
    assert titles(chart, "y") == {"loss (bits per character)"}


def test_a_single_loss_is_a_visible_point():
    assert charts.loss_curve([5], [2.5]).to_dict()["layer"][0]["mark"]["point"]


def test_every_value_is_inside_the_axis():
    chart = charts.loss_curve(
        [1, 2], [3, 2], dev_steps=[1], dev_losses=[5], baselines={"a": 1, "b": 7}
    )
    low, high = chart.to_dict()["layer"][0]["encoding"]["y"]["scale"]["domain"]
    assert low < 1 < 7 < high


@pytest.mark.parametrize(
    ("levels", "places"),
    [
        ([1.0, 5.0], [1.0, 5.0]),  # far apart: where they belong
        ([2.0, 2.0], [1.5, 2.5]),  # equal: one below, one above, in the order given
        ([3.0, 2.9, 3.1], [3.0, 2.0, 4.0]),  # close: in the order of their values
        ([0.0, 0.9, 1.4, 9.0], [-7 / 30, 23 / 30, 53 / 30, 9.0]),  # pushed apart around their mean
    ],
)
def test_labels_are_spread_as_little_as_needed(levels, places):
    assert charts._spread(np.array(levels), 1.0) == pytest.approx(places)


def test_losses_that_cannot_be_drawn_are_refused():
    with pytest.raises(NumericError, match=r"losses\[1\] is nan, but only finite numbers"):
        charts.loss_curve([1, 2], [1.0, math.nan])
    with pytest.raises(NumericError, match=r"dev_losses\[0\] is inf"):
        charts.loss_curve([1], [1.0], dev_steps=[1], dev_losses=[math.inf])
    with pytest.raises(NumericError, match=r"baselines\[0\] is nan"):
        charts.loss_curve([1], [1.0], baselines={"unigram": math.nan})
    with pytest.raises(ConfigError, match=r"steps has 2 values but losses has 1\. Give one"):
        charts.loss_curve([1, 2], [1.0])
    with pytest.raises(ConfigError, match="dev_steps has 0 values but dev_losses has 1"):
        charts.loss_curve([1], [1.0], dev_losses=[1.0])
    with pytest.raises(ConfigError, match=r"losses is empty.* at least 1 loss"):
        charts.loss_curve([], [])


# ------------------------------------------------------------------ the surprise of each token


def test_surprise_is_in_bits_and_whitespace_is_visible():
    chart = charts.surprise(["a", " ", "\t", "", "b\n"], math.log(2) * np.array([1, 2, 3, 0, 8]))
    cells = rows(chart, 0)
    assert [cell["bits"] for cell in cells] == pytest.approx([1, 2, 3, 0, 8], rel=1e-15)
    assert [cell["shown"] for cell in cells] == ["a", "·", "→", "∅", "b⏎"]
    assert [cell["token"] for cell in cells] == ["a", " ", "\t", "", "b\n"]
    assert rows(chart, 1) == cells
    assert chart.to_dict()["layer"][0]["encoding"]["color"]["legend"]["title"] == "surprise (bits)"


def test_characters_wrap_at_sixty_and_at_a_line_break():
    cells = rows(charts.surprise([*("x" * 61), "\n", "y"], np.ones(63)), 0)
    assert [cell["row"] for cell in cells] == [0] * 60 + [1, 1, 2]


def test_words_wrap_where_they_no_longer_fit():
    cells = rows(charts.surprise(["seven77"] * 25, np.ones(25)), 0)
    assert [cell["row"] for cell in cells] == [0] * 12 + [1] * 12 + [2]


def test_cells_of_a_row_touch_and_never_overlap_or_leave_the_page():
    words = ["a", "of", "naïve", "日本語", "x" * 100, "end"] * 20
    cells = rows(charts.surprise(words, np.ones(120)), 0)
    for left, right in pairwise(cells):
        assert right["left"] == (left["right"] if left["row"] == right["row"] else 0)
    assert max(cell["right"] for cell in cells) <= charts.ROW_WIDTH
    assert cells[4]["shown"] == "x" * 39 + "…"


def test_rounding_below_zero_counts_as_no_surprise():
    assert rows(charts.surprise(["a"], [-1e-7]), 0)[0]["bits"] == 0.0


def test_surprise_that_cannot_be_drawn_is_refused():
    with pytest.raises(NumericError, match=r"nats\[1\] is nan"):
        charts.surprise(["a", "b"], [1.0, math.nan])
    with pytest.raises(ConfigError, match=r"there are 2 tokens but 1 values in nats"):
        charts.surprise(["a", "b"], [1.0])
    with pytest.raises(ConfigError, match=r"nats\[1\] is -2.5.*minus the log-probability"):
        charts.surprise(["a", "b"], [1.0, -2.5])
    with pytest.raises(ConfigError, match="there are 0 tokens, but a picture holds 1 to 10000"):
        charts.surprise([], [])
    with pytest.raises(ConfigError, match=r"there are 10001 tokens.*Draw a part of the text"):
        charts.surprise(["a"] * 10_001, np.ones(10_001))


# ------------------------------------------------------------------ together, and into a file


@pytest.fixture(scope="module")
def page():
    curve = charts.loss_curve([1, 2], [3, 2], baselines={"unigram": 2.5})
    return charts.stack(curve, charts.surprise(["zebra"], [1.5], title="Surprise of each word"))


def test_a_stack_holds_every_chart_with_its_own_colours(page):
    spec = page.to_dict()
    assert [part["title"] for part in spec["vconcat"]] == [
        "Loss while training",
        "Surprise of each word",
    ]
    assert spec["resolve"]["scale"]["color"] == "independent"
    assert spec["config"]["font"] == charts.SANS


def test_stacking_leaves_the_charts_as_they_were():
    chart = charts.loss_curve([1], [1])
    charts.stack(chart)
    assert chart.to_dict()["config"]["font"] == charts.SANS


def test_png_has_twice_the_size(page, tmp_path):
    charts.save(page, tmp_path / "page.PNG")
    head = (tmp_path / "page.PNG").read_bytes()[:24]
    assert head.startswith(b"\x89PNG\r\n\x1a\n")
    assert int.from_bytes(head[16:20], "big") > 2 * charts.ROW_WIDTH


def test_svg_holds_the_words(page, tmp_path):
    charts.save(page, str(tmp_path / "page.svg"))
    svg = (tmp_path / "page.svg").read_text(encoding="utf-8")
    assert svg.startswith("<svg")
    for words in ("Loss while training", "loss (nats per token)", "unigram 2.50", "zebra"):
        assert f">{words}</text>" in svg


def test_html_carries_its_scripts_and_asks_for_nothing(page, tmp_path):
    charts.save(page, tmp_path / "page.html")
    html = (tmp_path / "page.html").read_text(encoding="utf-8")
    assert "zebra" in html
    assert len(html) > 500_000  # the scripts are inside
    assert not re.findall(r"""(?:@import|import\(|from) *["']https?:""", html)
    page_alone = re.sub(r"(<script[^>]*>).*?(</script>)", r"\1\2", html, flags=re.DOTALL)
    assert not re.findall(r"(?:src|href|url)\s*[=(]", page_alone)


def test_json_is_the_specification(page, tmp_path):
    charts.save(page, tmp_path / "page.json")
    assert json.loads((tmp_path / "page.json").read_text(encoding="utf-8")) == page.to_dict()


def test_an_unknown_extension_is_refused_with_the_list(page, tmp_path):
    allowed = r"must be one of \.html, \.json, \.png, \.svg\."
    with pytest.raises(ConfigError, match=rf"the extension of page\.gif is '\.gif', but {allowed}"):
        charts.save(page, tmp_path / "page.gif")
    with pytest.raises(ConfigError, match=rf"the extension of page is '', but {allowed}"):
        charts.save(page, tmp_path / "page")


def test_a_folder_that_is_not_there_is_named(page, tmp_path):
    with pytest.raises(StorageError, match=r"absent/page\.json: cannot write the picture: No such"):
        charts.save(page, tmp_path / "absent" / "page.json")


def test_importing_charts_imports_no_altair_and_no_torch():
    code = (
        "import sys, unrolled.charts; sys.exit(any(m in sys.modules for m in ('altair', 'torch')))"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_curves_hold_every_line_and_refuse_unequal_ones(tmp_path):
    chart = charts.curves(
        {"train": ([1, 2], [3.0, 2.0]), "dev": ([1, 2], [3.5, 4.0])},
        x="layers",
        y="nats",
        title="t",
    )
    values = rows(chart, layer=0)
    assert {(row["line"], row["x"], row["y"]) for row in values} == {
        ("train", 1.0, 3.0), ("train", 2.0, 2.0), ("dev", 1.0, 3.5), ("dev", 2.0, 4.0)
    }  # fmt: skip
    charts.save(chart, tmp_path / "curves.svg")
    with pytest.raises(ConfigError, match="x of dev has 2 values but y of dev has 1"):
        charts.curves({"dev": ([1, 2], [3.0])}, x="layers", y="nats", title="t")


# ------------------------------------------------------------------ each token's part


def test_shares_are_drawn_from_white_or_to_both_sides_of_it():
    chart = charts.token_shares(["a", "b"], [0.25, 0.75], name="attention")
    assert [row["share"] for row in rows(chart, 0)] == [0.25, 0.75]
    scale = chart.to_dict()["layer"][0]["encoding"]["color"]["scale"]
    assert scale == {"domain": [0.0, 0.75], "range": ["white", charts.BLUE]}
    signed = charts.token_shares(["a", "b"], [-0.75, 0.25]).to_dict()
    scale = signed["layer"][0]["encoding"]["color"]["scale"]
    assert scale == {"domain": [-0.75, 0.0, 0.75], "range": [charts.ORANGE, "white", charts.BLUE]}


def test_shares_of_nothing_at_all_are_drawn(tmp_path):
    charts.save(charts.token_shares(["a"], [0.0], title="none"), tmp_path / "shares.svg")
    assert "none" in (tmp_path / "shares.svg").read_text()


def test_shares_are_one_a_token_and_finite():
    with pytest.raises(ConfigError, match=r"2 tokens but 1 values in shares\. Give one"):
        charts.token_shares(["a", "b"], [1.0])
    with pytest.raises(NumericError, match=r"shares\[0\] is nan, but only finite numbers"):
        charts.token_shares(["a"], [math.nan])
