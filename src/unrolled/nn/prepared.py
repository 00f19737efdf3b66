"""Single steps, many with the same weights: what decoding runs on.

A call of a stack packs its weights anew, for they may have changed, and nothing tells for sure. Who
decodes knows that they have not. So the packing is done once, in a value that is made for a decode
and thrown away after it, and a step is then little more than its products.
"""

from collections.abc import Callable, Sequence

import torch
from torch import Tensor

from unrolled.errors import ConfigError
from unrolled.nn import kernels
from unrolled.nn.cells import Cell, State, Weights

Run = Callable[[Tensor, State], tuple[Tensor, State]]  # x (N, 1, E), state -> y (N, 1, H), state


class Prepared:
    """A stack as it was when this was made, for steps without gradients and without dropout.

    run: the stack's own way, taken where the kernels cannot run.
    """

    def __init__(self, cell: Cell, layers: Sequence[Weights], run: Run) -> None:
        self._cell, self._run = cell, run
        like = layers[0].ih
        self._dtype, self._input_size, self._H = like.dtype, like.size(1), layers[0].hh.size(1)
        self._layers: list[_Layer] = []
        if kernels.can_run(cell, layers, like, []):
            self._layers = [_Layer(weights) for weights in layers]
        self._ones = self._places = torch.empty(0, dtype=torch.int64)

    @torch.inference_mode()
    def step(self, x: Tensor, state: State) -> tuple[Tensor, State]:
        """x (N, E), state of (L, N, H) tensors -> y (N, H), the state after the step."""
        if not self._layers or not kernels.can_run(self._cell, [], x, [state]):
            y, state = self._run(x[:, None], state)
            return y[:, 0], state
        self._check(x, state)
        N, H = len(x), self._H
        sizes = [N, H, torch.get_num_threads(), *self._rows(N)]
        before = [s.contiguous() for s in state]
        after = tuple(torch.empty_like(s) for s in before)
        held = x.contiguous()
        source, skip = held.data_ptr(), N * H * x.element_size()
        for index, layer in enumerate(self._layers):
            old = kernels.pair(before, index * skip)
            new = kernels.pair(after, index * skip)
            addresses = layer.addresses(old, new, source)
            kernels.run_packed(self._cell, self._dtype, sizes, addresses)
            source = new[0]
        return after[0][-1], after

    def _rows(self, N: int) -> tuple[int, int]:
        """The addresses of N lengths and offsets, for rows of one token each."""
        if len(self._ones) < N:
            self._ones, self._places = torch.ones(N, dtype=torch.int64), torch.arange(N)
        return self._ones.data_ptr(), self._places.data_ptr()

    def _check(self, x: Tensor, state: State) -> None:
        shape = (len(self._layers), len(x), self._H)
        right = x.dim() == 2 and x.size(1) == self._input_size and x.dtype == self._dtype
        if not right or len(state) != self._cell.state_size or any(s.shape != shape for s in state):
            seen = ", ".join(str(tuple(t.shape)) for t in (x, *state))
            raise ConfigError(
                f"x and state have the shapes {seen}, but must have (N, {self._input_size}) and "
                f"{self._cell.state_size} × ({shape[0]}, N, {self._H}), of {self._dtype}: rows and "
                "input_size, and what a step or the stack returned."
            )


class _Layer:
    """One layer's packed weights and where they are."""

    def __init__(self, weights: Weights) -> None:
        H = weights.hh.size(1)
        ih, hh = (kernels.packed(w.detach(), H) for w in weights[:2])
        small = [None if w is None else w.detach().clone() for w in weights[2:]]
        self._H, self._E = H, weights.ih.size(1)
        self._alive = (ih, hh, small)  # whatever becomes of the stack's own
        self._small = [kernels.address(t) for t in small]
        self._packed = (hh.data_ptr(), ih.data_ptr())

    def addresses(self, before: list[int], after: list[int], x: int) -> list[int]:
        """As csrc/recurrent.hpp lists them; y is h itself."""
        H, (hh, ih) = self._H, self._packed
        nothing_kept = (0, 0, 0, 0)
        tail = (after[0], H, H, *after, x, ih, hh, ih, self._E)
        return [0, hh, *self._small, *before, *nothing_kept, *tail]
