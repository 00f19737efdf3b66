"""Depth and overfitting, on a text so small that a wider network must learn it by heart."""

import pytest

from unrolled.lab.depth import depth

pytestmark = [pytest.mark.arithmetic, pytest.mark.trains]


def test_capacity_without_dropout_opens_a_gap():
    found = depth(layers=(1,), widths=(8, 64), dropouts=(0.0, 0.5), epochs=12, characters=2500)
    gaps = {(fit.hidden, fit.dropout): fit.gap for fit in found.fits}
    assert gaps[64, 0.0] > gaps[8, 0.0] + 0.1
    assert gaps[64, 0.0] > gaps[64, 0.5] + 0.1
    assert len(found.text().splitlines()) == 2 + len(gaps)
    assert found.chart().to_dict()
