"""The bridge to the compiled kernels of networks over binary trees.

The kernels are given addresses. Shapes and types are compared here; the places and words of a
forest are read once, checked and copied by the kernels themselves.
"""

from collections.abc import Sequence
from functools import partial
from typing import Any, NamedTuple, Protocol

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from unrolled.errors import ConfigError
from unrolled.native import module as _kernels
from unrolled.nn.addresses import address, in_memory
from unrolled.nn.kernel_layer import only_numbers
from unrolled.nn.kernels import TYPES
from unrolled.nn.shapes import check_dims, check_tensor
from unrolled.nn.threads import threads
from unrolled.nn.transforms import is_ordinary
from unrolled.nn.tree_fold import differentiable_gradients
from unrolled.nn.trees import Forest


class Node(NamedTuple):
    """What the kernels know of a composition: σ(W [c₁; c₂] + b), or gates of that."""

    number: int  # as csrc/tree.hpp has it
    gates: int

    def kept(self, H: int) -> int:
        """Numbers that an inner node keeps for the way back."""
        return {0: 0, 1: 1, 2: 6 * H}[self.number]


TANH = Node(0, 1)
UNIT_TANH = Node(1, 1)  # of length 1
LSTM = Node(2, 5)


class Plain(Protocol):
    """What the kernels compute, in operators that torch differentiates at will."""

    def __call__(self, forest: Forest, x: Tensor, *weights: Tensor) -> Tensor:
        """(N, H)"""
        ...


def can_run(tensors: Sequence[Tensor]) -> bool:
    """Whether the kernels are there and take these tensors, all of one type."""
    if _kernels is None or not is_ordinary(tensors):
        return False
    dtype = tensors[0].dtype
    return dtype in TYPES and all(t.is_cpu and t.dtype == dtype for t in tensors)


def compose(node: Node, plain: Plain, forest: Forest, *tensors: Tensor) -> Tensor:
    """The vectors (N, H) of all nodes by place.

    tensors: x (U, E) of the distinct words, W (G·H, 2H) and b (G·H,); of an LSTM also what x is
    multiplied by, (3H, E). plain: the same in torch's operators.
    """
    if torch.is_grad_enabled() and any(t.requires_grad for t in tensors):
        result: Tensor = _Trees.apply(node, plain, forest, *tensors)  # type: ignore[no-untyped-call]
        return result
    return _Call(node, forest, tensors).forward(save=False).h


class _Trees(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, node: Node, plain: Plain, forest: Forest, *tensors: Tensor) -> Tensor:
        made = _Call(node, forest, tensors).forward(save=True)
        ctx.node, ctx.plain, ctx.forest, ctx.count = node, plain, forest, len(tensors)
        ctx.save_for_backward(*tensors, *made)
        return made.h

    @staticmethod
    def backward(ctx: Any, upstream: Tensor) -> tuple[Any, ...]:
        tensors, made = ctx.saved_tensors[: ctx.count], ctx.saved_tensors[ctx.count :]
        wanted = ctx.needs_input_grad[3:]
        if not only_numbers([upstream]):
            plain = partial(ctx.plain, ctx.forest)
            return None, None, None, *differentiable_gradients(plain, tensors, upstream, wanted)
        call = _Call(ctx.node, ctx.forest, tensors)
        return None, None, None, *call.backward(_Made(*made), upstream, wanted)


class _Made(NamedTuple):
    """What the way forth leaves for the way back; None where there is none."""

    h: Tensor  # (N, H)
    c: Tensor | None = None  # (N, H)
    words: Tensor | None = None  # (U, 2H)
    kept: Tensor | None = None
    words_kept: Tensor | None = None  # (U, 4H)


