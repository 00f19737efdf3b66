"""Depth and overfitting, on a text so small that a network learns it by heart."""

import pytest

from unrolled.lab.depth import depth

pytestmark = [pytest.mark.arithmetic, pytest.mark.trains]


@pytest.mark.row("H3")
def test_dropout_closes_the_gap_that_training_opens():
    found = depth(layers=(1,), widths=(64,), dropouts=(0.0, 0.5), epochs=60, characters=2500)
    gaps = {fit.dropout: fit.gap for fit in found.fits}
    assert gaps[0.0] > gaps[0.5] + 0.1
    assert len(found.text().splitlines()) == 2 + len(gaps)
    assert found.chart().to_dict()


@pytest.mark.row("H5")
def test_few_units_cannot_learn_by_heart_what_many_can():
    found = depth(layers=(1,), widths=(8, 64), dropouts=(0.0,), epochs=60, characters=2500)
    few, many = found.fits
    assert many.train < few.train - 0.3
    assert many.gap > few.gap + 0.1
