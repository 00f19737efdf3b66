"""Linear-chain conditional random field (Lafferty et al. 2001) over the tags of a sentence.

    s(x, y) = a_{y_1} + Σ_t e_{t, y_t} + Σ_t A_{y_t, y_{t+1}} + b_{y_T}
    P(y | x) = exp s(x, y) / Z,   Z = Σ_y exp s(x, y)

e are emissions, A `transitions` (from row to column), a `start_transitions`, b `end_transitions`:
pytorch-crf's names, so weights interchange. All sums over paths stay in logarithms:

    α_1 = e_1,   α_t(j) = e_t(j) + log Σ_i exp(α_{t−1}(i) + A_ij),   log Z = log Σ_j exp α_T(j)

and ∂ log Z / ∂e = P(y_t = j), ∂ log Z / ∂A = Σ_t P(y_t = i, y_{t+1} = j), which forward and
backward sums give together (Rabiner 1989).
"""

from typing import Any, NamedTuple

import torch
from torch import Tensor, nn
from torch.autograd.function import once_differentiable

from unrolled.errors import ConfigError
from unrolled.nn import kernels
from unrolled.nn.rows import seen_rows
from unrolled.nn.shapes import check_dims, check_is_tensor
from unrolled.nn.transforms import is_traced

FORBIDDEN = -10_000.0  # finite: a sentence that no allowed path fits still has a path
NUMBERS_AT_ONCE = 1 << 22  # of pair probabilities that are held at one time


class Moves(NamedTuple):
    """Which tags may follow one another, begin and end a sentence."""

    between: Tensor  # (K, K) bool, from row to column
    first: Tensor  # (K,) bool
    last: Tensor  # (K,) bool


class CRF(nn.Module):
    """Scores of whole tag sequences; what `moves` does not allow never comes out.

    Everywhere emissions are (B, T, K) and lengths (B,), each in 1..T; padding changes nothing.
    """

    def __init__(self, tags: int, *, moves: Moves | None = None) -> None:
        super().__init__()
        self.transitions = nn.Parameter(torch.empty(tags, tags))
        self.start_transitions = nn.Parameter(torch.empty(tags))
        self.end_transitions = nn.Parameter(torch.empty(tags))
        for parameter in self.parameters():
            if not parameter.is_meta:
                nn.init.uniform_(parameter, -0.1, 0.1)
        self.moves = moves

    def summed_nats(self, emissions: Tensor, tags: Tensor, lengths: Tensor) -> Tensor:
        """−log P of the right tags (B, T), summed over the sentences; differentiable once."""
        scores, transitions = self._scores(emissions, lengths)
        total: Tensor = _SummedLogPartition.apply(scores, transitions, lengths)  # type: ignore[no-untyped-call]
        return total - path_scores(scores, transitions, tags, lengths).sum()

    @torch.no_grad()
    def nats(self, emissions: Tensor, tags: Tensor, lengths: Tensor) -> Tensor:
        """−log P of the right tags (B, T) of each sentence: (B,)."""
        scores, transitions = self._scores(emissions, lengths)
        log_z = log_partition(scores, transitions, lengths)
        return log_z - path_scores(scores, transitions, tags, lengths)

    @torch.no_grad()
    def marginals(self, emissions: Tensor, lengths: Tensor) -> Tensor:
        """P(y_t = k | x) for each word: (B, T, K), 0 in the padding."""
        return crf_marginals(*self._scores(emissions, lengths), lengths)[1]

    @torch.no_grad()
    def decode(self, emissions: Tensor, lengths: Tensor) -> tuple[Tensor, Tensor]:
        """The best path of each sentence (B, T), 0 in the padding, and its score (B,)."""
        paths, scores = self.n_best(emissions, lengths, n=1)
        return paths[:, 0], scores[:, 0]

    @torch.no_grad()
    def n_best(self, emissions: Tensor, lengths: Tensor, *, n: int) -> tuple[Tensor, Tensor]:
        """The n best paths (B, n, T), best first, and their scores (B, n).

        Viterbi 1967, with the n best ways into each tag kept. Where a sentence has fewer paths, the
        score is −∞; a path that is not allowed counts as none unless it is the best there is.
        """
        paths, best = n_best_paths(*self._scores(emissions, lengths), lengths, n=n)
        best[:, 1:].masked_fill_(best[:, 1:] < FORBIDDEN / 2, -torch.inf)
        return paths, best

    def _scores(self, emissions: Tensor, lengths: Tensor) -> tuple[Tensor, Tensor]:
        """Emissions with both ends' scores added (B, T, K), transitions with what is forbidden."""
        check_chain(emissions, self.transitions, lengths)
        start: Tensor = self.start_transitions
        end: Tensor = self.end_transitions
        transitions: Tensor = self.transitions
        if self.moves is not None:
            start = torch.where(self.moves.first, start, FORBIDDEN)
            end = torch.where(self.moves.last, end, FORBIDDEN)
            transitions = torch.where(self.moves.between, transitions, FORBIDDEN)
        places = torch.arange(emissions.size(1))  # (T,)
        first = (places == 0).to(emissions.dtype)  # (T,)
        last = (places == lengths[:, None] - 1).to(emissions.dtype)  # (B, T)
        ends = first[:, None] * start + last[:, :, None] * end  # (B, T, K)
        return emissions + ends, transitions


