"""LSTM, GRU and RNN: constructor, call and state_dict of torch.nn's classes, and lengths."""

from typing import TypedDict, Unpack

import torch
from torch import Tensor
from torch.nn.utils.rnn import PackedSequence, pack_padded_sequence, pad_packed_sequence

from unrolled.errors import ConfigError
from unrolled.nn.cells import Cell, GRUCell, LSTMCell, RNNCell, State
from unrolled.nn.recurrent import Stack


class Options(TypedDict, total=False):
    """What LSTM, GRU and RNN take beyond torch.nn's arguments, and device and dtype as there."""

    combine: str
    variational: bool
    first_state: str
    init: str
    device: torch.device | str | None
    dtype: torch.dtype | None


class _DropIn(Stack):
    """A stack that is built and called like torch.nn's, and takes lengths besides."""

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        num_layers: int,
        cell: Cell,
        *,
        bias: bool,
        batch_first: bool,
        dropout: float,
        bidirectional: bool,
        options: Options,
    ) -> None:
        super().__init__(
            input_size,
            hidden_size,
            cell=cell,
            layers=num_layers,
            bias=bias,
            dropout=dropout if num_layers > 1 else 0.0,  # torch.nn ignores it too
            bidirectional=bidirectional,
            **options,
        )
        self.num_layers, self.batch_first = num_layers, batch_first

    def flatten_parameters(self) -> None:
        """Do nothing: code written for torch.nn calls it."""

    def forward(
        self,
        x: Tensor | PackedSequence,
        hx: Tensor | State | None = None,
        *,
        lengths: Tensor | None = None,
        padding: str = "right",
    ) -> tuple[Tensor | PackedSequence, Tensor | State]:
        """As torch.nn: x (T, B, E), (B, T, E) if batch_first, (T, E) for one row, or packed.

        hx and the last state are h, or (h, c) for LSTM, of (L·D, B, H), or (L·D, H) for one row;
        lengths (B,) and padding as in Recurrent.
        """
        state = None if hx is None else (hx,) if isinstance(hx, Tensor) else tuple(hx)
        y, last = self._run_any(x, lengths, state, padding)
        return y, last if self.cell.state_size == 2 else last[0]

    def _run_any(
        self,
        x: Tensor | PackedSequence,
        lengths: Tensor | None,
        state: State | None,
        padding: str,
    ) -> tuple[Tensor | PackedSequence, State]:
        if isinstance(x, PackedSequence):
            padded, lengths = pad_packed_sequence(x, batch_first=True)
            y, last = self.run(padded, lengths, state)
            return pack_padded_sequence(y, lengths, batch_first=True, enforce_sorted=False), last
        if x.dim() == 2:
            one_row = None if state is None else tuple(s[:, None] for s in state)
            y, last = self.run(x[None], lengths, one_row)
            return y[0], tuple(s[:, 0] for s in last)
        if self.batch_first:
            return self.run_padded(x, lengths, state, padding)
        y, last = self.run_padded(x.transpose(0, 1), lengths, state, padding)
        return y.transpose(0, 1), last


class LSTM(_DropIn):
    """torch.nn.LSTM with lengths and with the variants of LSTMCell."""

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        num_layers: int = 1,
        bias: bool = True,
        batch_first: bool = False,
        dropout: float = 0.0,
        bidirectional: bool = False,
        proj_size: int = 0,
        *,
        output: str = "tanh",
        peephole: str = "none",
        **options: Unpack[Options],
    ) -> None:
        if proj_size:
            raise ConfigError(
                f"proj_size is {proj_size}, but must be 0: projected states are not offered. "
                "Put a linear layer behind, or take a smaller hidden_size."
            )
        super().__init__(
            input_size,
            hidden_size,
            num_layers,
            LSTMCell(output=output, peephole=peephole),
            bias=bias,
            batch_first=batch_first,
            dropout=dropout,
            bidirectional=bidirectional,
            options=options,
        )


class GRU(_DropIn):
    """torch.nn.GRU with lengths and with the variants of GRUCell."""

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        num_layers: int = 1,
        bias: bool = True,
        batch_first: bool = False,
        dropout: float = 0.0,
        bidirectional: bool = False,
        *,
        reset: str = "after",
        update: str = "keep",
        **options: Unpack[Options],
    ) -> None:
        super().__init__(
            input_size,
            hidden_size,
            num_layers,
            GRUCell(reset=reset, update=update),
            bias=bias,
            batch_first=batch_first,
            dropout=dropout,
            bidirectional=bidirectional,
            options=options,
        )


class RNN(_DropIn):
    """torch.nn.RNN with lengths and with the activations of RNNCell as nonlinearity."""

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        num_layers: int = 1,
        nonlinearity: str = "tanh",
        bias: bool = True,
        batch_first: bool = False,
        dropout: float = 0.0,
        bidirectional: bool = False,
        **options: Unpack[Options],
    ) -> None:
        super().__init__(
            input_size,
            hidden_size,
            num_layers,
            RNNCell(nonlinearity),
            bias=bias,
            batch_first=batch_first,
            dropout=dropout,
            bidirectional=bidirectional,
            options=options,
        )
        self.nonlinearity = nonlinearity
