"""The best of many candidates, exactly: equal ones in the order of their index.

A search over K·V candidates wants few of them. Most of the work is one pass that takes the largest
of every 64 neighbours; what is wanted lies in the best of these groups, as many as are wanted.
"""

import math
from typing import NamedTuple

import torch
from torch import Tensor

from unrolled.decode.hypothesis import not_a_number

GROUP = 64


class Candidates(NamedTuple):
    """Next tokens of some hypotheses, best first; each (B, count)."""

    parents: Tensor  # the hypothesis that each continues, in 0..K − 1
    tokens: Tensor
    log_p: Tensor  # of the token alone; −inf where there are fewer than `count`


def best_candidates(log_p: Tensor, before: Tensor, count: int) -> Candidates:
    """The `count` best sums of before (B, K) and log_p (B·K, V), of all K·V in each row of B.

    Of equal sums the lower parent comes first, then the lower token.
    """
    (B, K), V = before.shape, log_p.size(1)
    largest = _group_maxima(log_p).view(B, K, -1)  # (B, K, G)
    G = largest.size(2)
    groups = first_largest((largest + before[:, :, None]).flatten(1), min(count, K * G))
    rows, starts = groups // G, groups % G * GROUP  # (B, C)
    tokens = starts[:, :, None] + torch.arange(GROUP)  # (B, C, 64)
    parents = rows[:, :, None].expand_as(tokens)
    at = (torch.arange(B)[:, None, None] * K + parents) * V + tokens
    own = log_p.take(at.clamp(max=log_p.numel() - 1)).masked_fill(tokens >= V, -math.inf)
    total = (own + before.gather(1, rows)[:, :, None]).flatten(1)  # (B, C · 64)
    chosen = first_largest(total, count)  # (B, count), in the order of the index
    order = total.gather(1, chosen).sort(dim=1, descending=True, stable=True).indices
    chosen = chosen.gather(1, order)
    parents, tokens, own = (x.flatten(1).gather(1, chosen) for x in (parents, tokens, own))
    return Candidates(parents, tokens.clamp(max=V - 1), own)


def first_largest(values: Tensor, count: int) -> Tensor:
    """Places of the `count` largest in each row (B, C) -> (B, count), in ascending order.

    Where several are equal and not all fit, the first are taken.
    """
    if bool(values.isnan().any()):
        raise not_a_number()
    least = values.topk(count).values[:, -1:]  # (B, 1)
    above, level = values > least, values == least
    room = count - above.sum(dim=1, keepdim=True)
    taken = above | (level & (level.cumsum(dim=1) <= room))
    return taken.nonzero()[:, 1].view(-1, count)


def likeliest(log_p: Tensor) -> Tensor:
    """The place of the largest in each row (N, V) -> (N,), the first of equal ones.

    What argmax gives: the groups make it several times faster for a large vocabulary.
    """
    group = _group_maxima(log_p).argmax(dim=1, keepdim=True)  # (N, 1)
    places = (group * GROUP + torch.arange(GROUP)).clamp(max=log_p.size(1) - 1)  # (N, 64)
    inside = log_p.gather(1, places).argmax(dim=1, keepdim=True)  # (N, 1)
    return places.gather(1, inside)[:, 0]


def _group_maxima(log_p: Tensor) -> Tensor:
    """The largest of every 64 neighbours in a row, of fewer in the last group: (N, V) -> (N, G)."""
    N, V = log_p.shape
    whole = V // GROUP * GROUP
    largest = log_p[:, :whole].view(N, V // GROUP, GROUP).amax(dim=2)  # (N, V // 64)
    if whole == V:
        return largest
    return torch.cat([largest, log_p[:, whole:].amax(dim=1, keepdim=True)], dim=1)
