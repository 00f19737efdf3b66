"""Evaluate a network over trees: roots and all nodes, beside baselines that see phrases as texts.

root_accuracy          right labels of roots over all roots that have one
accuracy               the same of all nodes
reconstruction_error   without labels: the mean error of inner nodes; beside it that of vectors of 0
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from unrolled.evaluate.measure import Measure, Recipe, measured, quotient
from unrolled.evaluate.report import Report
from unrolled.evaluate.score import signature
from unrolled.evaluate.spans import ratio_of
from unrolled.tasks.shared.label_baselines import Baselines
from unrolled.tasks.tree.answers import ReadTree
from unrolled.tasks.tree.data import ReadyTrees
from unrolled.tasks.tree.model import TreeModel
from unrolled.text.ragged import Ragged
from unrolled.text.tokens import UNK
from unrolled.text.words import Ids, Lengths
from unrolled.training.clock import Dev

Floats = NDArray[np.float64]
Said = Sequence[NDArray[np.int64]]  # of each tree, the label of each node (n,)
TIE = 0.001  # what nats may add to the share of wrong labels
MOST_MISTAKES = 100


@dataclass(frozen=True, eq=False)
class Phrases:
    """The words below nodes, as texts: rows of the same ids, which overlap."""

    rows: Ragged

    @property
    def ids(self) -> Ids:
        """(N,)"""
        return self.rows.values

    @property
    def lengths(self) -> Lengths:
        """Words of each."""
        return self.rows.lengths

    def __len__(self) -> int:
        return len(self.rows)

    @classmethod
    def of(cls, data: ReadyTrees) -> "Phrases":
        """Of every node of all trees, one after the other."""
        begins, lengths, before = [], [], 0
        for tree in data.trees:
            first, last = tree.spans
            begins.append(first + before)
            lengths.append(last - first)
            before += len(tree.words)
        words = np.concatenate([each.word[each.word >= 0] for each in data.nodes])
        return cls(Ragged(words.astype(np.int32), np.concatenate(begins), np.concatenate(lengths)))


def evaluate_trees(model: TreeModel, data: ReadyTrees) -> Report:
    """Scores of a model on trees, beside the baselines'."""
    found = model.read_ready(data)
    if model.labels is None:
        scores = {"model": found, "zero_vectors": None}
        return Report.of(
            {name: [_error(model, data, found, zero=not own).score] for name, own in scores.items()}
        )
    said = {"model": [each.best for each in found], **_baselines(model, data)}
    scored = {name: [m.score for m in label_measures(data, own)] for name, own in said.items()}
    return Report.of(scored, details(model, data, said["model"]))


def tree_measures(model: TreeModel, data: ReadyTrees) -> list[Measure]:
    """The model's scores, with what they are made of."""
    found = model.read_ready(data)
    if model.labels is None:
        return [_error(model, data, found, zero=False)]
    return label_measures(data, [each.best for each in found])


def label_measures(data: ReadyTrees, said: Said) -> list[Measure]:
    """Of roots and of all nodes, resampled over trees."""
    pairs = list(zip(data.targets, said, strict=True))
    right = np.array([np.sum((own == target) & (target >= 0)) for target, own in pairs])
    nodes = np.array([np.sum(target >= 0) for target, _ in pairs])
    roots = np.array([int(target[-1] >= 0) for target, _ in pairs])
    right_roots = np.array([int(target[-1] == own[-1] >= 0) for target, own in pairs])
    labels = int(max((target.max() for target in data.targets), default=0)) + 1
    counted = {**_counted(data), "labelled": int(nodes.sum()), "labels": labels}
    recipe = signature(counted, resampled="trees")
    found = [ratio_of("root_accuracy", right_roots, roots, recipe)]
    if nodes.sum() > roots.sum():
        found.append(ratio_of("accuracy", right, nodes, recipe))
    return found


def _counted(data: ReadyTrees) -> dict[str, object]:
    return {
        "examples": len(data),
        "tokens": int(data.lengths.sum()),
        "unknown": sum(int(np.sum(each.word == UNK)) for each in data.nodes),
        "nodes": sum(map(len, data.trees)),
    }