def path_scores(scores: Tensor, transitions: Tensor, tags: Tensor, lengths: Tensor) -> Tensor:
    """s(x, y) of these tags (B, T): (B,) float64, for the sums of long sentences are large."""
    check_is_tensor("tags", tags)
    real = torch.arange(tags.size(1)) < lengths[:, None]  # (B, T)
    here = scores.gather(2, tags[:, :, None])[:, :, 0].masked_fill(~real, 0.0)  # (B, T)
    moves = transitions[tags[:, :-1], tags[:, 1:]].masked_fill(~real[:, 1:], 0.0)  # (B, T-1)
    return here.sum(dim=1, dtype=torch.float64) + moves.sum(dim=1, dtype=torch.float64)


class _SummedLogPartition(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, scores: Tensor, transitions: Tensor, lengths: Tensor) -> Tensor:
        log_z, nodes, edges = crf_marginals(scores, transitions, lengths)
        ctx.save_for_backward(nodes, edges)
        return log_z.sum()

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, Tensor, None]:
        nodes, edges = ctx.saved_tensors
        return grad * nodes, grad * edges, None


@torch.no_grad()
def check_chain(emissions: Tensor, transitions: Tensor, lengths: Tensor) -> None:
    """Refuse scores (B, T, K), moves (K, K) or lengths (B,) that do not fit one another."""
    for name, value in (
        ("emissions", emissions),
        ("transitions", transitions),
        ("lengths", lengths),
    ):
        check_is_tensor(name, value)
    check_dims("emissions", emissions, 3, "(B, T, K)")
    K = emissions.size(2)
    if K == 0:
        raise ConfigError(f"emissions has shape {tuple(emissions.shape)}, but must have tags.")
    if transitions.shape != (K, K):
        raise ConfigError(
            f"transitions is of shape {tuple(transitions.shape)}, but must be ({K}, {K}), for the "
            f"emissions are of {K} tags."
        )
    if lengths.dtype != torch.int64:
        raise ConfigError(f"lengths is of {lengths.dtype}, but must be of torch.int64.")
    if not torch.compiler.is_compiling() and not is_traced():
        seen_rows(emissions, lengths)  # which looks at their values


def crf_marginals(
    emissions: Tensor, transitions: Tensor, lengths: Tensor
) -> tuple[Tensor, Tensor, Tensor]:
    """Sums over all paths of emissions (B, T, K) and transitions (K, K).

    Returns log Z (B,) in float64; P(y_t = j) (B, T, K), 0 in the padding; and
    P(y_t = i, y_{t+1} = j) summed over the steps of all sentences (K, K). None has a gradient.
    """
    check_chain(emissions, transitions, lengths)
    if kernels.can_take(emissions, transitions, lengths):
        return kernels.chain_sums(emissions, transitions, lengths)
    return crf_marginals_by_torch(emissions, transitions, lengths)


@torch.no_grad()
def crf_marginals_by_torch(
    emissions: Tensor, transitions: Tensor, lengths: Tensor
) -> tuple[Tensor, Tensor, Tensor]:
    """The same without kernels, from both ends at once."""
    B, T, _ = emissions.shape
    steps = torch.arange(T)
    mirror = torch.where(steps < lengths[:, None], lengths[:, None] - 1 - steps, steps)  # (B, T)
    rows = torch.arange(B)[:, None]
    both = torch.stack([emissions, emissions[rows, mirror]])  # (2, B, T, K)
    both_ways = torch.stack([transitions, transitions.t()])
    logs, shifts = scan(both.permute(2, 0, 1, 3), both_ways)  # (T, 2, B, K)
    to_here, turned = logs.permute(1, 2, 0, 3)  # (B, T, K) each
    from_here = turned[rows, mirror]  # the sum of all that follows, e_t among it
    padding_mask = (steps >= lengths[:, None])[:, :, None]  # (B, T, 1)
    nodes = (to_here + from_here - emissions).softmax(dim=2).masked_fill_(padding_mask, 0.0)
    edges = _summed_pairs(to_here[:, :-1], from_here[:, 1:], transitions, ~padding_mask[:, 1:, 0])
    return _log_partition(logs[:, 0], shifts[:, 0], lengths), nodes, edges


@torch.no_grad()
def log_partition(emissions: Tensor, transitions: Tensor, lengths: Tensor) -> Tensor:
    """log Z (B,) in float64."""
    check_chain(emissions, transitions, lengths)
    if kernels.can_take(emissions, transitions, lengths):
        return kernels.chain_log_z(emissions, transitions, lengths)
    logs, shifts = scan(emissions.transpose(0, 1)[:, None], transitions[None])
    return _log_partition(logs[:, 0], shifts[:, 0], lengths)


