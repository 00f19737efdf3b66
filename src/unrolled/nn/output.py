"""The softmax over the vocabulary, and its cross-entropy.

Row by row, with z = W h + b and the right token y:

    nats = −log softmax(z)_y = log Σ_v exp(z_v) − z_y
    ∂nats/∂z = softmax(z) − one_hot(y)

Label smoothing ε puts (1 − ε) one_hot(y) + ε / V in the place of one_hot(y), so that the target is
never wholly certain (Szegedy et al. 2016, arXiv:1512.00567, section 7).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from unrolled.errors import ConfigError
from unrolled.nn import kernels
from unrolled.nn.shapes import check_dims, check_is_tensor, have_shapes, listed

ROWS_AT_ONCE = 256  # without gradients: bounds the memory that scores of long texts need


@dataclass(frozen=True)
class Loss:
    """What a model says of a batch; means are exact over batches since sums and counts add up."""

    total: Tensor  # summed over the predictions, a scalar
    count: int  # how many were summed
    carry: tuple[Tensor, ...] | None  # the detached last state if the next batch continues this one


@torch.no_grad()
def begin_with_shares(bias: Tensor, counts: Sequence[int]) -> None:
    """Let a softmax that has learned nothing give each token its share of the training text.

    b = log((n + 1) / Σ (n + 1)); from b = 0 the first hundreds of steps would go into learning it.
    """
    shares = torch.tensor(counts, dtype=torch.float64) + 1.0  # (V,)
    bias.copy_((shares / shares.sum()).log())


def summed_nats(
    hidden: Tensor, weight: Tensor, bias: Tensor, targets: Tensor, *, smoothing: float = 0.0
) -> Tensor:
    """Cross-entropy of all rows together, as a scalar that can be differentiated once.

    hidden (N, H), weight (V, H), bias (V,), targets (N,). One (N, V) array serves as logits, as
    probabilities and as their gradient: an ordinary log-softmax makes three.
    """
    _check(hidden, weight, bias, targets)
    total: Tensor = _SummedNats.apply(  # type: ignore[no-untyped-call]
        hidden, weight, bias, targets, smoothing
    )
    return total


@torch.no_grad()
def token_nats(hidden: Tensor, weight: Tensor, bias: Tensor, targets: Tensor) -> Tensor:
    """Cross-entropy of each row (N,), without gradients and with bounded memory."""
    _check(hidden, weight, bias, targets)
    nats = hidden.new_empty(len(targets))
    for start in range(0, len(targets), ROWS_AT_ONCE):
        rows = slice(start, start + ROWS_AT_ONCE)
        z = torch.addmm(bias, hidden[rows], weight.t())  # (n, V)
        nats[rows] = z.logsumexp(dim=1) - z.gather(1, targets[rows, None])[:, 0]
    return nats


def _check(hidden: Tensor, weight: Tensor, bias: Tensor, targets: Tensor) -> None:
    """Refuse what is not of the shapes that summed_nats names."""
    names = ("hidden", "weight", "bias", "targets")
    given = (hidden, weight, bias, targets)
    for name, value in zip(names, given, strict=True):
        check_is_tensor(name, value)
    check_dims("hidden", hidden, 2, "(N, H)")
    check_dims("weight", weight, 2, "(V, H)")
    (N, H), V = hidden.shape, weight.size(0)
    if not have_shapes(given, [(N, H), (V, H), (V,), (N,)]):
        raise ConfigError(
            f"hidden, weight, bias and targets have the shapes {listed(t.shape for t in given)}, "
            f"but must have ({N}, {H}), (V, {H}), (V,) and ({N},)."
        )


def _softmax_cross_entropy_(z: Tensor, bias: Tensor, targets: Tensor, smoothing: float) -> Tensor:
    """What kernels.softmax_cross_entropy_ does, with torch."""
    wanted = targets[:, None]  # (N, 1)
    top = z.add_(bias).amax(dim=1, keepdim=True)  # (N, 1)
    right = z.gather(1, wanted) - top  # (N, 1)
    if smoothing:
        evenly = z.mean(dim=1, keepdim=True) - top  # (N, 1)
        right = (1.0 - smoothing) * right + smoothing * evenly
    sums = z.sub_(top).exp_().sum(dim=1, keepdim=True)  # (N, 1)
    z.mul_(sums.reciprocal())  # softmax(z)
    if smoothing:
        z.sub_(smoothing / z.size(1))
    z.scatter_add_(1, wanted, z.new_full((1, 1), smoothing - 1.0).expand_as(wanted))
    return (sums.log() - right)[:, 0]


class _SummedNats(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any,
        hidden: Tensor,
        weight: Tensor,
        bias: Tensor,
        targets: Tensor,
        smoothing: float,
    ) -> Tensor:
        z = hidden @ weight.t()  # (N, V)
        takes = kernels.can_take(z, bias, targets)
        cross_entropy_ = kernels.softmax_cross_entropy_ if takes else _softmax_cross_entropy_
        total = cross_entropy_(z, bias, targets, smoothing).sum()
        ctx.save_for_backward(z, hidden, weight)
        return total

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        slope, hidden, weight = ctx.saved_tensors
        scale = grad.item()  # folded into the products, which saves a pass over (V, H)
        nothing = slope.new_zeros(())
        for_hidden = torch.addmm(nothing, slope, weight, beta=0, alpha=scale)  # (N, H)
        for_weight = torch.addmm(nothing, slope.t(), hidden, beta=0, alpha=scale)  # (V, H)
        return for_hidden, for_weight, slope.sum(dim=0).mul_(scale), None, None
