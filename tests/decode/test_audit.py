import numpy as np
import pytest
import torch

from unrolled.decode.audit import Audit, Scored, audit, verdict
from unrolled.decode.hypothesis import normalised
from unrolled.errors import ConfigError

pytestmark = pytest.mark.arithmetic


@pytest.mark.row("J7", "M9")
def test_the_printed_example_blames_the_model():
    assert verdict(7.21e-8, 1.09e-7) == "model"
    assert verdict(1.09e-7, 7.21e-8) == "search"
    assert verdict(1.09e-7, 1.09e-7) == "model"  # the search could not tell them apart


def scored(log_p, lengths):
    return Scored(np.array(log_p), np.array(lengths))


def test_shares_count_every_sentence_once():
    reference = scored([-4.0, -4.0, -2.0, -9.0, -4.0], [4] * 5)
    output = scored([-4.0, -3.0, -3.0, -8.0, -4.0], [4] * 5)
    right = np.array([True, False, False, False, False])
    assert audit(reference, output, right) == Audit(0.2, 0.6, 0.2, 5)


@pytest.mark.row("M9")
def test_both_sides_are_normalised_by_length():
    reference, output = scored([-6.0], [6]), scored([-4.0], [2])
    wrong = np.array([False])
    assert audit(reference, output, wrong, alpha=0.0).model == 1.0
    assert audit(reference, output, wrong, alpha=1.0).search == 1.0  # −1 a token against −2


@pytest.mark.parametrize(
    ("right", "message"),
    [
        ([True], "columns of 1, 2 sentences, but needs one reference and one output for each"),
        ([], "columns of 0, 2 sentences"),
    ],
)
def test_columns_of_unequal_length_are_refused(right, message):
    two = scored([-1.0, -2.0], [1, 2])
    with pytest.raises(ConfigError, match=message):
        audit(two, two, np.array(right, dtype=bool))


def test_nothing_to_audit_is_refused():
    nothing = scored([], [])
    with pytest.raises(ConfigError, match="columns of 0 sentences"):
        audit(nothing, nothing, np.array([], dtype=bool))


@pytest.mark.row("M5")
def test_numbers_arrays_and_tensors_are_normalised_alike():
    log_p, lengths = [-1.0, -12.5, -3000.0], [1, 7, 1234]
    for alpha in (0.0, 0.7, 1.0):
        wanted = [p / n**alpha for p, n in zip(log_p, lengths, strict=True)]
        numbers = [normalised(p, n, alpha) for p, n in zip(log_p, lengths, strict=True)]
        arrays = normalised(np.array(log_p), np.array(lengths), alpha)
        tensors = normalised(torch.tensor(log_p, dtype=torch.float64), torch.tensor(lengths), alpha)
        assert numbers == wanted
        assert arrays.tolist() == pytest.approx(wanted, rel=1e-15)
        assert tensors.tolist() == pytest.approx(wanted, rel=1e-15)