class _Call:
    """A forest and tensors that fit it and one another."""

    def __init__(self, node: Node, forest: Forest, tensors: Sequence[Tensor]) -> None:
        x, weight, bias, *own = tensors
        check_dims("the weights of a tree", weight, 2, "(G·H, 2H)")
        check_dims("the words' vectors", x, 2, "(U, E)")
        H = weight.size(1) // 2
        E = x.size(1) if node is LSTM else H
        check_tensor("the words' vectors", x, (len(forest.words), E), x)
        check_tensor("the weights of a tree", weight, (node.gates * H, 2 * H), x)
        check_tensor("the bias of a tree", bias, (node.gates * H,), x)
        for each in own:
            check_tensor("the weights of words", each, (3 * H, E), x)
        self.node, self.H, self.N, self.M = node, H, len(forest.nodes), len(forest.inner)
        self.tensors = [in_memory(t) for t in tensors]
        self.levels = torch.tensor(forest.levels)
        self.layout = _layout(forest, self.levels)

    def forward(self, *, save: bool) -> _Made:
        """h and, of an LSTM, c (N, H), and what the way back needs."""
        x, H = self.tensors[0], self.H
        is_lstm = self.node is LSTM
        made = _Made(
            h=x.new_empty(self.N, H),
            c=x.new_empty(self.N, H) if is_lstm else None,
            words=x.new_empty(len(x), 2 * H) if is_lstm else None,
            kept=x.new_empty(self.M, self.node.kept(H)) if save else None,
            words_kept=x.new_empty(len(x), 4 * H) if save and is_lstm else None,
        )
        self._run("tree_forward", made)
        return made

    def backward(
        self, made: _Made, upstream: Tensor, wanted: Sequence[bool]
    ) -> list[Tensor | None]:
        """The gradients of all tensors; those that nobody wants may be None."""
        check_tensor("the gradient", upstream, (self.N, self.H), made.h)
        dx, *others = (
            torch.empty_like(t) if is_wanted or t is self.tensors[0] else None
            for t, is_wanted in zip(self.tensors, wanted, strict=True)
        )
        dwords = dx if made.words is None else torch.empty_like(made.words)
        names = ("dweights", "dbias", "dx_weights")
        results = dict(zip(names, others, strict=False))
        whole = in_memory(upstream)
        self._run("tree_backward", made, dh=whole, dwords=dwords, dx=dx, **results)
        return [dx, *others]

    def _run(self, name: str, made: _Made, **tensors: Tensor | None) -> None:
        x, weight, bias, *own = self.tensors
        make = _kernels.TreeCall64 if x.dtype == torch.float64 else _kernels.TreeCall32
        states = made._asdict() | ({} if own else {"words": x})
        call = make(
            node=self.node.number,
            H=self.H,
            E=x.size(1),
            x=address(x if own else None),
            x_weights=address(own[0] if own else None),
            weights=weight.data_ptr(),
            bias=bias.data_ptr(),
            **self.layout,
            **{key: address(tensor) for key, tensor in (states | tensors).items()},
        )
        getattr(_kernels, name)(call, threads=threads())


class Built(NamedTuple):
    """Nodes of all sentences' trees in post-order, as `Tree` and `Merged` have them."""

    parent: NDArray[np.int64]
    word: NDArray[np.int64]
    height: NDArray[np.int64]
    leaves: NDArray[np.int64]
    step: NDArray[np.int64]
    error: NDArray[np.float64]


def greedy(
    node: Node,
    ids: NDArray[np.int64],
    lengths: NDArray[np.int64],
    tensors: Sequence[Tensor],
    *,
    weighted: bool,
) -> Built:
    """Trees by the lowest reconstruction error, of sentences of these lengths.

    ids: all words, each in 0..V − 1, in an array that no other thread changes; tensors: vectors
    (V, H), weights (H, 2H), bias (H,), decoder (2H, H) and its bias (2H,).
    """
    vectors, H = tensors[0], tensors[0].size(1)
    shapes = [(len(vectors), H), (H, 2 * H), (H,), (2 * H, H), (2 * H,)]
    names = ("vectors", "weights", "bias", "decoder", "decoder_bias")
    for name, tensor, shape in zip(names, tensors, shapes, strict=True):
        check_tensor(name, tensor, shape, vectors)
    whole = {name: in_memory(t) for name, t in zip(names, tensors, strict=True)}
    starts = np.concatenate([[0], np.cumsum(lengths)])
    if starts[-1] != len(ids) or int(ids.min()) < 0 or int(ids.max()) >= len(vectors):
        raise ConfigError("the sentences are not made of the words that have vectors.")
    total = 2 * len(ids) - len(lengths)
    parent, word, height, leaves, step = np.empty((5, total), np.int64)
    built = Built(parent, word, height, leaves, step, np.empty(total))
    make = _kernels.GreedyCall64 if vectors.dtype == torch.float64 else _kernels.GreedyCall32
    call = make(
        ids=ids.ctypes.data,
        starts=starts.ctypes.data,
        B=len(lengths),
        H=H,
        node=node.number,
        weighted=int(weighted),
        **{name: t.data_ptr() for name, t in whole.items()},
        **{name: array.ctypes.data for name, array in built._asdict().items()},
    )
    _kernels.tree_greedy(call, threads=threads())
    return built


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
