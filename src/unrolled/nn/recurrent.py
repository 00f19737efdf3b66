"""Recurrent layers: a cell over time, in layers and directions, for rows of unequal length.

`Recurrent` is what models use; nn/dropin.py has the same engine behind torch.nn's interface.
"""

import torch
from torch import Tensor, nn

from unrolled.errors import ConfigError, not_one_of
from unrolled.nn.cells import Cell, State, Weights
from unrolled.nn.dropout import Dropout
from unrolled.nn.prepared import Prepared, RunLayer
from unrolled.nn.rows import find_rows, moved_left, moved_right
from unrolled.nn.unroll import run_layer

COMBINES = ("concat", "mean")
FIRST_STATES = ("zero", "learned")
PADDINGS = ("right", "left")
INITS = ("uniform", "orthogonal", "identity")

WEIGHTS = ("weight_ih", "weight_hh", "bias_ih", "bias_hh", "peephole")  # as in Weights
FIRST = ("h0", "c0")


class Stack(nn.Module):
    """The engine: parameters under torch.nn's names, run layer by layer, direction by direction."""

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
        device: torch.device | str | None = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        super().__init__()
        _check_sizes(input_size=input_size, hidden_size=hidden_size, layers=layers)
        _check_names(combine=combine, first_state=first_state, init=init)
        _check_dropout(dropout, layers)
        self.input_size, self.hidden_size, self.layers = input_size, hidden_size, layers
        self.cell, self.bias, self.init, self.first_state = cell, bias, init, first_state
        self.bidirectional, self.combine = bidirectional, combine
        self.directions = 2 if bidirectional else 1
        self.dropout = dropout
        self.between = Dropout(dropout, variational=variational)
        self._names = [
            [[name + suffix for name in WEIGHTS] for suffix in self._suffixes(layer)]
            for layer in range(layers)
        ]
        self._add_parameters(device, dtype)
        self.reset_parameters()

    @property
    def output_size(self) -> int:
        """Features of y."""
        return self.hidden_size * (self.directions if self.combine == "concat" else 1)

    def _add_parameters(self, device: torch.device | str | None, dtype: torch.dtype | None) -> None:
        def add(name: str, *shape: int) -> None:
            empty = torch.empty(shape, device=device, dtype=dtype)
            self.register_parameter(name, nn.Parameter(empty) if empty.numel() else None)

        G, H, L = self.cell.gates, self.hidden_size, self.layers
        for layer in range(L):
            for suffix in self._suffixes(layer):
                add("weight_ih" + suffix, G * H, self.output_size if layer else self.input_size)
                add("weight_hh" + suffix, G * H, H)
                add("bias_ih" + suffix, G * H * self.bias)
                add("bias_hh" + suffix, G * H * self.bias)
                add("peephole" + suffix, self.cell.peepholes, H)
        for name in FIRST[: self.cell.state_size]:
            add(name, L * self.directions * (self.first_state == "learned"), H)

    def _suffixes(self, layer: int) -> tuple[str, ...]:
        """How the names of this layer's parameters end, forward and then backward."""
        return (f"_l{layer}", f"_l{layer}_reverse")[: self.directions]

    @torch.no_grad()
    def reset_parameters(self) -> None:
        """Draw new parameters; with init "uniform" torch.nn's own draw from ±1/√H."""
        if next(self.parameters()).is_meta:
            return  # there is nothing to fill
        bound = self.hidden_size**-0.5
        for name, parameter in self.named_parameters():
            if name in FIRST or (self.init != "uniform" and name.startswith("bias")):
                nn.init.zeros_(parameter)
            elif self.init != "uniform" and name.startswith("weight_hh"):
                _init_blocks(parameter, self.init)
            else:
                nn.init.uniform_(parameter, -bound, bound)

    def run(
        self,
        x: Tensor,
        lengths: Tensor | None,
        state: State | None,
        prepared: RunLayer | None = None,
    ) -> tuple[Tensor, State]:
        """See Recurrent.forward; prepared: how a layer runs whose weights are packed."""
        if x.dim() != 3 or x.size(2) != self.input_size or x.size(1) == 0:
            raise ConfigError(
                f"x has shape {tuple(x.shape)}, but must be (B, T, {self.input_size}): "
                "rows, steps (at least 1) and input_size."
            )
        first = self._first(x.size(0)) if state is None else self._checked(state, x.size(0))
        rows = find_rows(x, lengths)
        y = x
        last: list[State] = []
        for layer in range(self.layers):
            own = first if first is None or self.layers == 1 else self._own(first, layer)
            if prepared:
                y, after = prepared(layer, y, own, rows)  # (B, T, D·H), (D, B, H) each
            else:
                inputs = self.between(y) if layer else y
                y, after = run_layer(self.cell, self._weights(layer), inputs, own, rows)
            last.append(after)
            if self.bidirectional and self.combine == "mean":
                y = (y[..., : self.hidden_size] + y[..., self.hidden_size :]) / 2  # (B, T, H)
        if self.layers == 1:
            return y, last[0]
        return y, tuple(torch.cat(s) for s in zip(*last, strict=True))  # (L·D, B, H) each

    def _first(self, B: int) -> State | None:
        """As `start`, but None for zeros: layers need none to be made."""
        return None if self.first_state == "zero" else self.start(B)

    def _own(self, state: State, layer: int) -> State:
        """A layer's part (D, B, H) of a state."""
        return tuple(s[layer * self.directions : (layer + 1) * self.directions] for s in state)

    def _weights(self, layer: int) -> list[Weights]:
        """Those of each direction."""
        return [Weights(*map(self._weight, names)) for names in self._names[layer]]  # type: ignore[arg-type]

    def _weight(self, name: str) -> Tensor | None:
        """As getattr, but quick for what is a parameter still, and not a function of others."""
        return self._parameters[name] if name in self._parameters else getattr(self, name)

    def prepared(self) -> Prepared:
        """This stack, with the weights it has now, for many calls without gradients."""
        return Prepared(self.cell, [self._weights(layer) for layer in range(self.layers)], self.run)

    def run_padded(
        self, x: Tensor, lengths: Tensor | None, state: State | None, padding: str
    ) -> tuple[Tensor, State]:
        """The same for rows that are padded on either side; y is padded as x is."""
        if padding not in PADDINGS:
            raise not_one_of("padding", padding, PADDINGS)
        if padding == "right" or lengths is None:
            return self.run(x, lengths, state)
        y, last = self.run(moved_left(x, lengths), lengths, state)
        return moved_right(y, lengths), last

    def start(self, B: int) -> State:
        """The state of B rows before their first step."""
        names, shape = FIRST[: self.cell.state_size], self._state_shape(B)
        if self.first_state == "zero":
            like = self.get_parameter("weight_hh_l0")
            return tuple(like.new_zeros(shape) for _ in names)
        return tuple(getattr(self, name)[:, None].expand(shape) for name in names)

    def _state_shape(self, B: int) -> tuple[int, int, int]:
        return self.layers * self.directions, B, self.hidden_size

    def _checked(self, state: State, B: int) -> State:
        size, shape = self.cell.state_size, self._state_shape(B)
        if len(state) != size or any(s.shape != shape for s in state):
            seen = " and ".join(str(tuple(s.shape)) for s in state)
            raise ConfigError(
                f"state has the shapes {seen}, but must have {' and '.join([str(shape)] * size)}: "
                "layers · directions, rows, hidden_size. Pass what a call returned, or None."
            )
        return state

    def extra_repr(self) -> str:
        text = f"{self.input_size}, {self.hidden_size}, cell={self.cell}, layers={self.layers}"
        return text + (f", bidirectional, combine={self.combine!r}" if self.bidirectional else "")


