"""Networks over trees as a user meets them: trees or texts in, labels, vectors and trees out."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, Self

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

from unrolled.errors import ConfigError, DataError
from unrolled.nn.trees import Tree, forest
from unrolled.tasks.shared.finite import numbers
from unrolled.tasks.shared.label_baselines import Baselines
from unrolled.tasks.shared.network_model import Answering, NetworkModel
from unrolled.tasks.shared.similar import similar_answers
from unrolled.tasks.shared.texts import text_list
from unrolled.tasks.task import Blocks
from unrolled.tasks.tree.answers import NodeAnswer, ReadTree, TracedTree
from unrolled.tasks.tree.data import ReadyTrees, TreeMaker, Trees, check_known
from unrolled.tasks.tree.network import TreeNetwork
from unrolled.tasks.tree.settings import PredictOptions, TreeRun
from unrolled.text.brackets import read_tree
from unrolled.text.labels import LABELS_FILE, Labels
from unrolled.text.trees import WordTree
from unrolled.text.vectors import WordVectors
from unrolled.text.word_encoder import WordEncoder

WORDS_AT_ONCE = 4096
BESIDE = "baselines."  # what the names of their tensors begin with


@dataclass(frozen=True)
class TreeModel(NetworkModel):
    """A trained network over trees, and the baselines that were fitted beside it."""

    settings: TreeRun
    encoder: WordEncoder
    labels: Labels | None  # None: it was trained without any
    network: TreeNetwork
    baselines: Baselines | None = None

    @classmethod
    def create(
        cls,
        settings: TreeRun,
        encoder: WordEncoder,
        labels: Labels | None,
        baselines: Baselines | None = None,
    ) -> Self:
        """A model with fresh weights, drawn from torch's generator."""
        network = TreeNetwork(settings.model, labels, encoder.words.counts)
        return cls(settings, encoder, labels, network, baselines)

    @classmethod
    def restore(cls, settings: TreeRun, files: Mapping[str, bytes]) -> Self:
        """The model that a folder's files describe, its weights still to be read."""
        lowercase = settings.tokens.lowercase
        encoder = WordEncoder.from_files(files, lowercase=lowercase, zero_digits=False)
        labels = None
        if LABELS_FILE in files:
            try:
                labels = Labels.from_json(files[LABELS_FILE].decode())
            except ValueError as error:
                raise ValueError(f"{LABELS_FILE}: {error}") from error
        if labels is None and settings.model.composition != "autoencoder":
            raise ValueError(f"{LABELS_FILE} is missing")
        baselines = None
        if labels is not None:
            size = len(encoder.words)
            baselines = Baselines.from_files(files, labels, vocabulary_size=size)
        return cls.create(settings, encoder, labels, baselines)

    def parts(self) -> Sequence[tuple[str, nn.Module]]:
        """The network, and the tables of the baselines."""
        beside = [(BESIDE, self.baselines)] if self.baselines else []
        return [("", self.network), *beside]

    def files(self) -> dict[str, bytes]:
        """Vocabularies, labels, and how large the baselines are."""
        return {
            **self.encoder.files(),
            **({LABELS_FILE: self.labels.to_json().encode()} if self.labels else {}),
            **(self.baselines.files() if self.baselines else {}),
        }

    def about(self) -> dict[str, Any]:
        """Sizes that a user would ask for, by name."""
        return {
            "parameters": self.parameter_count(),
            "vocabulary": len(self.encoder.words),
            "labels": len(self.labels) if self.labels else 0,
        }

    @property
    def is_greedy(self) -> bool:
        """Whether it builds its trees itself."""
        return self.settings.model.tree == "greedy"

    def use_vectors(self, vectors: WordVectors) -> int:
        """Begin with pretrained vectors; returns how many words have one."""
        width = self.network.embedding.size(1)
        if vectors.width != width:
            raise ConfigError(
                f"model.embedding_size is {width}, but the vectors have {vectors.width} numbers. "
                f"Set it to {vectors.width}."
            )
        places, rows = vectors.rows_for(self.encoder.words.tokens)
        self.network.use_vectors(torch.from_numpy(places), torch.from_numpy(vectors.vectors[rows]))
        return len(places)

    def answering(self) -> Mapping[str, Answering]:
        """What answers each use."""
        return {
            "predict": self._predicted,
            "trace": self._traced,
            "similar": partial(similar_answers, self),
        }

    def _predicted(
        self, blocks: Blocks, options: PredictOptions, source: Path | str
    ) -> Iterator[NodeAnswer]:
        row = 0
        for block in blocks:
            for found in self.read([given.tree for given in block]):
                row += 1
                yield NodeAnswer(found, row, options.show_vectors)

    def _traced(self, blocks: Blocks, options: Any, source: Path | str) -> Iterator[TracedTree]:
        for block in blocks:
            for row, given in enumerate(block, 1):
                (found,) = self.read([self.tree_of(given.text)])
                yield TracedTree(found, row)

    def tree_of(self, text: str, *, source: Path | str = "<text>") -> WordTree:
        """The tree that a text is, in brackets, or is made into."""
        plain = text.strip()
        if plain.startswith("(") and plain.endswith(")"):
            return read_tree(plain, source=source)
        return self.maker(source).tree(plain, None, 1)

    def _tree_or_words(self, text: str) -> WordTree:
        """The same; a text in brackets that is no tree is its words."""
        try:
            return self.tree_of(text)
        except DataError:
            return self.maker().tree(text, None, 1)

    def maker(self, source: Path | str = "<text>") -> TreeMaker:
        """What makes trees of texts: of a model of given trees, folds from the right."""
        made = TreeMaker.of(self.settings, source)
        return made._replace(how="right") if made.given else made

    def predict(self, texts: str | Iterable[str]) -> ReadTree | list[ReadTree]:
        """What the model says of each node of a text or tree, or of several."""
        found = self.read([self.tree_of(text) for text in text_list(texts)])
        return found[0] if isinstance(texts, str) else found

    def sentence_vectors(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """What the softmax would see of sentences (N, H)."""
        found = self.read([self._tree_or_words(text) for text in text_list(texts)])
        size = self.network.composition.hidden_size
        return np.array([each.vector for each in found], np.float32).reshape(-1, size)

    def ready(self, trees: Sequence[WordTree]) -> ReadyTrees:
        """Trees as the network reads them."""
        is_binary = self.settings.model.is_binary
        return ReadyTrees.of(trees, self.encoder, self.labels, is_binary=is_binary)

    def ready_to_judge(self, data: Trees) -> ReadyTrees:
        """The same of data, which must have labels that the model knows where it has any."""
        ready = self.ready(data.trees)
        if self.labels is not None:
            check_known(ready, self.labels, data)
        return ready

    def read(self, trees: Sequence[WordTree]) -> list[ReadTree]:
        """What the network makes of trees, in their order; an own builder's trees are new ones."""
        return self.read_ready(self.ready(trees))

    @torch.inference_mode()
    def read_ready(self, ready: ReadyTrees) -> list[ReadTree]:
        """The same of trees that are ready."""
        self.network.eval()
        found: dict[int, ReadTree] = {}
        for rows in _in_blocks(ready.lengths):
            found.update(zip(rows, self._read_some(ready, rows), strict=True))
        return [found[row] for row in range(len(ready))]

    def _read_some(self, ready: ReadyTrees, rows: Sequence[int]) -> Iterator[ReadTree]:
        trees, nodes = [ready.trees[row] for row in rows], [ready.nodes[row] for row in rows]
        steps = [_in_order(each) for each in nodes]
        if self.is_greedy:
            merged = self.network.merged([each.word[each.word >= 0] for each in nodes])
            nodes, steps = [each.tree for each in merged], [each.step for each in merged]
            trees = [_reshaped(*pair) for pair in zip(trees, nodes, strict=True)]
        laid = forest(nodes)
        reading = self.network(laid)
        at = torch.empty_like(laid.nodes)
        at[laid.nodes] = torch.arange(len(at))
        probabilities = None
        if self.labels is not None:
            logits = self.network.all_logits(laid, reading)[at]
            probabilities = logits.double().softmax(dim=1).numpy()
        errors = None
        if reading.errors is not None:
            errors = np.zeros(len(at))
            errors[laid.nodes[laid.inner].numpy()] = reading.errors.double().numpy()
        begin = 0
        for row, (tree, step) in enumerate(zip(trees, steps, strict=True)):
            own = slice(begin, begin + len(tree))
            begin += len(tree)
            yield ReadTree(
                tree,
                self.labels,
                None if probabilities is None else numbers(probabilities[own], of="a tree"),
                None if errors is None else numbers(errors[own], of="a tree"),
                step,
                numbers(reading.sentences[row].numpy(), of="a tree"),
            )


def _in_order(tree: Tree) -> NDArray[np.int64]:
    """When each inner node of a given tree is made, from the left and from below; −1: a leaf."""
    inner = tree.word < 0
    return np.where(inner, np.cumsum(inner) - 1, -1)


def _reshaped(tree: WordTree, built: Tree) -> WordTree:
    """The words of a tree in the shape that was built, with the label of its root."""
    labels = (*[None] * (len(built.parent) - 1), tree.label)
    return replace(tree, parents=built.parent, labels=labels)


def _in_blocks(lengths: NDArray[np.int64]) -> Iterator[list[int]]:
    """Rows, the shortest first: some that have WORDS_AT_ONCE together at most, or one."""
    block: list[int] = []
    words = 0
    for row in np.argsort(lengths, kind="stable").tolist():
        if block and words + lengths[row] > WORDS_AT_ONCE:
            yield block
            block, words = [], 0
        block.append(row)
        words += int(lengths[row])
    if block:
        yield block
