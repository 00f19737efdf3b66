"""Recurrent layers: a cell over time, in layers and directions, for rows of unequal length.

`Recurrent` is what models use; nn/dropin.py has the same engine behind torch.nn's interface.
"""

import torch
from torch import Tensor, nn

from unrolled.errors import ConfigError, not_one_of
from unrolled.nn.cells import Cell, LSTMCell, State, Weights, sizes
from unrolled.nn.dropout import check_share, drop
from unrolled.nn.layer import run_layer
from unrolled.nn.prepared import Prepared, RunLayer
from unrolled.nn.rows import Lengths, find_rows, moved_left, moved_right
from unrolled.nn.shapes import (
    check_is_tensor,
    check_layer,
    have_shapes,
    listed,
    whole_biases,
)
from unrolled.nn.transforms import is_cast

COMBINES = ("concat", "mean")
FIRST_STATES = ("zero", "learned")
PADDINGS = ("right", "left")
INITS = ("uniform", "orthogonal", "identity")

WEIGHTS = ("weight_ih", "weight_hh", "bias_ih", "bias_hh", "peephole", "weight_hr")  # as in Weights
FIRST = ("h0", "c0")
AXES = {"B": "rows", "T": "steps (at least 1)"}


class Stack(nn.Module):
    """The engine: parameters under torch.nn's names, run layer by layer, direction by direction."""

    input_size: int
    hidden_size: int
    layers: int
    cell: Cell
    bias: bool
    bidirectional: bool
    combine: str
    dropout: float
    variational: bool
    first_state: str
    init: str = "uniform"
    forget_bias: float | None = None
    proj_size: int = 0  # of h, where that is projected
    _names: list[list[list[str]]]  # of the weights, by layer, direction and field; "": none

    @property
    def directions(self) -> int:
        """D."""
        return 2 if self.bidirectional else 1

    @property
    def output_size(self) -> int:
        """Features of y."""
        size = self.proj_size or self.hidden_size
        return size * (self.directions if self.combine == "concat" else 1)

    def _shapes(self) -> dict[str, tuple[int, ...]]:
        """Of every parameter there can be; those that are not have no numbers."""
        G, H, L, P = self.cell.gates, self.hidden_size, self.layers, self.proj_size
        shapes: dict[str, tuple[int, ...]] = {}
        for layer in range(L):
            for suffix in self._suffixes(layer):
                inputs = self.output_size if layer else self.input_size
                shapes["weight_ih" + suffix] = (G * H, inputs)
                shapes["weight_hh" + suffix] = (G * H, P or H)
                shapes["bias_ih" + suffix] = (G * H * self.bias,)
                shapes["bias_hh" + suffix] = (G * H * self.bias,)
                shapes["weight_hr" + suffix] = (P, H)
                shapes["peephole" + suffix] = (self.cell.peepholes, H)
        learned = L * self.directions * (self.first_state == "learned")
        for name, size in zip(FIRST[: self.cell.state_size], (P or H, H), strict=False):
            shapes[name] = (learned, size)
        return shapes

    def _suffixes(self, layer: int) -> tuple[str, ...]:
        """How the names of this layer's parameters end, forward and then backward."""
        return (f"_l{layer}", f"_l{layer}_reverse")[: self.directions]

    def _find_names(self) -> list[list[list[str]]]:
        shapes = self._shapes()

        def names(suffix: str) -> list[str]:
            return ["" if 0 in shapes[name + suffix] else name + suffix for name in WEIGHTS]

        return [[*map(names, self._suffixes(layer))] for layer in range(self.layers)]

    @torch.no_grad()
    def reset_parameters(self) -> None:
        """Draw new parameters; with init "uniform" torch.nn's own draw from ±1/√H."""
        if any(parameter.is_meta for parameter in self.parameters()):
            return  # there is nothing to fill
        bound = self.hidden_size**-0.5
        for name, parameter in self.named_parameters():
            if name in FIRST or (self.init != "uniform" and name.startswith("bias")):
                nn.init.zeros_(parameter)
            elif self.init != "uniform" and name.startswith("weight_hh"):
                _init_blocks(parameter, self.cell.gates, self.init)
            else:
                nn.init.uniform_(parameter, -bound, bound)
            if self.forget_bias is not None and name.startswith("bias"):
                forget = parameter.chunk(self.cell.gates)[1]
                nn.init.constant_(forget, self.forget_bias if name.startswith("bias_ih") else 0.0)

    def run(
        self,
        x: Tensor,
        lengths: Lengths | None,
        state: State | None,
        prepared: RunLayer | None = None,
    ) -> tuple[Tensor, State]:
        """See Recurrent.forward; prepared: how a layer runs whose weights are packed."""
        self._check_input(x, "x", ("B", "T"))
        return self._run(x, lengths, state, prepared)

    def _run(
        self,
        x: Tensor,
        lengths: Lengths | None,
        state: State | None,
        prepared: RunLayer | None = None,
    ) -> tuple[Tensor, State]:
        """The same of x that is checked."""
        first = self._first(x.size(0)) if state is None else self._checked(state, x.size(0))
        rows = find_rows(x, lengths)
        y = x
        last: list[State] = []
        for layer in range(self.layers):
            own = first if first is None or self.layers == 1 else self._own(first, layer)
            if prepared:
                y, after = prepared(layer, y, own, rows)  # (B, T, D·H), (D, B, H) each
            else:
                y, after = run_layer(
                    self.cell, self._weights(layer), self._between(y, layer), own, rows
                )
            last.append(after)
            if self.bidirectional and self.combine == "mean":
                forward, backward = y.chunk(2, dim=2)
                y = (forward + backward) / 2  # (B, T, H)
        if self.layers == 1:
            return y, last[0]
        return y, tuple(torch.cat(s) for s in zip(*last, strict=True))  # (L·D, B, H) each

    def _between(self, y: Tensor, layer: int) -> Tensor:
        """What this layer reads: x, or what the one below gave, with dropout in training."""
        if layer == 0 or not self.training:
            return y
        # However y lies in memory, the same numbers are drawn for the same places.
        return drop(y.contiguous(), self.dropout, variational=self.variational)

    def _check_input(self, x: Tensor, name: str, axes: tuple[str, ...]) -> None:
        """Refuse x unless it is of these axes and the inputs, in the type of the weights."""
        check_is_tensor(name, x)
        like = self._weight(self._names[0][0][0])
        if like is None:
            raise ConfigError("weight_ih_l0 is None, but must be a matrix.")
        E = like.size(-1)
        if x.dim() != len(axes) + 1 or x.size(-1) != E or x.size(axes.index("T")) == 0:
            raise ConfigError(
                f"{name} has shape {tuple(x.shape)}, but must be ({', '.join(axes)}, {E}): "
                f"{', '.join(AXES[axis] for axis in axes)} and input_size."
            )
        if x.dtype != like.dtype and not is_cast():
            raise ConfigError(
                f"{name} is of {x.dtype}, but the weights are of {like.dtype}. Convert it with "
                f".to({like.dtype}), or the layer."
            )

    def _first(self, B: int) -> State | None:
        """As `start`, but None for zeros: layers need none to be made."""
        return None if self.first_state == "zero" else self.start(B)

    def _own(self, state: State, layer: int) -> State:
        """A layer's part (D, B, H) of a state."""
        return tuple(s[layer * self.directions : (layer + 1) * self.directions] for s in state)

    def _weights(self, layer: int) -> list[Weights]:
        """Those of each direction."""
        found = [Weights(*map(self._weight, names)) for names in self._names[layer]]  # type: ignore[arg-type]
        for names, weights in zip(self._names[layer], found, strict=True):
            if weights.ih is None or weights.hh is None:
                raise ConfigError(f"{names[0]} or {names[1]} is None, but must be a matrix.")
        if self.bias:
            return found
        return [weights._replace(bias_ih=None, bias_hh=None) for weights in found]

    def _weight(self, name: str) -> Tensor | None:
        """As getattr, but quick for what is a parameter still, and not a function of others."""
        if not name:
            return None
        return self._parameters[name] if name in self._parameters else getattr(self, name)

    def check_weights(self) -> None:
        """Refuse weights that do not fit one another."""
        size: int | None = None
        for layer in range(self.layers):
            weights = [*map(whole_biases, self._weights(layer))]
            ih = weights[0].ih
            if size is None:
                size = ih.size(-1) if ih.dim() else 0
            check_layer(self.cell, weights, ih.new_empty(0, 1, size), (), alike=True)
            size = weights[0].hh.size(1) * (len(weights) if self.combine == "concat" else 1)

    def prepared(self) -> Prepared:
        """This stack, with the weights it has now, for many calls without gradients."""
        self.check_weights()
        return Prepared(self.cell, [self._weights(layer) for layer in range(self.layers)], self.run)

    def run_padded(
        self, x: Tensor, lengths: Lengths | None, state: State | None, padding: str
    ) -> tuple[Tensor, State]:
        """As _run for rows that are padded on either side; y is padded as x is."""
        if padding not in PADDINGS:
            raise not_one_of("padding", padding, PADDINGS)
        if padding == "right" or lengths is None:
            return self._run(x, lengths, state)
        y, last = self._run(moved_left(x, lengths), lengths, state)
        return moved_right(y, lengths), last

    def start(self, B: int) -> State:
        """The state of B rows before their first step."""
        shapes = self._state_shapes(B)
        if self.first_state == "zero":
            like = self._weights(0)[0].hh
            return tuple(like.new_zeros(shape) for shape in shapes)
        return tuple(
            getattr(self, name)[:, None].expand(shape)
            for name, shape in zip(FIRST, shapes, strict=False)
        )

    def _state_shapes(self, B: int) -> list[tuple[int, int, int]]:
        """Of h, and of c where there is one."""
        states = self.layers * self.directions
        return [(states, B, size) for size in sizes(self.cell, self._weights(0)[0])]

    def _checked(self, state: State, B: int) -> State:
        for each in state:
            check_is_tensor("a value of state", each)
        shapes = self._state_shapes(B)
        if not have_shapes(state, shapes):
            raise ConfigError(
                f"state has {len(state)} tensors, of the shapes {listed(s.shape for s in state)}, "
                f"but must have {listed(shapes)}: layers · directions, rows, hidden_size. Pass "
                "what a call returned, or None."
            )
        return state

    def extra_repr(self) -> str:
        text = f"{self.input_size}, {self.hidden_size}, cell={self.cell}, layers={self.layers}"
        return text + (f", bidirectional, combine={self.combine!r}" if self.bidirectional else "")


