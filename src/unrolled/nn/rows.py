"""Where the rows of a batch end: all that recurrent layers need to know of padding."""

from dataclasses import dataclass
from functools import cached_property, lru_cache

import torch
from torch import Tensor

from unrolled.errors import ConfigError


@dataclass(frozen=True)
class Rows:
    """B rows of at most T steps, padded on the right."""

    lengths: Tensor  # (B,)  int64, each in 1..T
    steps: int  # T
    dense: bool  # whether nothing is padded

    @cached_property
    def last(self) -> Tensor:
        """(B,) the index of each row's last step."""
        return self.lengths - 1

    @cached_property
    def beyond(self) -> Tensor:
        """(B, T) True on padded steps."""
        return torch.arange(self.steps, device=self.lengths.device) >= self.lengths[:, None]

    @cached_property
    def mirror(self) -> Tensor:
        """(B·T,) where in the flat batch the mirror image of each step within its row is."""
        device, B = self.lengths.device, len(self.lengths)
        t = torch.arange(self.steps, device=device)
        mirror = torch.where(self.beyond, t, self.lengths[:, None] - 1 - t)  # (B, T)
        return (mirror + self.steps * torch.arange(B, device=device)[:, None]).flatten()

    @cached_property
    def places(self) -> Tensor:
        """(N,) where in the flat batch each token is."""
        return (~self.beyond).flatten().nonzero()[:, 0]

    @cached_property
    def tokens(self) -> int:
        """N, how many steps are real."""
        return sum(self.lengths.tolist())


def find_rows(x: Tensor, lengths: Tensor | None) -> Rows:
    """The rows of x (B, T, …) with checked lengths (B,); None: all are full."""
    B, T = x.shape[:2]
    if lengths is None:
        compiles = torch.compiler.is_dynamo_compiling()
        return _full_rows(B, T, x.device) if compiles else _known_rows(B, T, x.device)
    _check_form(lengths, B)
    if torch.compiler.is_dynamo_compiling():  # a graph sees no values: whoever runs it checks them
        return Rows(lengths.to(x.device), T, dense=False)
    dense = check_values(lengths, T)
    own = lengths.to(x.device).clone(memory_format=torch.contiguous_format)  # kernels read it raw
    return Rows(own, T, dense)


def _full_rows(B: int, T: int, device: torch.device) -> Rows:
    return Rows(torch.full((B,), T, device=device), T, dense=True)


@lru_cache(maxsize=64)  # a decode asks for the same rows at every step
@torch.inference_mode(False)  # they may meet gradients later
def _known_rows(B: int, T: int, device: torch.device) -> Rows:
    return _full_rows(B, T, device)


def _check_form(lengths: Tensor, B: int) -> None:
    if lengths.dtype != torch.int64 or lengths.shape != (B,):
        kind = str(lengths.dtype).removeprefix("torch.")
        raise ConfigError(
            f"lengths is {kind} of shape {tuple(lengths.shape)}, but must be int64 of shape "
            f"({B},): pass the number of real steps of each row of x."
        )


def check_values(lengths: Tensor, T: int) -> bool:
    """Refuse lengths that no row of T steps can have; whether all are T."""
    values = lengths.tolist()
    if values and (min(values) < 1 or max(values) > T):
        row = next(row for row, length in enumerate(values) if not 1 <= length <= T)
        raise ConfigError(
            f"lengths[{row}] is {values[row]}, but must be in 1..{T}, the steps of x. "
            "Leave empty rows out of the batch."
        )
    return values.count(T) == len(values)


def moved_left(x: Tensor, lengths: Tensor) -> Tensor:
    """x (B, T, F), its rows padded on the left, with each row moved to the beginning."""
    rows = find_rows(x, lengths)
    return _rolled(x, rows.steps - rows.lengths)


def moved_right(x: Tensor, lengths: Tensor) -> Tensor:
    """x (B, T, F), its rows padded on the right, with each row moved to the end."""
    return _rolled(x, lengths)


def _rolled(x: Tensor, by: Tensor) -> Tensor:
    """Each row turned so that its step `by` (B,) comes first."""
    T = x.size(1)
    places = (torch.arange(T, device=x.device) + by[:, None].to(x.device)) % T  # (B, T)
    return x.gather(1, places[:, :, None].expand_as(x))