def _check_sizes(**sizes: int) -> None:
    for name, size in sizes.items():
        if size < 1:
            raise ConfigError(f"{name} is {size}, but must be at least 1.")


def _check_names(*, combine: str, first_state: str, init: str) -> None:
    for name, value, allowed in (
        ("combine", combine, COMBINES),
        ("first_state", first_state, FIRST_STATES),
        ("init", init, INITS),
    ):
        if value not in allowed:
            raise not_one_of(name, value, allowed)


def _check_dropout(dropout: float, layers: int) -> None:
    if dropout and layers == 1:
        raise ConfigError(
            f"dropout is {dropout}, but layers is 1 and dropout acts between layers. "
            "Set layers to 2 or more, or dropout to 0."
        )


def _init_blocks(weight_hh: Tensor, init: str) -> None:
    fill = nn.init.orthogonal_ if init == "orthogonal" else nn.init.eye_
    for block in weight_hh.chunk(weight_hh.size(0) // weight_hh.size(1)):  # (H, H), one a gate
        fill(block)


class Recurrent(Stack):
    """A stack of recurrent layers (L layers, D directions).

    combine      a layer's two directions side by side ("concat") or their "mean"
    dropout      between layers, never inside one; `variational`: one mask for all steps of a row
    first_state  "zero", or "learned": parameters h0 (and c0), (L·D, H), which start at zero
    init         "uniform" is torch.nn's; "orthogonal" or "identity" is what each gate's recurrent
                 matrix starts as, with zero biases (identity: Le et al. 2015, arXiv:1504.00941)
    """

    def forward(
        self,
        x: Tensor,
        lengths: Tensor | None = None,
        state: State | None = None,
        *,
        padding: str = "right",
    ) -> tuple[Tensor, State]:
        """Run over x (B, T, E), rows padded on the right, or "left"; lengths (B,) int64 in 1..T.

        state is a tuple of (L·D, B, H) tensors, (h,) or (h, c), laid out as torch.nn does. Returns
        y (B, T, output_size), exactly 0 beyond each length, and each row's state after its own last
        step. What stands in the padding changes no number and no gradient.
        """
        return self.run_padded(x, lengths, state, padding)
