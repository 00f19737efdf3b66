"""The bridge to the compiled kernels of networks over binary trees.

The kernels are given addresses. Shapes and types are compared here; the places and words of a
forest are read once, checked and copied by the kernels themselves.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor

from unrolled.errors import ConfigError
from unrolled.native import module as _kernels
from unrolled.nn.addresses import address, in_memory
from unrolled.nn.kernel_layer import only_numbers
from unrolled.nn.kernels import TYPES
from unrolled.nn.shapes import check_dims, check_tensor
from unrolled.nn.threads import threads
from unrolled.nn.transforms import is_ordinary
from unrolled.nn.tree_fold import Join, differentiable_gradients
from unrolled.nn.trees import Forest


class Node(NamedTuple):
    """What the kernels know of a composition: σ(W [c₁; c₂] + b), or gates of that."""

    number: int  # as csrc/tree.hpp has it
    gates: int
    states: int  # numbers of a node's state, in H

    def kept(self, H: int) -> int:
        """Numbers that an inner node keeps for the way back."""
        return {0: 0, 1: 1, 2: 6 * H}[self.number]


TANH = Node(0, 1, 1)
UNIT_TANH = Node(1, 1, 1)  # of length 1
LSTM = Node(2, 5, 2)


def can_run(forest: Forest, tensors: Sequence[Tensor]) -> bool:
    """Whether the kernels are there and take these tensors, all of one type."""
    if _kernels is None or not is_ordinary(tensors):
        return False
    dtype = tensors[0].dtype
    return dtype in TYPES and all(t.is_cpu and t.dtype == dtype for t in tensors)


def compose(
    node: Node, join: Join, weights: Sequence[Tensor], forest: Forest, states: Tensor
) -> Tensor:
    """The vectors (N, H) of all nodes by place, of the states (U, S) of the distinct words.

    weights: W (G·H, 2H) and b (G·H,); join: the same in torch's operators.
    """
    tensors = [states, *weights]
    if torch.is_grad_enabled() and any(t.requires_grad for t in tensors):
        result: Tensor = _Trees.apply(node, join, forest, *tensors)  # type: ignore[no-untyped-call]
        return result
    return _Call(node, forest, *tensors).forward(save=False)[0]


class _Trees(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, node: Node, join: Join, forest: Forest, *tensors: Tensor) -> Tensor:
        h, c, kept = _Call(node, forest, *tensors).forward(save=True)
        ctx.node, ctx.join, ctx.forest = node, join, forest
        ctx.save_for_backward(*tensors, h, c, kept)
        return h

    @staticmethod
    def backward(ctx: Any, upstream: Tensor) -> tuple[Any, ...]:
        *tensors, h, c, kept = ctx.saved_tensors
        wanted = ctx.needs_input_grad[3:]
        if not only_numbers([upstream]):
            H = h.size(1)
            made = differentiable_gradients(ctx.join, ctx.forest, tensors, (upstream, H), wanted)
            return None, None, None, *made
        call = _Call(ctx.node, ctx.forest, *tensors)
        return None, None, None, *call.backward(h, c, kept, upstream, wanted)


class _Call:
    """A forest and tensors that fit it and one another."""

    def __init__(
        self, node: Node, forest: Forest, states: Tensor, weight: Tensor, bias: Tensor
    ) -> None:
        check_dims("the words' states", states, 2, "(U, S)")
        H = states.size(1) // node.states
        check_tensor("the words' states", states, (len(forest.words), node.states * H), states)
        check_tensor("the weights of a tree", weight, (node.gates * H, 2 * H), states)
        check_tensor("the bias of a tree", bias, (node.gates * H,), states)
        self.node, self.H, self.N, self.M = node, H, len(forest.nodes), len(forest.inner)
        self.tensors = [in_memory(t) for t in (states, weight, bias)]
        self.levels = torch.tensor(forest.levels)
        self.layout = _layout(forest, self.levels)

    def forward(self, *, save: bool) -> tuple[Tensor, Tensor | None, Tensor | None]:
        """h and, where there is one, c (N, H), and what the way back needs."""
        new = self.tensors[0].new_empty
        h = new(self.N, self.H)
        c = new(self.N, self.H) if self.node is LSTM else None
        kept = new(self.M, self.node.kept(self.H)) if save else None
        self._run("tree_forward", h=h, c=c, kept=kept)
        return h, c, kept

    def backward(
        self,
        h: Tensor,
        c: Tensor | None,
        kept: Tensor | None,
        upstream: Tensor,
        wanted: Sequence[bool],
    ) -> list[Tensor | None]:
        """The gradients of states, weights and bias; those that nobody wants may be None."""
        check_tensor("the gradient", upstream, (self.N, self.H), h)
        states, weight, bias = self.tensors
        dwords = torch.empty_like(states)
        dweights = torch.empty_like(weight) if wanted[1] else None
        dbias = torch.empty_like(bias) if wanted[2] else None
        results = {"dwords": dwords, "dweights": dweights, "dbias": dbias}
        self._run("tree_backward", h=h, c=c, kept=kept, dh=in_memory(upstream), **results)
        return [dwords, dweights, dbias]

    def _run(self, name: str, **tensors: Tensor | None) -> None:
        states, weight, bias = self.tensors
        make = _kernels.TreeCall64 if states.dtype == torch.float64 else _kernels.TreeCall32
        call = make(
            node=self.node.number,
            H=self.H,
            words=states.data_ptr(),
            weights=weight.data_ptr(),
            bias=bias.data_ptr(),
            **self.layout,
            **{key: address(tensor) for key, tensor in tensors.items()},
        )
        getattr(_kernels, name)(call, threads=threads())


def _layout(forest: Forest, levels: Tensor) -> dict[str, int]:
    """Where the forest's arrays are, and how many numbers they have."""
    L, M, N = len(forest.leaves), len(forest.inner), len(forest.nodes)
    sizes = {"word": L, "leaves": L, "inner": M, "tree": N}
    arrays: dict[str, Tensor] = {name: getattr(forest, name) for name in sizes}
    for name, array in arrays.items():
        plain = array.dtype == torch.int64 and array.is_cpu and array.is_contiguous()
        if not plain or array.shape != (sizes[name],):
            raise ConfigError(
                f"forest.{name} is {array.dtype} of shape {tuple(array.shape)}, but must be "
                f"torch.int64 of shape ({sizes[name]},), side by side in memory."
            )
    places = {name: array.data_ptr() for name, array in arrays.items()}
    return places | {
        "levels": levels.data_ptr(),
        "level_count": len(levels) - 1,
        "N": N,
        "L": L,
        "M": M,
        "U": len(forest.words),
        "B": forest.trees,
    }
