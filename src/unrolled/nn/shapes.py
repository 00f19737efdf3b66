"""The tensors of a layer, compared with one another where the layer begins to run.

Modules let anybody put any tensor in the place of a parameter. What a layer computes with is
therefore checked as it is, and not as its attributes say.
"""

from collections.abc import Iterable, Sequence

from torch import Tensor

from unrolled.errors import ConfigError
from unrolled.nn.cells import Cell, Weights, sizes


def check_layer(
    cell: Cell,
    weights: Sequence[Weights],
    x: Tensor,
    first: Sequence[Tensor | None] | None,
) -> None:
    """Refuse weights, inputs (B, T, E) or first states (D, B, H) that do not fit one another."""
    if not weights or x.dim() != 3:
        raise ConfigError(
            f"x has shape {tuple(x.shape)} and there are weights for {len(weights)} directions, "
            "but a layer takes (rows, steps, inputs) and weights for 1 or 2."
        )
    B, _, E = x.shape
    for own in weights:
        _check_weights(cell, own, E)
    if any(own.hh.shape != weights[0].hh.shape for own in weights[1:]):
        raise ConfigError(
            f"weight_hh has the shapes {listed(own.hh.shape for own in weights)}, but both "
            "directions of a layer must have the same."
        )
    if first is None:
        return
    D = len(weights)
    shapes = [(D, B, size) for size in sizes(cell, weights[0])]
    if not have_shapes(first, shapes):
        raise ConfigError(
            f"the first state has the shapes {listed(s.shape for s in first if s is not None)}, "
            f"but must have {listed(shapes)}."
        )


def _check_weights(cell: Cell, weights: Weights, E: int) -> None:
    ih, hh, bias_ih, bias_hh, peephole, hr = weights
    if ih.dim() != 2 or hh.dim() != 2:
        raise ConfigError(
            f"weight_ih and weight_hh have the shapes {tuple(ih.shape)} and {tuple(hh.shape)}, "
            "but each must be a matrix."
        )
    P = hh.size(1)
    H = P if hr is None else hr.size(-1)
    rows = cell.gates * H
    needed: list[tuple[str, Tensor | None, tuple[int, ...]]] = [
        ("weight_ih", ih, (rows, E)),
        ("weight_hh", hh, (rows, P)),
        ("bias_ih", bias_ih, (rows,)),
        ("bias_hh", bias_hh, (rows,)),
        ("peephole", peephole, (cell.peepholes, H)),
        ("weight_hr", hr, (P, H)),
    ]
    for name, tensor, shape in needed:
        if tensor is not None and tensor.shape != shape:
            raise ConfigError(
                f"{name} has shape {tuple(tensor.shape)}, but must have {shape}: the cell has "
                f"{cell.gates} gates, weight_hh is for {H} units, and x has {E} inputs."
            )
    if (bias_ih is None) != (bias_hh is None):
        missing = "bias_ih" if bias_ih is None else "bias_hh"
        raise ConfigError(f"{missing} is None, but a layer has both biases or none.")
    if (peephole is None) != (cell.peepholes == 0):
        has = "none" if peephole is None else "some"
        raise ConfigError(f"{cell} has {cell.peepholes} rows of peepholes, but was given {has}.")


def check_alike(tensors: Iterable[Tensor], x: Tensor) -> None:
    """Refuse tensors of another type, or elsewhere, than x."""
    for tensor in tensors:
        if tensor.dtype != x.dtype or tensor.device != x.device:
            raise ConfigError(
                f"a tensor of the layer is {tensor.dtype} on {tensor.device}, but must be "
                f"{x.dtype} on {x.device}, as x is. Convert it with .to()."
            )


def check_tensor(name: str, tensor: Tensor, shape: tuple[int, ...], like: Tensor) -> None:
    """Refuse a tensor of another shape, or of another type or elsewhere than `like`."""
    if tensor.shape != shape:
        raise ConfigError(f"{name} is of shape {tuple(tensor.shape)}, but must be {shape}.")
    check_alike([tensor], like)


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
    if bias_ih is None or bias_hh is None or (bias_ih.numel() > 1 and bias_hh.numel() > 1):
        return weights
    rows = weights.hh.size(0) if weights.hh.dim() else 0
    return weights._replace(bias_ih=_spread(bias_ih, rows), bias_hh=_spread(bias_hh, rows))


def _spread(bias: Tensor, rows: int) -> Tensor:
    return bias.expand(rows) if bias.numel() == 1 and bias.dim() < 2 else bias
