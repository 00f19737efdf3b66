"""Where the rows of a batch end: all that recurrent layers need to know of padding."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from unrolled.errors import ConfigError, shown
from unrolled.nn.transforms import in_graph

Lengths = Tensor | Sequence[int] | NDArray[np.integer[Any]]
INTEGERS = (torch.int64, torch.int32, torch.int16, torch.int8, torch.uint8)


@dataclass
class PaddedRows:
    """B rows of at most T steps, padded on the right."""

    count: int  # B
    steps: int  # T
    device: torch.device
    values: Sequence[int] = ()  # the lengths as they were, each in 1..T; none: all are T
    unseen: Tensor | None = None  # the lengths (B,) in a graph, which has no values yet
    # A cached_property locks itself in Python 3.11, and no graph can be made of a lock.
    _padding_mask: Tensor | None = field(default=None, init=False, repr=False, compare=False)
    _mirror: Tensor | None = field(default=None, init=False, repr=False, compare=False)

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

    @property
    def last(self) -> Tensor:
        """(B,) the index of each row's last step."""
        return self.lengths - 1

    @property
    def padding_mask(self) -> Tensor:
        """(B, T) True on padded steps."""
        if self._padding_mask is None:
            steps = torch.arange(self.steps, device=self.device)  # (T,)
            self._padding_mask = steps >= self.lengths[:, None]
        return self._padding_mask

    @property
    def mirror(self) -> Tensor:
        """(B·T,) where in the flat batch the mirror image of each step within its row is."""
        if self._mirror is None:
            t = torch.arange(self.steps, device=self.device)
            begins = self.steps * torch.arange(self.count, device=self.device)[:, None]  # (B, 1)
            mirror = torch.where(self.padding_mask, t, self.lengths[:, None] - 1 - t)  # (B, T)
            self._mirror = (begins + mirror).flatten()
        return self._mirror

    @cached_property
    def places(self) -> Tensor:
        """(N,) where in the flat batch each token is."""
        return (~self.padding_mask).flatten().nonzero()[:, 0]

    def check_unseen(self) -> None:
        """Let the graph refuse lengths that no row can have, when it runs."""
        if self.unseen is not None:
            fits = (self.unseen >= 1) & (self.unseen <= self.steps)  # (B,)
            torch._assert_async(fits.all(), f"lengths must be in 1..{self.steps}, the steps of x")

    @property
    def tokens(self) -> int:
        """N, how many steps are real."""
        return sum(self.values) if self.values else self.count * self.steps


def find_rows(x: Tensor, lengths: Lengths | None) -> PaddedRows:
    """The rows of x (B, T, …) with checked lengths (B,); None: all are full."""
    B, T = x.shape[:2]
    if lengths is None:
        return PaddedRows(B, T, x.device)
    given = as_lengths(lengths, B)
    if in_graph():  # which sees no values: whoever runs it checks them
        return PaddedRows(B, T, x.device, unseen=given.to(x.device))
    return seen_rows(x, given)


def seen_rows(x: Tensor, lengths: Tensor) -> PaddedRows:
    """The same where the values are to be looked at now."""
    B, T = x.shape[:2]
    values = checked_values(as_lengths(lengths, B), T)
    return PaddedRows(B, T, x.device, () if values.count(T) == B else values)


def as_lengths(lengths: Lengths, B: int) -> Tensor:
    """The lengths (B,) as int64, of a tensor, an array or a list of integers."""
    try:
        given = lengths if isinstance(lengths, Tensor) else torch.as_tensor(lengths)
    except (TypeError, ValueError, RuntimeError) as error:
        raise ConfigError(f"lengths is {shown(lengths)}, but must be {B} integers.") from error
    if given.dtype not in INTEGERS or given.shape != (B,):
        kind = str(given.dtype).removeprefix("torch.")
        raise ConfigError(
            f"lengths is {kind} of shape {tuple(given.shape)}, but must be integers of shape "
            f"({B},): pass the number of real steps of each row of x."
        )
    return given.long()


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


def moved_left(x: Tensor, lengths: Lengths) -> Tensor:
    """x (B, T, F), its rows padded on the left, with each row moved to the beginning."""
    rows = find_rows(x, lengths)
    return _rolled(x, rows.steps - rows.lengths)


def moved_right(x: Tensor, lengths: Lengths) -> Tensor:
    """x (B, T, F), its rows padded on the right, with each row moved to the end."""
    return _rolled(x, find_rows(x, lengths).lengths)


def _rolled(x: Tensor, by: Tensor) -> Tensor:
    """Each row turned so that its step `by` (B,) comes first."""
    T = x.size(1)
    places = (torch.arange(T, device=x.device) + by[:, None].to(x.device)) % T  # (B, T)
    return x.gather(1, places[:, :, None].expand_as(x))
