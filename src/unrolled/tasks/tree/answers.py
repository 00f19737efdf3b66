"""What a network over trees says of a tree: labels, errors, the order of merging, a vector."""

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from unrolled.text.brackets import write_tree
from unrolled.text.labels import Labels
from unrolled.text.trees import WordTree

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class ReadTree:
    """A tree of n nodes, and what the network makes of each."""

    given: WordTree
    names: Labels | None
    probabilities: Floats | None  # (n, K)
    errors: Floats | None  # (n,) of an autoencoder's reconstruction
    steps: NDArray[np.int64]  # (n,) when a node was made; −1: a leaf
    vector: NDArray[np.float32]  # (H,) of the sentence

    @cached_property
    def best(self) -> NDArray[np.int64]:
        """The number of the likeliest label of each node (n,)."""
        assert self.probabilities is not None
        return np.asarray(self.probabilities.argmax(axis=1))

    @cached_property
    def labels(self) -> list[str | None]:
        """The likeliest label of each node; None everywhere where there are no labels."""
        if self.names is None:
            return [None] * len(self.given)
        return [self.names.names[k] for k in self.best.tolist()]

    @property
    def label(self) -> str | None:
        """The likeliest label of the whole."""
        return self.labels[-1]

    @property
    def probability(self) -> float | None:
        """And how probable it is."""
        return None if self.probabilities is None else float(self.probabilities[-1].max())

    @property
    def error(self) -> float | None:
        """The error of all nodes together, where there is any."""
        return None if self.errors is None else float(self.errors.sum())

    @property
    def tree(self) -> str:
        """In brackets, with the labels that the network gives."""
        return write_tree(replace(self.given, labels=tuple(self.labels)))

    def nodes(self) -> list[dict[str, Any]]:
        """Every node with all that is known of it, children before their parent."""
        begins, ends = self.given.spans
        leaves, found = self.given.arities == 0, []
        for node in range(len(self.given)):
            words = self.given.words[begins[node] : ends[node]]
            value: dict[str, Any] = {
                "parent": int(self.given.parents[node]),
                "begin": int(begins[node]),
                "end": int(ends[node]),
            }
            if leaves[node]:
                value["word"] = words[0]
            else:
                value["step"] = int(self.steps[node]) + 1
            if self.probabilities is not None:
                value["label"] = self.labels[node]
                value["probability"] = float(self.probabilities[node].max())
            if self.errors is not None and not leaves[node]:
                value["error"] = float(self.errors[node])
            found.append(value)
        return found


@dataclass(frozen=True, eq=False)
class NodeAnswer:
    """The answer for one tree."""

    found: ReadTree
    row: int
    with_vector: bool
    remarks: tuple[str, ...] = ()

    def _values(self) -> dict[str, Any]:
        found = self.found
        own: dict[str, Any] = {}
        if found.label is not None:
            own = {"label": found.label, "probability": found.probability}
        if found.error is not None:
            own["error"] = found.error
        return own

    def text(self) -> str:
        """Label and probability, or the error, then the tree, then the vector if it is wanted."""
        values = [f"{v:.4f}" if isinstance(v, float) else str(v) for v in self._values().values()]
        vector = " ".join(f"{x:.5g}" for x in self.found.vector.tolist())
        return "\t".join([*values, self.found.tree, *([vector] if self.with_vector else [])])

    def as_json(self) -> dict[str, Any]:
        """The same, with all nodes; without labels always with the vector."""
        found = self.found
        vector = {"vector": found.vector.tolist()}
        return {
            "words": list(found.given.words),
            **self._values(),
            "tree": found.tree,
            "nodes": found.nodes(),
            **(vector if self.with_vector or found.names is None else {}),
        }

    def beside(self) -> dict[str, Any]:
        """Label and probability or error, and the tree."""
        own = self._values()
        named = {"label": "predicted_label"}
        return {
            **{named.get(key, key): value for key, value in own.items()},
            "tree": self.found.tree,
        }

    def chart(self) -> Any:
        """The tree."""
        return TracedTree(self.found, self.row).chart()


@dataclass(frozen=True, eq=False)
class TracedTree:
    """A tree node by node."""

    found: ReadTree
    row: int
    remarks: tuple[str, ...] = ()

    def text(self) -> str:
        """In brackets."""
        return self.found.tree

    def as_json(self) -> dict[str, Any]:
        """Words, nodes and the vector."""
        return NodeAnswer(self.found, self.row, with_vector=True).as_json()

    def chart(self) -> Any:
        """Labels, the order of merging and errors."""
        from unrolled.charts import parse_tree

        found = self.found
        return parse_tree(
            found.given.words,
            found.given.parents,
            labels=found.labels if found.names else None,
            probabilities=None if found.probabilities is None else found.probabilities.max(axis=1),
            steps=found.steps + 1,
            errors=found.errors,
            title=" ".join(found.given.words),
        )
