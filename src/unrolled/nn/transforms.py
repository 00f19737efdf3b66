"""When torch does more with a call than run it, and the kernels must step aside or be an operator.

Kernels are given addresses. Whatever follows a computation from operator to operator does not see
what they do. Where a graph is made, or a dispatch mode looks on, they run as an operator of
torch's (nn/compiled.py). Under autocast, the transforms of `torch.func` and forward-mode
derivatives, torch's own operators run instead.
"""

from collections.abc import Iterable

import torch
from torch import Tensor, nn
from torch.autograd import forward_ad


def in_graph() -> bool:
    """Whether operators are written down, or looked at by a dispatch mode."""
    return torch.compiler.is_compiling() or is_kept() or is_watched()


def is_compiled() -> bool:
    """Whether torch.compile writes operators down, to run them, and their derivatives, itself."""
    return torch.compiler.is_compiling() and not torch.compiler.is_exporting()


def is_watched() -> bool:
    """Whether a dispatch mode looks at every operator."""
    return torch._C._len_torch_dispatch_stack() > 0


def is_kept() -> bool:
    """Whether the graph is to outlive this program: best of torch's own operators."""
    return torch.compiler.is_exporting() or is_traced()


def is_traced() -> bool:
    """Whether torch.jit.trace writes down what runs."""
    return torch._C._get_tracing_state() is not None


def is_transformed() -> bool:
    """Whether a transform of `torch.func` or a forward-mode derivative is under way."""
    return torch._C._are_functorch_transforms_active() or forward_ad._current_level >= 0


def is_batched(tensor: Tensor) -> bool:
    """Whether a tensor stands for many, as gradients of many losses at once do."""
    functorch = torch._C._functorch
    return functorch.is_batchedtensor(tensor) or functorch.is_legacy_batchedtensor(tensor)


def is_cast() -> bool:
    """Whether torch chooses the types of what operators compute with."""
    return torch.is_autocast_enabled("cpu")


def is_followed() -> bool:
    """Whether torch does more with a call than run it."""
    return in_graph() or is_cast() or is_transformed()


def is_ordinary(tensors: Iterable[Tensor]) -> bool:
    """Whether torch just runs the call, on plain tensors: not fake, wrapped or of a subclass."""
    return not is_followed() and all(
        type(t) in (Tensor, nn.Parameter) and torch._C._has_storage(t) for t in tensors
    )
