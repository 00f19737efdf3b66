"""When torch does more with a call than run it: where the kernels must step aside, or refuse.

Kernels are given addresses. Whatever follows a computation from operator to operator does not see
what they do, so there torch's own operators run instead: tracing, autocast, the transforms of
`torch.func` and forward-mode derivatives. torch.compile has an operator of its own, nn/compiled.py.
"""

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import torch
from torch import Tensor, nn
from torch.autograd import forward_ad

TWICE = (
    "The kernels give first derivatives only, and here one of theirs is differentiated again. "
    "Run the layers that need it within `with unrolled.nn.reference():`, which is slower."
)


def is_ordinary(tensors: Iterable[Tensor]) -> bool:
    """Whether torch just runs the call, on plain tensors: not fake, wrapped or of a subclass."""
    followed = (
        torch.compiler.is_exporting()
        or torch._C._get_tracing_state() is not None
        or torch.is_autocast_enabled("cpu")
        or torch._C._are_functorch_transforms_active()
        or forward_ad._current_level >= 0
    )
    return not followed and all(type(t) in (Tensor, nn.Parameter) for t in tensors)


def differentiable_once(
    gradients: Callable[[], list[Tensor | None]], inputs: Sequence[Tensor | None]
) -> Sequence[Tensor | None]:
    """What `gradients` makes of the inputs; whoever differentiates it again is told TWICE.

    torch's `once_differentiable` does so only where the gradients that came in are differentiable
    themselves; where they are constants, second derivatives pass as zero.
    """
    if not torch.is_grad_enabled():  # nobody can
        return gradients()
    return _Refusal.apply(gradients, *inputs)  # type: ignore[no-any-return, no-untyped-call]


class _Refusal(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, gradients: Callable[[], list[Tensor | None]], *inputs: Tensor | None
    ) -> tuple[Tensor | None, ...]:
        return tuple(None if t is None else t.view_as(t) for t in gradients())

    @staticmethod
    def backward(ctx: Any, *upstream: Tensor | None) -> None:
        raise RuntimeError(TWICE)
