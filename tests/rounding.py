"""Another machine's rounding: torch's own arithmetic moved by up to one unit in the last place.

No switch makes one maker's matrix product sum as another's does. So within `Rounding` the results
of products, sums, exponentials, sigmoids and hyperbolic tangents are nudged: a test that holds only
because two calls of a library happened to agree here then fails on any machine.

A nudge is a pure function of seed, operator, shape, position and value: the same call gives the
same bits, so a resumed run still ends as an undisturbed one. What every machine computes exactly
stays as it is: whole numbers and halves, such as 0, 1 and a sigmoid of 0. The nudges reach neither
subprocesses nor other threads nor the compiled kernels, only what torch's operators compute.
"""

from collections.abc import Sequence
from contextlib import AbstractContextManager
from functools import cache
from math import prod
from typing import Any
from unittest.mock import patch
from zlib import crc32

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode

from unrolled.nn import transforms

PRODUCTS = {"mm", "addmm", "bmm", "baddbmm", "addbmm", "mv", "addmv", "dot", "vdot", "addr"}
PRODUCTS |= {"mkldnn_rnn_layer", "mkldnn_rnn_layer_backward", "_addmm_activation"}
EXPONENTIALS = {"exp", "expm1", "sigmoid", "tanh", "_softmax", "_log_softmax", "logsumexp"}
EXPONENTIALS |= {"log_sigmoid_forward", "softplus"}
SUMS = {"sum", "mean", "linalg_vector_norm"}
NUDGED = PRODUCTS | EXPONENTIALS | SUMS

BITS = {torch.float32: np.int32, torch.float64: np.int64}
FACTORS = [np.uint64(n) for n in (0x2545F4914F6CDD1D, 0x369DEA0F31A53F85, 0x5851F42D4C957F2D)]


def unseen() -> AbstractContextManager[object]:
    """Within it, layers run as if no mode of this kind looked on: their own code is not nudged."""
    return patch.object(transforms, "is_watched", lambda: torch._C._len_torch_dispatch_stack() > 1)


class Rounding(TorchDispatchMode):
    """Within it, what torch computes is rounded as some other machine might."""

    def __init__(self, seed: int) -> None:
        super().__init__()
        self.seed = seed
        self.count = 0  # of nudged results

    def __torch_dispatch__(
        self, func: Any, types: Any, args: Sequence[Any] = (), kwargs: Any = None
    ) -> Any:
        kwargs = kwargs or {}
        key = torch._C.DispatchKey.CompositeImplicitAutograd
        if torch.is_inference_mode_enabled() and func.has_kernel_for_dispatch_key(key):
            with self:  # there torch has not taken it apart yet: aten.linear is a product too
                return func.decompose(*args, **kwargs)
        result = func(*args, **kwargs)
        name = func.overloadpacket.__name__
        if name.rstrip("_") in NUDGED:
            for part in result if isinstance(result, tuple | list) else [result]:
                self._nudge(part, name.rstrip("_"))
        return result

    def _nudge(self, result: Tensor | None, name: str) -> None:
        if result is None or result.dtype not in BITS or not result.numel() or result.is_meta:
            return
        self.count += 1
        with torch.no_grad():
            result.copy_(nudge(result, self.seed ^ crc32(f"{name}{tuple(result.shape)}".encode())))


def nudge(values: Tensor, seed: int) -> Tensor:
    """Each value one unit in the last place up, down or where it is."""
    given = np.asarray(values.detach().numpy(), order="C")
    bits = given.view(BITS[values.dtype])
    with np.errstate(all="ignore"):
        mixed = (bits.astype(np.uint64) + np.uint64(seed)) * FACTORS[0] + _places(given.shape)
        mixed = (mixed ^ (mixed >> np.uint64(29))) * FACTORS[1]
        step = (mixed >> np.uint64(40)) % np.uint64(3)
        moved = (bits + (step.astype(bits.dtype) - bits.dtype.type(1))).view(given.dtype)
        exact = given * 2 == np.rint(given * 2)
        return torch.from_numpy(np.where(exact | ~np.isfinite(moved), given, moved))


@cache
def _places(shape: tuple[int, ...]) -> NDArray[np.uint64]:
    return np.arange(prod(shape), dtype=np.uint64).reshape(shape) * FACTORS[2]
