"""A table of counts is drawn as it is, and every refusal says why."""

import numpy as np
import pytest

from unrolled.charts.page import save
from unrolled.charts.tables import MOST_LABELS, confusion
from unrolled.errors import ConfigError, NumericError


def test_a_cell_has_its_count_and_its_share_of_the_row(tmp_path):
    chart = confusion(["cat", "dog"], [[3, 1], [0, 0]], title="Animals")
    spec = chart.to_dict()
    data = spec.get("data") or spec["layer"][0]["data"]
    assert spec["datasets"][data["name"]] == [
        {"true": "cat", "said": "cat", "count": 3, "share": 0.75},
        {"true": "cat", "said": "dog", "count": 1, "share": 0.25},
        {"true": "dog", "said": "cat", "count": 0, "share": 0.0},
        {"true": "dog", "said": "dog", "count": 0, "share": 0.0},
    ]
    save(chart, tmp_path / "table.svg")
    drawn = (tmp_path / "table.svg").read_text()
    for word in ("Animals", "true label", "given label", "dog"):
        assert word in drawn


def test_a_table_that_is_not_square_or_too_large_is_refused():
    with pytest.raises(ConfigError, match=r"there are 2 labels and counts of shape \(1, 2\), but"):
        confusion(["a", "b"], [[1, 2]])
    many = MOST_LABELS + 1
    with pytest.raises(ConfigError, match=f"there are {many} labels .* a picture holds 1 to"):
        confusion([str(n) for n in range(many)], np.zeros((many, many)))
    with pytest.raises(NumericError, match=r"counts\[0\] is nan, but only finite numbers"):
        confusion(["a"], [[np.nan]])
