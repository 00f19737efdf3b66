"""The CRF against enumeration of all paths, finite differences and pytorch-crf.

Every test runs on the kernels and on torch's operators.
"""

from itertools import pairwise, product

import pytest
import torch
from networks import numeric_gradient, relative_error
from torch import Tensor

from unrolled.nn import kernels
from unrolled.nn.crf import (
    CRF,
    Moves,
    crf_marginals,
    crf_marginals_by_torch,
    log_partition,
    n_best_paths,
)

pytestmark = pytest.mark.arithmetic

LENGTHS = torch.tensor([4, 1, 3])


@pytest.fixture(autouse=True, params=["kernels", "torch"])
def way(request, monkeypatch) -> None:
    if request.param == "torch":
        monkeypatch.setattr(kernels, "can_take", lambda *tensors: False)


def crf_of(tags: int, *, moves: Moves | None = None, spread: float = 1.0) -> CRF:
    crf = CRF(tags, moves=moves).double()
    with torch.no_grad():
        for parameter in crf.parameters():
            parameter.normal_(0.0, spread)
    return crf


def example(tags: int = 3, *, spread: float = 1.0) -> tuple[CRF, Tensor, Tensor]:
    """A random CRF, emissions (3, 4, K) with rubbish in the padding, and tags."""
    torch.manual_seed(0)
    emissions = spread * torch.randn(3, 4, tags, dtype=torch.float64)
    return crf_of(tags, spread=spread), emissions, torch.randint(tags, (3, 4))


def all_paths(crf: CRF, emissions: Tensor) -> tuple[list[tuple[int, ...]], Tensor]:
    """Every path of one sentence (T, K), and its score by the definition."""
    T, K = emissions.shape
    paths = list(product(range(K), repeat=T))
    scores = [path_score(crf, emissions, torch.tensor(path)) for path in paths]
    return paths, torch.stack(scores)


def path_score(crf: CRF, emissions: Tensor, path: Tensor) -> Tensor:
    """Of one sentence (T, K) and its tags (T,), by the definition."""
    ends = crf.start_transitions[path[0]] + crf.end_transitions[path[-1]]
    between = crf.transitions[path[:-1], path[1:]].sum()
    return ends + emissions[torch.arange(len(path)), path].sum() + between


def sentences(emissions: Tensor):
    return [(row, emissions[row, :n]) for row, n in enumerate(LENGTHS.tolist())]


def test_nats_are_those_of_all_paths():
    crf, emissions, tags = example()
    nats = crf.nats(emissions, tags, LENGTHS)
    for row, real in sentences(emissions):
        paths, scores = all_paths(crf, real)
        right = paths.index(tuple(tags[row, : len(real)].tolist()))
        expected = (scores.logsumexp(0) - scores[right]).detach()
        torch.testing.assert_close(nats[row], expected, rtol=1e-12, atol=1e-12)
    summed = crf.summed_nats(emissions, tags, LENGTHS)
    torch.testing.assert_close(summed, nats.sum(), rtol=1e-12, atol=1e-12)


