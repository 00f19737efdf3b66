"""LSTM, GRU and RNN: torch.nn's own classes with our engine, lengths, and variants of the cells.

Parameters, their names and all that torch.nn's code asks of a module are inherited. Torch's own
forward pass runs where the kernels cannot and the layer is one of torch's: under autocast, in
graphs that are kept, for other types and devices, and for projected states. Everywhere else our
engine does.
"""

import warnings
from itertools import pairwise
from typing import Any, TypedDict, Unpack

import torch
from torch import Tensor, fx, nn
from torch.nn.utils.rnn import PackedSequence, pack_padded_sequence, pad_packed_sequence

from unrolled.errors import ConfigError, shown
from unrolled.nn import kernels
from unrolled.nn.cells import Cell, GRUCell, LSTMCell, RNNCell, State
from unrolled.nn.layer import is_reference
from unrolled.nn.recurrent import Stack, check_names
from unrolled.nn.rows import Lengths
from unrolled.nn.shapes import check_is_tensor, listed
from unrolled.nn.transforms import is_cast, is_kept, is_transformed
from unrolled.nn.unroll import FUSED


class Options(TypedDict, total=False):
    """What LSTM, GRU and RNN take beyond torch.nn's arguments."""

    combine: str
    variational: bool
    first_state: str
    init: str


