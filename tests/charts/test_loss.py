"""The loss curve holds the right numbers, and every refusal says why."""

import math

import numpy as np
import pytest
from chart_data import rows, titles

from unrolled.charts.loss import MOST_POINTS, _spread, loss_curve
from unrolled.errors import ConfigError, NumericError


def test_a_short_run_is_drawn_as_it_is():
    chart = loss_curve([1, 2, 3], np.array([3.0, 2.0, 1.0]))
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
    chart = loss_curve(steps, losses)
    each, smooth = rows(chart, 0), rows(chart, 1)
    assert len(each) <= MOST_POINTS
    assert len(smooth) <= MOST_POINTS
    assert {"line": "training, each step", "step": 31_415.0, "loss": 9.0} in each
    assert {"line": "training, each step", "step": 27_182.0, "loss": 0.5} in each
    assert [row["step"] for row in each] == sorted(row["step"] for row in each)
    assert all(2.9 < row["loss"] < 3.1 for row in smooth)


def test_smoothing_is_the_mean_of_a_centred_window_cut_at_the_ends():
    steps, losses = np.arange(120.0), np.random.default_rng(1).random(120)
    smooth = rows(loss_curve(steps, losses), 1)  # a window of 5
    means = [losses[max(i - 2, 0) : i + 3].mean() for i in range(120)]
    assert [row["loss"] for row in smooth] == pytest.approx(means, rel=1e-12)
    assert [row["step"] for row in smooth] == list(steps)


def test_dev_is_a_line_with_points_and_baselines_are_labelled_rules():
    chart = loss_curve(
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
    assert loss_curve([5], [2.5]).to_dict()["layer"][0]["mark"]["point"]


def test_every_value_is_inside_the_axis():
    chart = loss_curve([1, 2], [3, 2], dev_steps=[1], dev_losses=[5], baselines={"a": 1, "b": 7})
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
    assert _spread(np.array(levels), 1.0) == pytest.approx(places)


def test_losses_that_cannot_be_drawn_are_refused():
    with pytest.raises(NumericError, match=r"losses\[1\] is nan, but only finite numbers"):
        loss_curve([1, 2], [1.0, math.nan])
    with pytest.raises(NumericError, match=r"dev_losses\[0\] is inf"):
        loss_curve([1], [1.0], dev_steps=[1], dev_losses=[math.inf])
    with pytest.raises(NumericError, match=r"baselines\[0\] is nan"):
        loss_curve([1], [1.0], baselines={"unigram": math.nan})
    with pytest.raises(ConfigError, match=r"steps has 2 values but losses has 1\. Give one"):
        loss_curve([1, 2], [1.0])
    with pytest.raises(ConfigError, match="dev_steps has 0 values but dev_losses has 1"):
        loss_curve([1], [1.0], dev_losses=[1.0])
    with pytest.raises(ConfigError, match=r"losses is empty.* at least 1 loss"):
        loss_curve([], [])