def scan(emissions: Tensor, transitions: Tensor) -> tuple[Tensor, Tensor]:
    """α over time: emissions (T, D, B, K), transitions (D, K, K) -> (T, D, B, K), (T, D, B).

    From each step its largest α is taken off, and told in the second: so numbers stay small and
    exact however long the sentence is.
    """
    into = transitions.transpose(1, 2)[:, None]  # (D, 1, K to, K from)
    logs = torch.empty_like(emissions, memory_format=torch.contiguous_format)
    shifts = logs.new_empty(logs.shape[:3])
    for t, here in enumerate(emissions):
        if t:
            torch.logsumexp(logs[t - 1][:, :, None, :] + into, dim=3, out=logs[t])
            logs[t] += here
        else:
            logs[0] = here
        torch.amax(logs[t], dim=2, out=shifts[t])
        logs[t] -= shifts[t][:, :, None]
    return logs, shifts


def _log_partition(logs: Tensor, shifts: Tensor, lengths: Tensor) -> Tensor:
    """log Z (B,) of what `scan` gives for one direction: (T, B, K) and (T, B)."""
    last = (lengths - 1)[None]  # (1, B)
    shift = shifts.double().cumsum(dim=0).gather(0, last)[0]  # (B,)
    return shift + logs[last[0], torch.arange(logs.size(1))].logsumexp(dim=1)


def _summed_pairs(to_here: Tensor, from_next: Tensor, transitions: Tensor, real: Tensor) -> Tensor:
    """Σ of P(i, j) ∝ exp(to_here_i + A_ij + from_next_j) over all real steps -> (K, K).

    to_here and from_next (B, T-1, K), real (B, T-1).
    """
    total = torch.zeros_like(transitions)
    at_once = max(1, NUMBERS_AT_ONCE // transitions.numel())
    lefts, rights = (torch.split(part[real], at_once) for part in (to_here, from_next))
    for left, right in zip(lefts, rights, strict=True):
        pairs = left[:, :, None] + transitions + right[:, None, :]  # (n, K, K)
        total += pairs.flatten(1).softmax(dim=1).sum(dim=0).view_as(total)
    return total


@torch.no_grad()
def n_best_paths(
    emissions: Tensor, transitions: Tensor, lengths: Tensor, *, n: int
) -> tuple[Tensor, Tensor]:
    """The n best paths (B, n, T) and their scores (B, n); −∞ where there are fewer."""
    check_chain(emissions, transitions, lengths)
    if n == 1 and kernels.can_take(emissions, transitions, lengths):
        paths, best = kernels.chain_best(emissions, transitions, lengths)
        return paths[:, None], best[:, None]
    return n_best_paths_by_torch(emissions, transitions, lengths, n=n)


def n_best_paths_by_torch(
    emissions: Tensor, transitions: Tensor, lengths: Tensor, *, n: int
) -> tuple[Tensor, Tensor]:
    """The same without kernels."""
    B, T, K = emissions.shape
    best = emissions.new_full((B, K, n), -torch.inf)
    best[:, :, 0] = emissions[:, 0]
    into = transitions.t()[None, :, :, None]  # (1, K to, K from, 1)
    last, backs = [best], []
    for t in range(1, T):
        ways = (best[:, None] + into).flatten(2)  # (B, K, K·n)
        best, back = _largest(ways, n)  # (B, K, n)
        best = best + emissions[:, t, :, None]
        last.append(best)
        backs.append(back)
    rows = torch.arange(B)
    ends = torch.stack(last)[lengths - 1, rows]  # (B, K, n)
    scores, place = _largest(ends.flatten(1), n)  # (B, n), places in K·n
    return _walk_back(backs, place, lengths, n), scores


def _walk_back(backs: list[Tensor], place: Tensor, lengths: Tensor, n: int) -> Tensor:
    """From the last places (B, n) of the best paths, tag by tag to the first: (B, n, T)."""
    steps = [torch.zeros_like(place)] * (len(backs) + 1)
    last = place
    for t in range(len(backs), -1, -1):
        if t < len(backs):
            place = backs[t].flatten(1).gather(1, place)
        ended = (t >= lengths - 1)[:, None]  # (B, 1) the path begins here, or later
        place = torch.where(ended, last, place)
        steps[t] = torch.where((t < lengths)[:, None], place // n, 0)
    return torch.stack(steps, dim=2)


def _largest(values: Tensor, n: int) -> tuple[Tensor, Tensor]:
    """The n largest of the last dimension and where they stand; −∞ fills up."""
    if n == 1:
        return values.max(dim=-1, keepdim=True)
    size = values.size(-1)
    best, place = values.topk(min(n, size), dim=-1)
    if n > size:
        fill = (0, n - size)
        best = nn.functional.pad(best, fill, value=-torch.inf)
        place = nn.functional.pad(place, fill)
    return best, place
