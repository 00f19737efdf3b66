"""A composition run over a forest, level by level: every level's nodes in one product.

Through autograd's own eyes each level would read from all nodes below, and its way back would
write zeros for all of them: time quadratic in the depth. Here each level has a small graph of its
own, all write to one matrix of states, and the way back goes level by level through one matrix of
gradients. Where more than numbers is asked of it, `plain_fold` runs, which torch differentiates
at will.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple, Protocol

import torch
from torch import Tensor

from unrolled.errors import ConfigError
from unrolled.nn.kernel_layer import only_numbers
from unrolled.nn.transforms import is_ordinary
from unrolled.nn.trees import Forest


class Join(Protocol):
    """A parent's state from its children's."""

    def __call__(self, weights: Sequence[Tensor], children: Tensor, owner: Tensor) -> Tensor:
        """States (n, S) of n parents.

        children (m, S) lie side by side; owner (m,) says whose they are, from 0 to n − 1.
        """
        ...


class Level(NamedTuple):
    """Inner nodes of one height."""

    places: Tensor  # (n,) where their states go
    children: slice  # where those of their children are
    owner: Tensor  # (m,) whose child each is


def levels(forest: Forest) -> Iterator[Level]:
    """From the leaves' parents to the highest root."""
    first = forest.first
    arity = first.diff()
    for begin, end in zip(forest.levels, forest.levels[1:], strict=False):
        children = slice(int(first[begin]), int(first[end]))
        owner = torch.arange(end - begin).repeat_interleave(arity[begin:end])
        yield Level(forest.inner[begin:end], children, owner)


def fold(join: Join, weights: Sequence[Tensor], forest: Forest, states: Tensor) -> Tensor:
    """The states (N, S) of all nodes by place, of those of the distinct words (U, S)."""
    if states.dim() != 2 or len(states) != len(forest.words):
        raise ConfigError(
            f"the words' vectors are of shape {tuple(states.shape)}, but must be "
            f"({len(forest.words)}, …): one for each distinct word of the forest."
        )
    tensors = [states, *weights]
    if not is_ordinary(tensors):
        return plain_fold(join, weights, forest, states)
    if torch.is_grad_enabled() and any(t.requires_grad for t in tensors):
        result: Tensor = _Fold.apply(join, forest, *tensors)  # type: ignore[no-untyped-call]
        return result
    nodes = _with_leaves(forest, states)
    for level in levels(forest):
        nodes[level.places] = join(weights, nodes[level.children], level.owner)
    return nodes


def plain_fold(join: Join, weights: Sequence[Tensor], forest: Forest, states: Tensor) -> Tensor:
    """The same, by operators that can be differentiated again."""
    where = torch.empty_like(forest.nodes)
    where[forest.leaves] = torch.arange(len(forest.leaves))
    where[forest.inner] = torch.arange(len(forest.leaves), len(where))
    done = states.index_select(0, forest.word)  # (L, S), and more with every level
    for level in levels(forest):
        children = done.index_select(0, where[level.children])
        done = torch.cat([done, join(weights, children, level.owner)])
    return done.index_select(0, where)  # (N, S)


def _with_leaves(forest: Forest, states: Tensor) -> Tensor:
    """Room for all states, with those of the leaves in their places."""
    nodes = states.new_empty(len(forest.nodes), states.size(1))
    nodes[forest.leaves] = states.index_select(0, forest.word)
    return nodes


class _Fold(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, join: Join, forest: Forest, states: Tensor, *weights: Tensor) -> Tensor:
        ctx.join, ctx.forest = join, forest
        ctx.save_for_backward(states, *weights)
        nodes = _with_leaves(forest, states)
        ctx.own = [w.detach().requires_grad_(w.requires_grad) for w in weights]
        ctx.graphs = []
        for level in levels(forest):
            children = nodes.data[level.children].requires_grad_()  # no later write counts as one
            with torch.enable_grad():
                parents = join(ctx.own, children, level.owner)
            nodes[level.places] = parents.detach()
            ctx.graphs.append((level, children, parents))
        return nodes

    @staticmethod
    def backward(ctx: Any, upstream: Tensor) -> tuple[Any, ...]:
        states = ctx.saved_tensors[0]
        if not only_numbers([upstream]):
            wanted = ctx.needs_input_grad[2:]

            def plain(states: Tensor, *weights: Tensor) -> Tensor:
                return plain_fold(ctx.join, weights, ctx.forest, states)

            made = differentiable_gradients(plain, ctx.saved_tensors, upstream, wanted)
            return None, None, *made
        gradient = upstream.clone(memory_format=torch.contiguous_format)
        learned = [w for w in ctx.own if w.requires_grad]
        sums = [torch.zeros_like(w) for w in learned]
        for level, children, parents in reversed(ctx.graphs):
            above = gradient.index_select(0, level.places)
            down, *parts = torch.autograd.grad(parents, [children, *learned], above, True)
            gradient[level.children] += down
            for total, part in zip(sums, parts, strict=True):
                total += part
        by_weight = iter(sums)
        by_weights = [next(by_weight) if w.requires_grad else None for w in ctx.own]
        leaves = gradient.index_select(0, ctx.forest.leaves)
        by_states = torch.zeros_like(states).index_add_(0, ctx.forest.word, leaves)
        return None, None, by_states, *by_weights


def differentiable_gradients(
    plain: Callable[..., Tensor],
    tensors: Sequence[Tensor],
    upstream: Tensor,
    wanted: Sequence[bool],
) -> list[Tensor | None]:
    """The gradients of plain(*tensors) that are wanted, to be differentiated again."""
    with torch.enable_grad():
        # A view each: the gradient by one must not go on into others that were made of it.
        own = [t.view_as(t) for t in tensors]
        result = plain(*own)
    asked = [t for t, is_wanted in zip(own, wanted, strict=True) if is_wanted]
    graph = torch.is_grad_enabled()
    made = torch.autograd.grad(result, asked, upstream, create_graph=graph, materialize_grads=True)
    found = iter(made)
    return [next(found) if is_wanted else None for is_wanted in wanted]
