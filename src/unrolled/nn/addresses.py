"""Tensors as the compiled kernels are given them: addresses of numbers that lie there."""

from collections.abc import Sequence

import torch
from torch import Tensor


def in_memory(tensor: Tensor) -> Tensor:
    """The tensor's numbers as they are, one after the other: nothing left to torch to work out."""
    if tensor.is_neg() or tensor._is_zerotensor():
        return tensor.clone(memory_format=torch.contiguous_format)
    return tensor.contiguous()


def if_any(tensor: Tensor | None) -> Tensor | None:
    """The same of a tensor that may not be."""
    return None if tensor is None else in_memory(tensor)


def in_rows(x: Tensor) -> Tensor:
    """x (B, T, E) with the numbers of a token side by side."""
    plain = x.stride(2) == 1 and not x.is_neg() and not x._is_zerotensor()
    return x if plain else in_memory(x)


def laid_out_as(x: Tensor, width: int) -> Tensor:
    """Room for (B, T, width), time first in memory where x (B, T, E) is: as torch.nn gives it."""
    B, T, _ = x.shape
    if x.stride(0) < x.stride(1):
        return x.new_empty(T, B, width).transpose(0, 1)
    return x.new_empty(B, T, width)


def source(x: Tensor, weights: Tensor) -> dict[str, int]:
    """Where x (B, T, E) is, how far its rows and its steps are apart, and where W is."""
    return {
        "E": x.size(2),
        "input": x.data_ptr(),
        "x_row": x.stride(0),
        "x_step": x.stride(1),
        "input_weights": weights.data_ptr(),
    }


def address(tensor: Tensor | None) -> int:
    return 0 if tensor is None else tensor.data_ptr()


def h_and_c(state: Sequence[Tensor | None], direction: int) -> tuple[int, int]:
    """Where a direction's h and c (B, H) are in tensors (D, B, H); 0 for those that are not."""

    def place(tensor: Tensor | None) -> int:
        if tensor is None:
            return 0
        return tensor.data_ptr() + direction * tensor.stride(0) * tensor.element_size()

    return place(state[0]) if state else 0, place(state[1]) if len(state) > 1 else 0
