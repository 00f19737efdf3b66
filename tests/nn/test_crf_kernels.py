"""The kernels of the chain over tags against torch's operators, whatever the instruction set."""

import pytest
import torch
from kernel_checks import SETS, instructions, needs_kernels, same_bits, threads
from torch import Tensor

from unrolled.errors import ConfigError
from unrolled.nn import kernels
from unrolled.nn.crf import crf_marginals_by_torch, n_best_paths_by_torch

pytestmark = [needs_kernels, pytest.mark.arithmetic]

SIZES = [1, 2, 3, 7, 8, 15, 16, 17, 33, 65]


def batch(K: int, dtype: torch.dtype) -> tuple[Tensor, Tensor, Tensor]:
    """Scores (20, 9, K), NaN in the padding, moves (K, K) with one that is forbidden, lengths."""
    torch.manual_seed(K)
    lengths = torch.randint(1, 10, (20,))
    scores = 3.0 * torch.randn(20, 9, K, dtype=dtype)
    scores[torch.arange(9) >= lengths[:, None]] = torch.nan
    moves = torch.randn(K, K, dtype=dtype)
    moves[0, -1] = -10_000.0
    return scores, moves, lengths


@pytest.mark.parametrize("K", SIZES)
@pytest.mark.parametrize("name", SETS)
def test_every_instruction_set_sums_as_torch_does(name, K):
    for dtype, allowed in ((torch.float32, 1e-6), (torch.float64, 1e-14)):
        scores, moves, lengths = batch(K, dtype)
        clean = scores.nan_to_num(0.0).double()
        expected = crf_marginals_by_torch(clean, moves.double(), lengths)
        with instructions(name):
            found = kernels.chain_sums(scores, moves, lengths)
            alone = kernels.chain_log_z(scores, moves, lengths)
        assert torch.equal(alone, found[0])
        for mine, theirs in zip(found, expected, strict=True):
            scale = theirs.abs().max() + 1e-300
            assert float((mine.double() - theirs).abs().max() / scale) < allowed


@pytest.mark.parametrize("K", SIZES)
@pytest.mark.parametrize("name", SETS)
def test_every_instruction_set_finds_torch_s_best_path(name, K):
    for dtype in (torch.float32, torch.float64):
        scores, moves, lengths = batch(K, dtype)
        paths, best = n_best_paths_by_torch(scores.nan_to_num(0.0), moves, lengths, n=1)
        with instructions(name):
            found, score = kernels.chain_best(scores, moves, lengths)
        assert torch.equal(found, paths[:, 0])
        assert torch.equal(score, best[:, 0])  # the same sums in the same order


def test_sums_have_the_same_bits_for_any_number_of_threads():
    call = batch(17, torch.float32)
    results = []
    for count in (1, 2, 3):
        with threads(count):
            results.append([*kernels.chain_sums(*call), *kernels.chain_best(*call)])
    assert same_bits(results[0], results[1])
    assert same_bits(results[0], results[2])


def test_of_equal_paths_the_first_is_the_best():
    paths, _ = kernels.chain_best(torch.zeros(2, 5, 19), torch.zeros(19, 19), torch.tensor([5, 2]))
    assert not paths.any()


@pytest.mark.parametrize("wrong", [0, 10, -1])
def test_lengths_that_no_sentence_has_are_refused(wrong):
    scores, moves, lengths = batch(3, torch.float32)
    lengths[4] = wrong
    for call in (kernels.chain_sums, kernels.chain_log_z, kernels.chain_best):
        with pytest.raises(ConfigError, match=rf"lengths\[4\] is {wrong}, but must be in 1..9"):
            call(scores, moves, lengths)


def test_sizes_that_do_not_fit_are_refused():
    scores, moves, lengths = batch(3, torch.float32)
    with pytest.raises(ConfigError, match=r"transitions is of shape \(2, 2\), .* \(3, 3\)"):
        kernels.chain_best(scores, moves[:2, :2], lengths)
    with pytest.raises(ConfigError, match=r"must be integers of shape \(20,\)"):
        kernels.chain_sums(scores, moves, lengths[:3])