class _DropIn(Stack):
    """What makes one of torch.nn's layers one of ours."""

    batch_first: bool
    num_layers: int
    nonlinearity: str  # RNN alone
    _flat_weights_names: list[str]

    def _become(
        self,
        cell: Cell,
        *,
        combine: str = "concat",
        variational: bool = False,
        first_state: str = "zero",
        init: str = "uniform",
    ) -> None:
        """Give a layer as torch.nn has built it this cell and these options."""
        check_names(combine=combine, first_state=first_state, init=init)
        self.cell, self.layers = cell, self.num_layers
        self.combine, self.variational = combine, variational
        self.first_state, self.init = first_state, init
        self._names = self._find_names()
        if self._vary() or init != "uniform":
            self.reset_parameters()

    def _vary(self) -> bool:
        """Make the parameters those of the cell and the options; whether any is another now."""
        like, changed = self.get_parameter("weight_hh_l0"), False
        for name, shape in self._shapes().items():
            own = self._parameters.get(name)
            if 0 not in shape and (own is None or own.shape != shape):
                setattr(self, name, nn.Parameter(like.new_empty(shape)))
                changed = True
        return changed

    def forward(
        self,
        input: Tensor | PackedSequence,
        hx: Tensor | State | None = None,
        *,
        lengths: Lengths | None = None,
        padding: str = "right",
    ) -> tuple[Tensor | PackedSequence, Tensor | State]:
        """As torch.nn: x (T, B, E), (B, T, E) if batch_first, (T, E) for one row, or packed.

        hx and the last state are h, or (h, c) for LSTM, of (L·D, B, H), or (L·D, H) for one row;
        lengths (B,) and padding as in Recurrent.
        """
        if isinstance(input, fx.Proxy):
            return self._as_leaf(input, hx=hx, lengths=lengths, padding=padding)
        state = _as_state(hx)
        if lengths is None and padding == "right" and self._leaves_to_torch(input):
            self.check_weights()  # which torch does not
            if isinstance(input, PackedSequence) and not is_kept():  # nor this
                _check_packed(input)
                if state is not None:
                    self._checked(state, int(input.batch_sizes[0]))
            return super().forward(input, self._as_torchs(state))  # type: ignore[no-any-return]
        y: Tensor | PackedSequence
        if isinstance(input, PackedSequence):
            y, last = self._run_packed(input, state, lengths, padding)
        else:
            y, last = self._run_tensor(input, state, lengths, padding)
        return y, last if self.cell.state_size == 2 else last[0]

    def _as_torchs(self, state: State | None) -> Tensor | State | None:
        """A state as torch.nn's layers take and give it: h, or (h, c) for LSTM."""
        if state is not None and len(state) != self.cell.state_size:
            raise ConfigError(
                f"hx has {len(state)} tensors, but must have {self.cell.state_size}: "
                f"{type(self).__name__} takes {'(h, c)' if self.cell.state_size == 2 else 'h'}."
            )
        return state[0] if state is not None and self.cell.state_size == 1 else state

    @property
    def _is_torchs(self) -> bool:
        """Whether torch.nn has this layer too."""
        options = (self.combine, self.variational, self.first_state)
        return self.cell in FUSED and options == ("concat", False, "zero")

    def _leaves_to_torch(self, x: Tensor | PackedSequence) -> bool:
        """Whether torch's own forward pass computes the same, where the kernels cannot run."""
        data = x.data if isinstance(x, PackedSequence) else x
        other = isinstance(data, Tensor) and not (data.is_cpu and data.dtype in kernels.TYPES)
        if not (other or self.proj_size or is_cast() or is_kept()):
            return False
        return self._is_torchs and not is_reference() and not is_transformed()

    def _run_tensor(
        self, x: Tensor, state: State | None, lengths: Lengths | None, padding: str
    ) -> tuple[Tensor, State]:
        if isinstance(x, Tensor) and x.dim() == 2:
            return self._run_row(x, state, lengths, padding)
        self._check_input(x, "input", ("B", "T") if self.batch_first else ("T", "B"))
        if self.batch_first:
            return self.run_padded(x, lengths, state, padding)
        y, last = self.run_padded(x.transpose(0, 1), lengths, state, padding)
        return y.transpose(0, 1).contiguous(), last

    def _run_row(
        self, x: Tensor, state: State | None, lengths: Lengths | None, padding: str
    ) -> tuple[Tensor, State]:
        """One row (T, E), its states (L·D, H)."""
        self._check_input(x, "input", ("T",))
        if state is not None and any(s.dim() != 2 for s in state):
            raise ConfigError(
                f"hx has the shapes {listed(s.shape for s in state)}, but input is one row, "
                "(T, E): hx must have two axes, layers · directions and hidden_size."
            )
        one_row = None if state is None else tuple(s[:, None] for s in state)
        y, last = self.run_padded(x[None], lengths, one_row, padding)
        return y[0], tuple(s[:, 0] for s in last)

    def _run_packed(
        self, x: PackedSequence, state: State | None, lengths: Lengths | None, padding: str
    ) -> tuple[PackedSequence, State]:
        """Rows as they lie, longest first: y has the order of x, whatever sorted it."""
        if lengths is not None or padding != "right":
            raise ConfigError(
                f"input is packed, but lengths is {lengths} and padding is {shown(padding)}: a "
                "PackedSequence has lengths of its own and no padding. Leave both out."
            )
        _check_packed(x)
        in_order = PackedSequence(x.data, x.batch_sizes)
        padded, sizes = pad_packed_sequence(in_order, batch_first=True)
        order, back = x.sorted_indices, x.unsorted_indices
        y, last = self.run(padded, sizes, _permuted(state, order))
        packed = pack_padded_sequence(y, sizes, batch_first=True)
        return PackedSequence(packed.data, x.batch_sizes, order, back), _permuted(last, back)

    def _as_leaf(self, x: fx.Proxy, **options: Any) -> Any:
        """The call as one node of the graph that torch.fx writes, as of torch.nn's own layers."""
        tracer: Any = x.tracer
        path = tracer.path_of_module(self)
        if not path:
            raise ConfigError(
                f"{type(self).__name__} is all that is traced, but torch.fx keeps such a layer "
                "whole. Trace a module that has it as a part."
            )
        given = {name: value for name, value in options.items() if value not in (None, "right")}
        return tracer.create_proxy("call_module", path, (x,), given)

    def to_torch(self) -> Any:
        """torch.nn's own layer with the same parameters, not copies, for tools that know no other.

        Refused where torch.nn has no such layer.
        """
        if not self._is_torchs:
            raise ConfigError(
                f"torch.nn has no {self}: cell, combine, variational and first_state must be "
                "torch.nn's own."
            )
        (kind,) = (base for base in TORCHS if isinstance(self, base))
        special: dict[str, Any] = {"proj_size": self.proj_size} if kind is nn.LSTM else {}
        if kind is nn.RNN:
            special["nonlinearity"] = self.nonlinearity
        twin = kind(
            self.input_size,
            self.hidden_size,
            self.num_layers,
            bias=self.bias,
            batch_first=self.batch_first,
            dropout=self.dropout if self.num_layers > 1 else 0.0,
            bidirectional=self.bidirectional,
            device="meta",
            **special,
        )
        for name in self._flat_weights_names:
            setattr(twin, name, self.get_parameter(name))
        return twin.train(self.training)

    def __prepare_scriptable__(self) -> Any:  # torch.jit.script asks for it
        return self.to_torch()

    @property
    def qconfig(self) -> Any:
        """How torch's quantisation is to treat the layer: not at all."""
        if "qconfig" not in self.__dict__:
            raise AttributeError("qconfig")
        return self.__dict__["qconfig"]

    @qconfig.setter
    def qconfig(self, value: Any) -> None:
        text = (
            f"torch's quantisation does not convert {type(self).__name__} of unrolled.nn. Put "
            "layer.to_torch() in its place, and quantise that."
        )
        if value is not None:
            raise ConfigError(text)
        warnings.warn(text, stacklevel=2)
        self.__dict__["qconfig"] = value

    @qconfig.deleter
    def qconfig(self) -> None:
        del self.__dict__["qconfig"]