def _check_sizes(**sizes: int) -> None:
    for name, size in sizes.items():
        if size < 1:
            raise ConfigError(f"{name} is {size}, but must be at least 1.")


def check_names(*, combine: str, first_state: str, init: str) -> None:
    for name, value, allowed in (
        ("combine", combine, COMBINES),
        ("first_state", first_state, FIRST_STATES),
        ("init", init, INITS),
    ):
        if value not in allowed:
            raise not_one_of(name, value, allowed)


def _check_dropout(dropout: float, layers: int) -> None:
    check_share(dropout)
    if dropout and layers == 1:
        raise ConfigError(
            f"dropout is {dropout}, but layers is 1 and dropout acts between layers. "
            "Set layers to 2 or more, or dropout to 0."
        )


def _init_blocks(weight_hh: Tensor, gates: int, init: str) -> None:
    fill = nn.init.orthogonal_ if init == "orthogonal" else nn.init.eye_
    for block in weight_hh.chunk(gates):  # (H, H)
        fill(block)


def _check_forget_bias(forget_bias: float | None, cell: Cell) -> None:
    if forget_bias is not None and not isinstance(cell, LSTMCell):
        raise ConfigError(
            f"forget_bias is {forget_bias:g}, but {type(cell).__name__} has no forget gate. "
            "Leave it out, or take an LSTMCell."
        )


