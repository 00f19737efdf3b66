"""Many calls with the same weights: what decoding and serving run on.

A call of a stack packs its weights anew, for they may have changed, and nothing tells for sure. Who
decodes or serves knows that they have not. So the packing is done once, in a value that is made for
it and thrown away after it, and a step, or a short row, is then little more than its products.
"""

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor

from unrolled.errors import ConfigError
from unrolled.nn import kernels
from unrolled.nn.addresses import in_memory
from unrolled.nn.cells import Cell, State, Weights
from unrolled.nn.layer import run_layer
from unrolled.nn.rows import Lengths, PaddedRows
from unrolled.nn.shapes import check_is_tensor, whole_biases
from unrolled.nn.threads import threads

RunLayer = Callable[[int, Tensor, State | None, PaddedRows], tuple[Tensor, State]]
Run = Callable[[Tensor, Lengths | None, State | None, RunLayer | None], tuple[Tensor, State]]


class Prepared:
    """A stack as it was when this was made, for calls without gradients and without dropout.

    layers: each one's directions, which fit one another; run: the stack's own way, with another
    one to run a layer.
    """

    def __init__(self, cell: Cell, layers: Sequence[Sequence[Weights]], run: Run) -> None:
        self._cell, self._run, self._directions = cell, run, len(layers[0])
        layers = [[*map(whole_biases, layer)] for layer in layers]
        like = layers[0][0]
        self._dtype, self._input_size, self._H = like.ih.dtype, like.ih.size(1), like.hh.size(1)
        self._weights = [[_copied(weights) for weights in layer] for layer in layers]
        self._packed: list[list[Any]] = []  # each layer's directions
        if kernels.can_run(cell, [w for layer in layers for w in layer], like.ih, None):
            self._packed = [[*map(kernels.packed, layer)] for layer in self._weights]
        if self._packed and self._directions == 1:
            stack = zip(self._weights, self._packed, strict=True)
            self._steps = kernels.steps(cell, [(own[0], ready[0]) for own, ready in stack])

    @torch.inference_mode()
    def run(
        self, x: Tensor, lengths: Lengths | None = None, state: State | None = None
    ) -> tuple[Tensor, State]:
        """Whole rows, as Recurrent.forward: x (B, T, E) -> y (B, T, D·H), the states after them.

        A learned first state is the one that the stack has now.
        """
        given = state or ()
        for each in (x, *given):
            check_is_tensor("x or a value of state", each)
        ready = self._packed and kernels.can_run(self._cell, [], x, state)
        wrong = [t.dtype for t in (x, *given) if t.dtype != self._dtype]
        if ready and wrong:
            raise ConfigError(
                f"x or state is of {wrong[0]}, but must be of {self._dtype}, as the stack's "
                "weights are. Convert it with .to()."
            )
        return self._run(x, lengths, state, self._run_packed if ready else self._run_plain)

    def _run_packed(
        self, layer: int, x: Tensor, first: State | None, rows: PaddedRows
    ) -> tuple[Tensor, State]:
        own, ready = self._weights[layer], self._packed[layer]
        call = kernels.Call(self._cell, rows, len(own))
        tensors = [t for weights in own for t in weights]
        y, last, _ = call.forward(x, [*tensors, *(first or ())], save=False, ready=ready)
        return y, tuple(last)

    def _run_plain(
        self, layer: int, x: Tensor, first: State | None, rows: PaddedRows
    ) -> tuple[Tensor, State]:
        return run_layer(self._cell, self._weights[layer], x, first, rows)

    @torch.inference_mode()
    def step(self, x: Tensor, state: State) -> tuple[Tensor, State]:
        """x (N, E), state of (L, N, H) tensors -> y (N, H), the state after the step."""
        if self._directions == 2:
            raise ConfigError(
                "This stack is bidirectional, but only one that reads forward can step: what comes "
                "after a token is not known yet. Build it with bidirectional=False."
            )
        for each in (x, *state):
            check_is_tensor("x or a value of state", each)
        if not self._packed or not kernels.can_run(self._cell, [], x, state):
            y, state = self._run(x[:, None], None, state, self._run_plain)
            return y[:, 0], state
        self._check(x, state)
        source, before = in_memory(x), [in_memory(s) for s in state]
        after = tuple(torch.empty_like(s) for s in before)
        h, c = _addresses(before)
        next_h, next_c = _addresses(after)
        self._steps.run(
            N=len(x),
            threads=threads(),
            x=source.data_ptr(),
            h=h,
            c=c,
            next_h=next_h,
            next_c=next_c,
        )
        return after[0][-1], after

    def _check(self, x: Tensor, state: State) -> None:
        shape = (len(self._weights), len(x), self._H)
        right = x.dim() == 2 and x.size(1) == self._input_size and x.dtype == self._dtype
        if not right or len(state) != self._cell.state_size or any(s.shape != shape for s in state):
            seen = ", ".join(str(tuple(t.shape)) for t in (x, *state))
            raise ConfigError(
                f"x and state have the shapes {seen}, but must have (N, {self._input_size}) and "
                f"{self._cell.state_size} × ({shape[0]}, N, {self._H}), of {self._dtype}: rows and "
                "input_size, and what a step or the stack returned."
            )


def _copied(weights: Weights) -> Weights:
    """The weights as they are now, whatever becomes of them."""
    return Weights(*map(_copy, weights))  # type: ignore[arg-type]


def _copy(weight: Tensor | None) -> Tensor | None:
    return None if weight is None else weight.detach().clone(memory_format=torch.contiguous_format)


def _addresses(state: Sequence[Tensor]) -> tuple[int, int]:
    """Where h and c are; 0 for a c that is not."""
    return state[0].data_ptr(), state[1].data_ptr() if len(state) == 2 else 0