TORCHS: tuple[type[nn.Module], ...] = (nn.LSTM, nn.GRU, nn.RNN)


def _as_state(hx: Any) -> State | None:
    """hx as our engine has it: a tuple of tensors, or None."""
    if hx is None:
        return None
    if not isinstance(hx, Tensor | tuple | list):
        raise ConfigError(
            f"hx is {shown(hx)} of {type(hx).__name__}, but must be a tensor, or a tuple (h, c) "
            "for LSTM."
        )
    state = (hx,) if isinstance(hx, Tensor) else tuple(hx)
    for each in state:
        check_is_tensor("a value of hx", each)
    return state


def _check_packed(x: PackedSequence) -> None:
    counts = x.batch_sizes.tolist()
    falls = all(before >= after >= 0 for before, after in pairwise(counts))
    if not counts or counts[0] < 1 or not falls or sum(counts) > len(x.data):
        raise ConfigError(
            f"batch_sizes is {counts} and there are {len(x.data)} tokens, but each step must have "
            "at most as many rows as the one before. Make packed rows with pack_padded_sequence."
        )


def _permuted(state: State | None, order: Tensor | None) -> Any:
    if state is None or order is None:
        return state
    return tuple(s.index_select(1, order) for s in state)


class LSTM(_DropIn, nn.LSTM):  # type: ignore[misc]  # lengths and padding besides
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
        device: torch.device | str | None = None,
        dtype: torch.dtype | None = None,
        *,
        output: str = "tanh",
        peephole: str = "none",
        **options: Unpack[Options],
    ) -> None:
        cell = LSTMCell(output=output, peephole=peephole)
        super().__init__(
            input_size,
            hidden_size,
            num_layers,
            bias,
            batch_first,
            dropout,
            bidirectional,
            proj_size,
            device,
            dtype,
        )
        self._become(cell, **options)


class GRU(_DropIn, nn.GRU):  # type: ignore[misc]  # lengths and padding besides
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
        device: torch.device | str | None = None,
        dtype: torch.dtype | None = None,
        *,
        reset: str = "after",
        update: str = "keep",
        **options: Unpack[Options],
    ) -> None:
        cell = GRUCell(reset=reset, update=update)
        super().__init__(
            input_size,
            hidden_size,
            num_layers,
            bias,
            batch_first,
            dropout,
            bidirectional,
            device=device,
            dtype=dtype,
        )
        self._become(cell, **options)


class RNN(_DropIn, nn.RNN):  # type: ignore[misc]  # lengths and padding besides
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
        device: torch.device | str | None = None,
        dtype: torch.dtype | None = None,
        **options: Unpack[Options],
    ) -> None:
        cell = RNNCell(nonlinearity)
        super().__init__(
            input_size,
            hidden_size,
            num_layers,
            nonlinearity if cell in FUSED else "tanh",
            bias,
            batch_first,
            dropout,
            bidirectional,
            device=device,
            dtype=dtype,
        )
        self.nonlinearity, self.mode = nonlinearity, f"RNN_{nonlinearity.upper()}"
        self._become(cell, **options)