class Recurrent(Stack):
    """A stack of recurrent layers (L layers, D directions).

    combine      a layer's two directions side by side ("concat") or their "mean"
    dropout      between layers, never inside one; `variational`: one mask for all steps of a row
    first_state  "zero", or "learned": parameters h0 (and c0), (L·D, H), which start at zero
    init         "uniform" is torch.nn's; "orthogonal" or "identity" is what each gate's recurrent
                 matrix starts as, with zero biases (identity: Le et al. 2015, arXiv:1504.00941)
    forget_bias  what both biases of an LSTM's forget gates start as, together (Gers et al. 2000)
    """

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        *,
        cell: Cell,
        layers: int = 1,
        bidirectional: bool = False,
        combine: str = "concat",
        dropout: float = 0.0,
        variational: bool = False,
        first_state: str = "zero",
        init: str = "uniform",
        bias: bool = True,
        forget_bias: float | None = None,
        device: torch.device | str | None = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        super().__init__()
        _check_sizes(input_size=input_size, hidden_size=hidden_size, layers=layers)
        check_names(combine=combine, first_state=first_state, init=init)
        _check_dropout(dropout, layers)
        _check_forget_bias(forget_bias, cell)
        self.input_size, self.hidden_size, self.layers = input_size, hidden_size, layers
        self.cell, self.bias, self.init, self.first_state = cell, bias, init, first_state
        self.bidirectional, self.combine = bidirectional, combine
        self.dropout, self.variational = dropout, variational
        self.forget_bias = forget_bias
        self._names = self._find_names()
        for name, shape in self._shapes().items():
            empty = torch.empty(shape, device=device, dtype=dtype)
            self.register_parameter(name, nn.Parameter(empty) if empty.numel() else None)
        self.reset_parameters()

    def forward(
        self,
        x: Tensor,
        lengths: Lengths | None = None,
        state: State | None = None,
        *,
        padding: str = "right",
    ) -> tuple[Tensor, State]:
        """Run over x (B, T, E), rows padded on the right, or "left"; lengths (B,) int64 in 1..T.

        state is a tuple of (L·D, B, H) tensors, (h,) or (h, c), laid out as torch.nn does. Returns
        y (B, T, output_size), exactly 0 beyond each length, and each row's state after its own last
        step. What stands in the padding changes no number and no gradient.
        """
        self._check_input(x, "x", ("B", "T"))
        return self.run_padded(x, lengths, state, padding)
