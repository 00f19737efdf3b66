"""A beam search as the tree that it walked, to be drawn."""

import math
from collections.abc import Iterable, Iterator
from typing import Literal, NamedTuple

from unrolled.decode.beam import BeamStep
from unrolled.decode.hypothesis import normalised
from unrolled.errors import ConfigError

NodeState = Literal["open", "finished", "pruned", "best"]


class Node(NamedTuple):
    """A sequence that the search looked at, as its last token."""

    id: int  # its place in the list; parents come before their children
    parent: int | None  # None for the root, which is the empty sequence
    token: int | None
    log_probability: float  # of all tokens from the root to here
    score: float  # the same, normalised by length
    state: NodeState  # best: it lies on the way to the result


def beam_tree(steps: Iterable[BeamStep], *, alpha: float) -> list[Node]:
    """The nodes of one sentence's search, from the records that a watcher was given.

    alpha must be the search's own. The result is the finished node of the highest score or, where
    none finished, the best of those that were open at the end.
    """
    nodes = [Node(0, None, None, 0.0, 0.0, "open")]
    places = {0: 0}  # the nodes that the last step kept
    for length, step in enumerate(steps, start=1):
        before, places = places, {}
        for column, parent, token, log_p, state in _columns(step):
            if column < step.width:
                places[column] = len(nodes)
            score = normalised(log_p, length, alpha)
            nodes.append(Node(len(nodes), before[parent], token, log_p, score, state))
    return _marked(nodes, places.values())


def _columns(step: BeamStep) -> Iterator[tuple[int, int, int, float, NodeState]]:
    """The candidates of a step: column, parent, token, log-probability and what became of it."""
    if len(step.sentences) != 1:
        raise ConfigError(
            f"A step has {len(step.sentences)} sentences, but a tree shows one. "
            "Search for one sentence at a time."
        )
    for column, log_p in enumerate(step.log_p[0].tolist()):
        if log_p > -math.inf:
            ended: NodeState = "finished" if step.ended[0, column] else "open"
            state: NodeState = ended if column < step.width else "pruned"
            yield column, int(step.parents[0, column]), int(step.tokens[0, column]), log_p, state


def _marked(nodes: list[Node], last: Iterable[int]) -> list[Node]:
    """The same nodes, the way from the root to the result marked."""
    finished = [node for node in nodes if node.state == "finished"]
    ends = finished or [nodes[id] for id in last]
    node = max(ends, key=lambda node: node.score, default=nodes[0])  # the first of equal ones
    while node.parent is not None:
        nodes[node.id] = node._replace(state="best")
        node = nodes[node.parent]
    return nodes