def _error(model: TreeModel, data: ReadyTrees, found: Sequence[ReadTree], *, zero: bool) -> Measure:
    """The mean error of inner nodes, or that of children taken for vectors of zeros: 1 by 1."""
    inner = np.array([int(np.sum(each.steps >= 0)) for each in found])
    errors = np.array([each.error or 0.0 for each in found])
    amounts = inner.astype(np.float64) if zero else errors
    counts = np.stack([amounts, inner], axis=1).astype(np.float64)
    recipe = signature(_counted(data), resampled="trees")
    return measured(
        Recipe("reconstruction_error", recipe, higher_is_better=False), counts, quotient
    )


def _baselines(model: TreeModel, data: ReadyTrees) -> dict[str, Said]:
    """What the baselines say of every node."""
    shares = model.network.root_shares.numpy()
    sizes = np.cumsum([len(each) for each in data.trees])[:-1]
    majority = np.full(sum(map(len, data.trees)), int(shares.argmax()))
    found = {"majority": majority}
    if model.baselines is not None:
        found |= phrase_labels(model.baselines, Phrases.of(data))
    return {name: np.split(own, sizes) for name, own in found.items()}


def phrase_labels(baselines: Baselines, phrases: Phrases) -> dict[str, NDArray[np.int64]]:
    """What the learned baselines say of texts."""
    said = baselines.probabilities(phrases)
    return {name: said[name].argmax(axis=1) for name in ("mean_embedding", "linear")}


def dev_measure(model: TreeModel, data: ReadyTrees) -> Dev:
    """Right roots, nats settling ties; where no root has a label, right nodes; without labels the
    error.
    """
    found = model.read_ready(data)
    if model.labels is None:
        inner = sum(int(np.sum(each.steps >= 0)) for each in found)
        error = sum(each.error or 0.0 for each in found) / max(1, inner)
        return Dev("reconstruction_error", error, error)
    name = "root_accuracy" if (data.roots >= 0).any() else "accuracy"
    rows = slice(-1, None) if name == "root_accuracy" else slice(None)
    target = np.concatenate([each[rows] for each in data.targets])
    p = np.concatenate(
        [each.probabilities[rows] for each in found if each.probabilities is not None]
    )
    asked = target >= 0
    right = float(np.mean(p.argmax(axis=1)[asked] == target[asked]))
    known = asked & (target < p.shape[1])
    nats = (
        float(-np.log(np.maximum(p[known, target[known]], 1e-300)).mean()) if known.any() else 0.0
    )
    return Dev(name, right, 1.0 - right + TIE * nats / (1.0 + nats))


def details(model: TreeModel, data: ReadyTrees, said: Said) -> dict[str, Any]:
    """Rates of each label at the roots, what was taken for what, and labels never seen."""
    assert model.labels is not None
    names = [*model.labels.names, *data.unseen]
    target = data.roots
    own = np.array([each[-1] for each in said])[target >= 0]
    target = target[target >= 0]
    found: dict[str, Any] = {"by_label": _rates(target, own, names)}
    table: dict[str, dict[str, int]] = {names[k]: {} for k in np.unique(target).tolist()}
    for true, given in zip(target.tolist(), own.tolist(), strict=True):
        table[names[true]][names[given]] = table[names[true]].get(names[given], 0) + 1
    found["confusion"] = table
    if data.unseen:
        every = np.concatenate(list(data.targets))
        counts = {name: int(np.sum(every == names.index(name))) for name in data.unseen}
        found["labels_not_in_training_data"] = counts
    return found


def _rates(
    target: NDArray[np.int64], own: NDArray[np.int64], names: Sequence[str]
) -> dict[str, dict[str, float]]:
    found = {}
    for k, name in enumerate(names):
        right, given, true = (
            np.sum(m) for m in ((target == k) & (own == k), own == k, target == k)
        )
        found[name] = {
            "precision": float(right / max(given, 1)),
            "recall": float(right / max(true, 1)),
            "f1": float(2.0 * right / max(given + true, 1)),
            "count": int(true),
        }
    return found


@torch.no_grad()
def keep_root_shares(model: TreeModel, data: ReadyTrees) -> None:
    """How often training trees have each label at their root, for the majority's sake."""
    if model.labels is not None:
        roots = data.roots[data.roots >= 0]
        every = np.concatenate(list(data.targets))
        counted = roots if len(roots) else every[every >= 0]
        counts = np.bincount(counted, minlength=len(model.labels))
        model.network.root_shares.copy_(torch.from_numpy(counts / counts.sum()))
