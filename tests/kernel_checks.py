"""What the tests of the kernels share: networks run by them and by the reference, side by side."""

import contextlib
from collections.abc import Iterator, Sequence

import pytest
import torch
from torch import Tensor

from unrolled.nn import Recurrent, State, kernels, reference

needs_kernels = pytest.mark.skipif(
    not kernels.active(), reason="the compiled kernels are not installed: no compiler was there"
)
BEST = kernels.active()  # or the one that UNROLLED_KERNELS chooses, as if there were no better
_AVAILABLE: list[str] = kernels._kernels.available() if BEST else []  # the best last
SETS = _AVAILABLE[: _AVAILABLE.index(BEST) + 1] if BEST else []


@contextlib.contextmanager
def instructions(name: str) -> Iterator[None]:
    """Run the kernels of one instruction set."""
    kernels._kernels.use(name)
    try:
        yield
    finally:
        kernels._kernels.use(BEST)


@contextlib.contextmanager
def threads(count: int) -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(count)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def first_states(net: Recurrent, rows: int) -> State:
    """Random, of the net's own type, to be differentiated by."""
    like = next(net.parameters())
    shape = (net.layers * net.directions, rows, net.hidden_size)
    return tuple(
        torch.randn(shape, dtype=like.dtype, requires_grad=True) for _ in range(net.cell.state_size)
    )


def outputs(net: Recurrent, x: Tensor, lengths: Tensor | None, state: State) -> list[Tensor]:
    """y and the last states."""
    y, last = net(x, lengths, state)
    return [y, *last]


def with_gradients(
    net: Recurrent,
    x: Tensor,
    lengths: Tensor | None,
    state: State,
    upstream: Sequence[Tensor | None],
) -> list[Tensor]:
    """All outputs, and the gradients of x, the first states and all parameters.

    upstream has a weight for each output, or None where nothing downstream uses it.
    """
    got = outputs(net, x, lengths, state)
    used = [(o, u) for o, u in zip(got, upstream, strict=True) if u is not None]
    inputs = [x, *state, *net.parameters()]
    gradients = torch.autograd.grad(
        [o for o, _ in used], inputs, [u for _, u in used], materialize_grads=True
    )
    return [*(o.detach() for o in got), *gradients]


def by_reference(*arguments: object) -> list[Tensor]:
    with reference():
        return with_gradients(*arguments)  # type: ignore[arg-type]


def random_upstream(
    net: Recurrent, x: Tensor, lengths: Tensor | None, state: State
) -> list[Tensor]:
    with torch.no_grad():
        return [torch.randn_like(o) for o in outputs(net, x, lengths, state)]


@torch.no_grad()
def worst(got: Sequence[Tensor], expected: Sequence[Tensor]) -> float:
    """The largest difference, in relation to the largest value of its tensor; NaN if any is."""
    gaps = [0.0]
    for g, e in zip(got, expected, strict=True):
        assert g.shape == e.shape
        if e.numel():
            scale = max(1.0, float(e.abs().max()))
            gaps.append(float((g.double() - e.double()).abs().max()) / scale)
    return float(torch.tensor(gaps).max())


def same_bits(got: Sequence[Tensor], expected: Sequence[Tensor]) -> bool:
    return all(torch.equal(g, e) for g, e in zip(got, expected, strict=True))
