"""The tensors of a layer, compared with one another where the layer begins to run.

Modules let anybody put any tensor in the place of a parameter. What a layer computes with is
therefore checked as it is, and not as its attributes say.
"""

import reprlib
from collections.abc import Iterable, Iterator, Sequence

import torch
from torch import Tensor

from unrolled.errors import ConfigError
from unrolled.nn.cells import Cell, Weights


def check_layer(
    cell: Cell,
    weights: Sequence[Weights],
    x: Tensor,
    first: Sequence[Tensor | None],
    *,
    alike: bool = False,
) -> None:
    """Refuse weights, inputs (B, T, E) or first states (D, B, H) that do not fit one another.

    first is empty where the state is zero; alike: all must also be of one type and in one place.
    """
    if not weights:
        raise ConfigError("there are no weights, but there must be those of 1 or 2 directions.")
    check_dims("x", x, 3, "(B, T, E)")
    for name, tensor, shape in _tensors(cell, weights, x, first):
        if tensor.shape != shape:
            check_tensor(name, tensor, shape, tensor)
        if alike and (tensor.dtype != x.dtype or tensor.device != x.device):
            check_tensor(name, tensor, shape, x)


def _tensors(
    cell: Cell, weights: Sequence[Weights], x: Tensor, first: Sequence[Tensor | None]
) -> Iterator[tuple[str, Tensor, tuple[int, ...]]]:
    """Every tensor of a layer, with its name and the shape that it must have."""
    check_dims("weight_hh", weights[0].hh, 2, "(G·H, H)")
    B, _, E = x.shape
    P, hr = weights[0].hh.size(1), weights[0].hr
    H = P if hr is None else hr.size(-1)
    rows = cell.gates * H
    for ih, hh, bias_ih, bias_hh, peephole, own_hr in weights:
        yield "weight_ih", ih, (rows, E)
        yield "weight_hh", hh, (rows, P)
        if bias_ih is not None:
            yield "bias_ih", bias_ih, (rows,)
        if bias_hh is not None:
            yield "bias_hh", bias_hh, (rows,)
        if (peephole is None) != (cell.peepholes == 0):
            has = "missing" if peephole is None else "given"
            raise ConfigError(f"peephole is {has}, but {cell} has {cell.peepholes} rows of it.")
        if peephole is not None:
            yield "peephole", peephole, (cell.peepholes, H)
        if own_hr is not None:
            yield "weight_hr", own_hr, (P, H)
    if first and len(first) != cell.state_size:
        raise ConfigError(
            f"the first state has {len(first)} tensors, but must have {cell.state_size}: {cell}."
        )
    for name, state, size in zip("hc", first, (P, H), strict=False):
        if state is None:
            raise ConfigError(f"the first {name} is None, but must be a tensor.")
        yield f"the first {name}", state, (len(weights), B, size)


def check_is_tensor(name: str, value: object) -> None:
    """Refuse what is no tensor."""
    if not isinstance(value, Tensor):
        raise ConfigError(
            f"{name} is {reprlib.repr(value)} of {type(value).__name__}, but must be a tensor."
        )
    if value.layout != torch.strided:
        raise ConfigError(f"{name} is laid out as {value.layout}, but must be dense: .to_dense().")


def check_tensor(name: str, tensor: Tensor, shape: tuple[int, ...], like: Tensor) -> None:
    """Refuse a tensor of another shape, or of another type or elsewhere than `like`."""
    if tensor.shape != shape:
        raise ConfigError(f"{name} is of shape {tuple(tensor.shape)}, but must be {shape}.")
    if tensor.dtype != like.dtype or tensor.device != like.device:
        raise ConfigError(
            f"{name} is {tensor.dtype} on {tensor.device}, but must be {like.dtype} on "
            f"{like.device}, as x is. Convert it with .to()."
        )


def check_dims(name: str, tensor: Tensor, dims: int, shape: str) -> None:
    """Refuse a tensor of more or fewer axes."""
    if tensor.dim() != dims:
        raise ConfigError(f"{name} is of shape {tuple(tensor.shape)}, but must be {shape}.")


def have_shapes(tensors: Sequence[Tensor | None], shapes: Sequence[tuple[int, ...]]) -> bool:
    """Whether there is a tensor for each shape, and has it."""
    if len(tensors) != len(shapes):
        return False
    pairs = zip(tensors, shapes, strict=True)
    return all(t is not None and t.shape == shape for t, shape in pairs)


def listed(shapes: Iterable[Sequence[int]]) -> str:
    """Shapes as a sentence names them."""
    return " and ".join(str(tuple(shape)) for shape in shapes) or "of no tensors"


def whole_biases(weights: Weights) -> Weights:
    """The weights, with a bias of one number spread over all rows, as torch's operators do."""
    bias_ih, bias_hh = weights.bias_ih, weights.bias_hh
    if all(bias is None or bias.numel() > 1 for bias in (bias_ih, bias_hh)):
        return weights
    rows = weights.hh.size(0) if weights.hh.dim() else 0
    return weights._replace(bias_ih=_spread(bias_ih, rows), bias_hh=_spread(bias_hh, rows))


def _spread(bias: Tensor | None, rows: int) -> Tensor | None:
    is_one = bias is not None and bias.numel() == 1 and bias.dim() < 2
    return bias.expand(rows) if is_one and bias is not None else bias
