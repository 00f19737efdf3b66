"""The tensors of a network as a table: shapes, how many numbers, and the gates that share one.

A recurrent weight stacks its gates, so that W_ih of an LSTM (4H, E) is four matrices (H, E): those
that the equations call W_i, W_f, W_g and W_o. Biases come in pairs, as in torch.nn; their sum is
the b of the equations.
"""

from collections.abc import Mapping
from typing import NamedTuple

from torch import Tensor, nn

from unrolled.nn.cells import Cell, GRUCell, LSTMCell
from unrolled.nn.recurrent import Stack

STACKED = ("weight_ih", "weight_hh", "bias_ih", "bias_hh")


class ShapeRow(NamedTuple):
    """One tensor."""

    name: str
    shape: tuple[int, ...]
    numbers: int
    gates: tuple[str, ...]  # that are stacked in it, from the top; none where it has no gates

    def cells(self) -> list[str]:
        """A row of the table."""
        return [self.name, _shown(self.shape), f"{self.numbers:,}", self._by_gate()]

    def _by_gate(self) -> str:
        if not self.gates:
            return ""
        rows, *others = self.shape
        return f"{' '.join(self.gates)}: {_shown((rows // len(self.gates), *others))}"


def shape_rows(network: nn.Module, tensors: Mapping[str, Tensor]) -> list[ShapeRow]:
    """A row a tensor, by its name on disk; `network` says which are recurrent weights."""
    gates = _gates_by_name(network)
    return [
        ShapeRow(name, tuple(value.shape), value.numel(), gates.get(name, ()))
        for name, value in tensors.items()
    ]


def gate_names(cell: Cell) -> tuple[str, ...]:
    """The gates of a cell in the order of its weights' rows; a simple cell has the state alone."""
    if isinstance(cell, LSTMCell):
        return ("i", "f", "g", "o")
    if isinstance(cell, GRUCell):
        return ("r", "z", "n")[3 - cell.gates :]
    return ("h",)


def _gates_by_name(network: nn.Module) -> dict[str, tuple[str, ...]]:
    return {
        f"{where}.{name}" if where else name: gate_names(module.cell)
        for where, module in network.named_modules()
        if isinstance(module, Stack)
        for name, _ in module.named_parameters(recurse=False)
        if name.startswith(STACKED)
    }


def _shown(shape: tuple[int, ...]) -> str:
    return f"({', '.join(map(str, shape))})"
