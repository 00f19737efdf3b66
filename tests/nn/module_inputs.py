"""The inputs with which torch tries its own recurrent modules, as facts: options and shapes.

They are what `module_db` in torch/testing/_internal/common_modules.py gives for RNN, GRU and LSTM;
test_module_inputs.py checks that they are the same. All are single rows, without a batch.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product

import torch
from torch import Tensor

KINDS = ("RNN", "GRU", "LSTM")
SWITCHES = (False, True)

Shape = tuple[int, ...]


@dataclass(frozen=True)
class Case:
    """One module and one call of it."""

    kind: str  # the class, in torch.nn and in ours
    options: tuple[tuple[str, int | bool | str], ...]  # of the constructor, by name
    x: Shape
    state: tuple[Shape, ...]  # of the tensors of the first state: none, h, or h and c

    def __str__(self) -> str:
        said = {name: value for name, value in self.options if value is True or type(value) is str}
        words = [name if value is True else str(value) for name, value in sorted(said.items())]
        if dict(self.options).get("proj_size"):
            words.append("projected")
        return "-".join([self.kind, *words, *(["state"] if self.state else [])])

    def tensors(self, dtype: torch.dtype) -> tuple[Tensor, tuple[Tensor, ...]]:
        """A random row and first state, to be differentiated by."""

        def leaf(shape: Shape) -> Tensor:
            return torch.randn(shape, dtype=dtype).requires_grad_()

        return leaf(self.x), tuple(map(leaf, self.state))

    def hx(self, state: tuple[Tensor, ...]) -> Tensor | tuple[Tensor, ...] | None:
        """The first state as the module takes it."""
        if not state:
            return None
        return state if self.kind == "LSTM" else state[0]


def cases() -> list[Case]:
    """80: 32 of RNN, 16 of GRU and 32 of LSTM."""
    return [case for kind in KINDS for case in _of_kind(kind)]


def _of_kind(kind: str) -> Iterator[Case]:
    own: dict[str, tuple[str, tuple[int | str, ...]]] = {
        "RNN": ("nonlinearity", ("relu", "tanh")),
        "LSTM": ("proj_size", (0, 2)),
    }
    name, values = own.get(kind, ("", (0,)))
    for value, bias, batch_first, both in product(values, SWITCHES, SWITCHES, SWITCHES):
        for with_state in SWITCHES:
            H = 3 if with_state or kind == "LSTM" else 2
            options: dict[str, int | bool | str] = {
                "input_size": 2,
                "hidden_size": H,
                "num_layers": 2,
                "bias": bias,
                "batch_first": batch_first,
                "bidirectional": both,
            }
            if name:
                options[name] = value
            steps = 3 if with_state or kind != "LSTM" else 2
            states = ()
            if with_state:
                rows = 4 if both else 2  # layers · directions
                states = ((rows, H),)
                if kind == "LSTM":
                    states = ((rows, int(value) or H), (rows, H))
            yield Case(kind, tuple(sorted(options.items())), (steps, 2), states)