def test_marginals_are_those_of_all_paths():
    crf, emissions, _ = example()
    found = crf.marginals(emissions, LENGTHS)
    for row, real in sentences(emissions):
        paths, scores = all_paths(crf, real)
        expected = torch.zeros_like(emissions[row])
        for path, p in zip(paths, scores.softmax(0).detach(), strict=True):
            expected[range(len(path)), list(path)] += p
        torch.testing.assert_close(found[row], expected, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("n", [1, 2, 5, 40])
def test_the_best_paths_are_those_of_all_paths(n):
    crf, emissions, _ = example()
    found, scores = crf.n_best(emissions, LENGTHS, n=n)
    assert found.shape == (3, n, 4)
    for row, real in sentences(emissions):
        paths, all_scores = all_paths(crf, real)
        order = all_scores.argsort(descending=True)[:n].tolist()
        count = len(order)
        assert [tuple(path[: len(real)]) for path in found[row, :count].tolist()] == [
            paths[i] for i in order
        ]
        torch.testing.assert_close(
            scores[row, :count], all_scores[order].detach(), rtol=0, atol=1e-12
        )
        assert bool((scores[row, count:] == -torch.inf).all())
        assert bool((found[row, :count, len(real) :] == 0).all())


def test_one_best_is_the_first_of_n():
    crf, emissions, _ = example(7)
    path, score = crf.decode(emissions, LENGTHS)
    paths, scores = crf.n_best(emissions, LENGTHS, n=3)
    assert torch.equal(path, paths[:, 0])
    assert torch.equal(score, scores[:, 0])


def test_gradients_are_those_of_finite_differences():
    crf, emissions, tags = example()
    emissions.requires_grad_(True)

    def loss() -> Tensor:
        return 0.7 * crf.summed_nats(emissions, tags, LENGTHS)

    loss().backward()
    for name, value in [("emissions", emissions), *crf.named_parameters()]:
        found = relative_error(value.grad, numeric_gradient(loss, value.data))
        assert found < 1e-8, name
    real = torch.arange(4) < LENGTHS[:, None]
    assert bool((emissions.grad[~real] == 0).all())


def test_padding_changes_no_number_and_no_gradient():
    crf, emissions, tags = example()
    real = torch.arange(4) < LENGTHS[:, None]
    results = []
    for rubbish in (0.0, 1e6):
        crf.zero_grad()
        filled = emissions.masked_fill(~real[:, :, None], rubbish).requires_grad_(True)
        nats = crf.summed_nats(filled, tags, LENGTHS)
        nats.backward()
        gradients = [parameter.grad.clone() for parameter in crf.parameters()]
        results.append([nats, filled.grad, *gradients, *crf.decode(filled, LENGTHS)])
    for first, second in zip(*results, strict=True):
        assert torch.equal(first, second)


def test_numbers_far_apart_stay_finite_and_right():
    crf, emissions, tags = example(3, spread=300.0)
    nats = crf.nats(emissions, tags, LENGTHS)
    for row, real in sentences(emissions):
        paths, scores = all_paths(crf, real)
        right = paths.index(tuple(tags[row, : len(real)].tolist()))
        expected = (scores.logsumexp(0) - scores[right]).detach()
        torch.testing.assert_close(nats[row], expected, rtol=1e-11, atol=1e-9)
    single = crf.float().summed_nats(emissions.float(), tags, LENGTHS)
    torch.testing.assert_close(single, nats.sum(), rtol=1e-6, atol=0)


# ------------------------------------------------------------------ moves

FEW = Moves(
    between=torch.tensor([[True, True, False], [False, False, True], [True, True, False]]),
    first=torch.tensor([True, True, False]),
    last=torch.tensor([True, False, True]),
)


def allowed(path: tuple[int, ...]) -> bool:
    moves = all(bool(FEW.between[a, b]) for a, b in pairwise(path))
    return bool(FEW.first[path[0]] and FEW.last[path[-1]]) and moves


def test_what_is_forbidden_has_no_share_in_any_sum():
    torch.manual_seed(1)
    crf, emissions = crf_of(3, moves=FEW), torch.randn(3, 4, 3, dtype=torch.float64)
    marginals = crf.marginals(emissions, LENGTHS)
    found, best = crf.n_best(emissions, LENGTHS, n=30)
    for row, real in sentences(emissions):
        paths, scores = all_paths(crf, real)
        kept = [i for i, path in enumerate(paths) if allowed(path)]
        expected = torch.zeros_like(emissions[row])
        for i, p in zip(kept, scores[kept].softmax(0).detach(), strict=True):
            expected[range(len(real)), list(paths[i])] += p
        torch.testing.assert_close(marginals[row], expected, rtol=1e-12, atol=1e-12)
        assert int((best[row] > -torch.inf).sum()) == len(kept)
        listed = [tuple(path[: len(real)]) for path in found[row, : len(kept)].tolist()]
        assert set(listed) == {paths[i] for i in kept}


def test_a_forbidden_move_is_never_learned():
    torch.manual_seed(1)
    crf, emissions = crf_of(3, moves=FEW), torch.randn(3, 4, 3, dtype=torch.float64)
    tags = torch.tensor([[0, 1, 2, 0], [0, 0, 0, 0], [1, 2, 0, 0]])
    crf.summed_nats(emissions, tags, LENGTHS).backward()
    assert bool((crf.transitions.grad[~FEW.between] == 0).all())
    assert bool((crf.transitions.grad[FEW.between] != 0).all())
    assert crf.start_transitions.grad[2] == 0
    assert crf.end_transitions.grad[1] == 0


def test_a_sentence_that_no_allowed_path_fits_still_has_a_path():
    moves = Moves(torch.zeros(2, 2).bool(), torch.ones(2).bool(), torch.ones(2).bool())
    crf = crf_of(2, moves=moves)
    emissions = torch.tensor([[[5.0, 0.0], [0.0, 5.0]]], dtype=torch.float64)
    path, score = crf.decode(emissions, torch.tensor([2]))
    assert path.tolist() == [[0, 1]]
    assert score.isfinite()
    assert bool(crf.nats(emissions, path, torch.tensor([2])).isfinite())


# ------------------------------------------------------------------ beyond small sizes


def test_a_long_sentence_in_float32():
    torch.manual_seed(0)
    double, lengths = crf_of(5), torch.tensor([3_000])
    single = CRF(5)
    single.load_state_dict(double.state_dict())
    emissions, tags = torch.randn(1, 3_000, 5), torch.randint(5, (1, 3_000))
    path, _ = single.decode(emissions, lengths)
    _, best = double.decode(emissions.double(), lengths)
    found = path_score(double, emissions[0].double(), path[0])  # where two paths are nearly as good
    torch.testing.assert_close(found, best[0], rtol=1e-6, atol=0)
    nats = single.nats(emissions, tags, lengths)
    expected = double.nats(emissions.double(), tags, lengths)
    torch.testing.assert_close(nats, expected, rtol=1e-6, atol=0)
    found = single.marginals(emissions, lengths).double()
    expected = double.marginals(emissions.double(), lengths)
    torch.testing.assert_close(found, expected, rtol=0, atol=1e-5)


def test_pairs_are_summed_in_pieces_alike(monkeypatch):
    crf, emissions, _ = example(4)
    transitions = crf.transitions.detach()
    whole = crf_marginals_by_torch(emissions, transitions, LENGTHS)
    monkeypatch.setattr("unrolled.nn.crf.NUMBERS_AT_ONCE", 33)
    pieces = crf_marginals_by_torch(emissions, transitions, LENGTHS)
    for first, second in zip(whole, pieces, strict=True):
        torch.testing.assert_close(first, second, rtol=1e-14, atol=1e-14)
    assert whole[2].sum() == pytest.approx(int((LENGTHS - 1).sum()), abs=1e-12)


def test_paths_without_ends_and_with_ties():
    emissions = torch.zeros(1, 3, 2)
    paths, scores = n_best_paths(emissions, torch.zeros(2, 2), torch.tensor([3]), n=8)
    assert sorted(map(tuple, paths[0].tolist())) == list(product(range(2), repeat=3))
    assert bool((scores == 0).all())


def test_layouts_in_memory_and_no_sentences():
    crf, scores, _ = example(5)
    moves, lengths = crf.transitions.detach(), LENGTHS
    turned = scores.transpose(0, 1).contiguous().transpose(0, 1)
    spread = torch.stack([lengths, lengths], dim=1)[:, 0]
    expected = crf_marginals(scores, moves, lengths)
    found = crf_marginals(turned, moves.t().contiguous().t(), spread)
    torch.testing.assert_close(found, expected, rtol=0, atol=1e-13)
    none = scores[:0], moves, lengths[:0]
    assert [t.shape for t in crf_marginals(*none)] == [(0,), (0, 4, 5), (5, 5)]
    assert not crf_marginals(*none)[2].any()
    assert n_best_paths(*none, n=1)[0].shape == (0, 1, 4)


def test_a_number_that_is_none_shows():
    crf, scores, _ = example()
    scores[2, 0, 1] = torch.nan
    log_z = log_partition(scores, crf.transitions.detach(), LENGTHS)
    assert log_z.isnan().nonzero().flatten().tolist() == [2]


# ------------------------------------------------------------------ the peer


def test_equals_pytorch_crf():
    torchcrf = pytest.importorskip("torchcrf")
    torch.manual_seed(2)
    B, T, K = 12, 17, 9
    emissions = torch.randn(B, T, K, dtype=torch.float64, requires_grad=True)
    lengths, tags = torch.randint(1, T + 1, (B,)), torch.randint(K, (B, T))
    ours, peer = crf_of(K), torchcrf.CRF(K, batch_first=True).double()
    peer.load_state_dict(ours.state_dict())
    mask = torch.arange(T) < lengths[:, None]
    nats = ours.summed_nats(emissions, tags, lengths)
    expected = -peer(emissions, tags, mask=mask, reduction="sum")
    torch.testing.assert_close(nats, expected, rtol=1e-12, atol=0)
    pairs = zip(
        ours.parameters(),
        [dict(peer.named_parameters())[n] for n, _ in ours.named_parameters()],
        strict=True,
    )
    mine = torch.autograd.grad(nats, [emissions, *ours.parameters()])
    theirs = torch.autograd.grad(expected, [emissions, *(p for _, p in pairs)])
    for first, second in zip(mine, theirs, strict=True):
        torch.testing.assert_close(first, second, rtol=1e-9, atol=1e-11)
    paths = ours.decode(emissions, lengths)[0].tolist()
    found = [path[:n] for path, n in zip(paths, lengths.tolist(), strict=True)]
    assert found == peer.decode(emissions, mask=mask)
