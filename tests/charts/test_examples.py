"""Training examples are drawn as they are counted, whatever the words."""

import pytest
from chart_data import rows

from unrolled.charts import save, training_examples
from unrolled.errors import ConfigError


@pytest.mark.row("Q15")
def test_neighbours_are_squares_and_what_is_drawn_has_its_count(tmp_path):
    near, drawn = [[0, 1, 0], [1, 0, 1]], [[3, 0, 0], [0, 1, 2]]
    hostile = ["a", "a", '"];alert(1)//']
    chart = training_examples(["a", "b"], hostile, near, drawn, title="Words")
    found = {(r["row"], r["column"], r["kind"]): r["count"] for r in rows(chart, 0)}
    assert found == {
        **{(0, 1, "neighbour"): 1, (1, 0, "neighbour"): 1, (1, 2, "neighbour"): 1},
        **{(0, 0, "drawn"): 3, (1, 1, "drawn"): 1, (1, 2, "drawn"): 2},
    }
    save(chart, tmp_path / "c.svg")
    drawn = (tmp_path / "c.svg").read_text()
    assert all(f">{text}<" in drawn for text in ("Words", "neighbour", "a", "b", "3", "2"))


@pytest.mark.parametrize("near", [[[1, 2]], [[]]])
def test_counts_of_other_words_are_refused(near):
    with pytest.raises(ConfigError, match="the counts have shapes"):
        training_examples(["a"], [], near, near)
