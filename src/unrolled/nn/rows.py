"""Where the rows of a batch end: all that recurrent layers need to know of padding."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import torch
from torch import Tensor

from unrolled.errors import ConfigError


@dataclass
class Rows:
    """B rows of at most T steps, padded on the right."""

    count: int  # B
    steps: int  # T
    device: torch.device
    values: Sequence[int] = ()  # the lengths as they were, each in 1..T; none: all are T
    unseen: Tensor | None = None  # the lengths (B,) in a graph, which has no values yet

    @property
    def dense(self) -> bool:
        """Whether nothing is padded, as far as is known."""
        return not self.values and self.unseen is None

    @property
    def lengths(self) -> Tensor:
        """(B,) int64, each in 1..T."""
        if self.unseen is not None:
            return self.unseen
        if self.dense:
            return torch.full((self.count,), self.steps, device=self.device)
        return torch.tensor(self.values, device=self.device)

    @cached_property
    def last(self) -> Tensor:
        """(B,) the index of each row's last step."""
        return self.lengths - 1

    @cached_property
    def beyond(self) -> Tensor:
        """(B, T) True on padded steps."""
        return torch.arange(self.steps, device=self.device) >= self.lengths[:, None]

    @cached_property
    def mirror(self) -> Tensor:
        """(B·T,) where in the flat batch the mirror image of each step within its row is."""
        t = torch.arange(self.steps, device=self.device)
        begins = self.steps * torch.arange(self.count, device=self.device)[:, None]  # (B, 1)
        mirror = torch.where(self.beyond, t, self.lengths[:, None] - 1 - t)  # (B, T)
        return (begins + mirror).flatten()

    @cached_property
    def places(self) -> Tensor:
        """(N,) where in the flat batch each token is."""
        return (~self.beyond).flatten().nonzero()[:, 0]

    @property
    def tokens(self) -> int:
        """N, how many steps are real."""
        return sum(self.values) if self.values else self.count * self.steps


def find_rows(x: Tensor, lengths: Tensor | None) -> Rows:
    """The rows of x (B, T, …) with checked lengths (B,); None: all are full."""
    B, T = x.shape[:2]
    if lengths is None:
        return Rows(B, T, x.device)
    _check_form(lengths, B)
    if torch.compiler.is_dynamo_compiling():  # a graph sees no values: whoever runs it checks them
        return Rows(B, T, x.device, unseen=lengths.to(x.device))
    values = checked_values(lengths, T)
    return Rows(B, T, x.device, () if values.count(T) == B else values)


def _check_form(lengths: Tensor, B: int) -> None:
    if lengths.dtype != torch.int64 or lengths.shape != (B,):
        kind = str(lengths.dtype).removeprefix("torch.")
        raise ConfigError(
            f"lengths is {kind} of shape {tuple(lengths.shape)}, but must be int64 of shape "
            f"({B},): pass the number of real steps of each row of x."
        )


def checked_values(lengths: Tensor, T: int) -> list[int]:
    """The lengths as numbers; those that no row of T steps can have are refused."""
    values: list[int] = lengths.tolist()
    if values and (min(values) < 1 or max(values) > T):
        row = next(row for row, length in enumerate(values) if not 1 <= length <= T)
        raise ConfigError(
            f"lengths[{row}] is {values[row]}, but must be in 1..{T}, the steps of x. "
            "Leave empty rows out of the batch."
        )
    return values


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
