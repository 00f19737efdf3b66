import numpy as np
import pytest

from unrolled.evaluate.bootstrap import ratio

pytestmark = pytest.mark.arithmetic


def test_the_interval_is_the_bootstraps():
    generator = np.random.default_rng(5)
    counts = generator.integers(5, 30, size=400)
    amounts = counts * 2.0 + generator.normal(size=400)
    value, low, high = ratio(amounts, counts)
    ratios = [
        amounts[rows].sum() / counts[rows].sum()
        for rows in np.random.default_rng(0).integers(400, size=(1000, 400))
    ]
    spread = np.std(ratios)
    assert low < value < high
    assert high - low == pytest.approx(2 * 1.96 * spread, rel=0.1)
