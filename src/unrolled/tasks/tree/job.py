"""A network over trees made ready for training: words, labels, batches, development trees."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from unrolled.config.sections import TrainSettings
from unrolled.errors import ConfigError, DataError
from unrolled.nn.trees import forest
from unrolled.tasks.shared.batch_size import with_batch_tokens
from unrolled.tasks.shared.label_baselines import Baselines
from unrolled.tasks.shared.lines import in_training, with_dev
from unrolled.tasks.shared.word_vectors import pretrained
from unrolled.tasks.tree.baselines import fit_baselines
from unrolled.tasks.tree.data import MAX_WORDS, ReadyTrees, Trees, labels_of
from unrolled.tasks.tree.model import TreeModel
from unrolled.tasks.tree.network import Sentences, TreeBatch
from unrolled.tasks.tree.report import dev_measure, evaluate_trees, keep_root_shares
from unrolled.tasks.tree.settings import TreeRun
from unrolled.tasks.tree.update import TreeUpdate
from unrolled.text.buckets import Buckets, Places
from unrolled.text.tokens import UNK
from unrolled.text.vectors import WordVectors
from unrolled.text.word_encoder import WordEncoder
from unrolled.training.clock import Dev
from unrolled.training.job import HELD_OUT, Reports, StepJob
from unrolled.training.update import Update

Batch = TreeBatch | Sentences


class TreeBatches(Buckets[Batch]):
    """Trees of about as many words in each batch, at most `batch_tokens` of them."""

    def __init__(
        self, data: ReadyTrees, targets: Sequence[NDArray[np.int64]], *, batch_tokens: int
    ) -> None:
        super().__init__(data.lengths, batch_tokens=batch_tokens)
        self.data, self.targets = data, targets

    def build(self, rows: Places) -> TreeBatch:
        trees = forest([self.data.nodes[row] for row in rows.tolist()])
        return TreeBatch.of(trees, [self.targets[row] for row in rows.tolist()])


class SentenceBatches(Buckets[Batch]):
    """The same of sentences whose trees are still to be built."""

    def __init__(self, data: ReadyTrees, *, batch_tokens: int) -> None:
        super().__init__(data.lengths, batch_tokens=batch_tokens)
        self.words = [each.word[each.word >= 0] for each in data.nodes]
        self.roots = data.roots.tolist()

    def build(self, rows: Places) -> Sentences:
        places = rows.tolist()
        return Sentences([self.words[row] for row in places], [self.roots[row] for row in places])


@dataclass(frozen=True)
class TreeJob(StepJob[TreeModel]):
    """A network over trees, the trees to learn from and those to be judged on."""

    unit = "trees"

    model: TreeModel
    trees: ReadyTrees
    dev_trees: ReadyTrees
    test_trees: ReadyTrees | None = None
    found: Mapping[str, float] = field(default_factory=dict)  # more facts

    @property
    def train(self) -> TrainSettings:
        """The settings of training."""
        return self.model.settings.train

    @cached_property
    def batches(self) -> Buckets[Batch]:
        """The training trees."""
        batch_tokens = self.train.batch_tokens
        if self.model.is_greedy:
            return SentenceBatches(self.trees, batch_tokens=batch_tokens)
        how = self.model.settings.model.labels or "nodes"
        targets = [TARGETS[how](each) for each in self.trees.targets]
        return TreeBatches(self.trees, targets, batch_tokens=batch_tokens)

    def epoch(self, seed: int, epoch: int) -> Sequence[Batch]:
        """The batches of an epoch, the same for the same arguments."""
        return self.batches.epoch(seed, epoch)

    def size(self, batch: Batch) -> int:
        """How many trees it holds."""
        return batch.forest.trees if isinstance(batch, TreeBatch) else len(batch.words)

    def update(self) -> Update:
        """Gradients, those of words for the rows that were read alone."""
        return TreeUpdate(self.model, self.train)

    def facts(self) -> dict[str, float]:
        """What there is to learn from, and how well the other files fit to it."""
        others = {"dev": self.dev_trees, "test": self.test_trees}
        return {
            "lines": len(self.trees),
            "tokens": int(self.trees.lengths.sum()),
            "unknown": _unknown(self.trees),
            "vocabulary": len(self.model.encoder.words),
            "nodes": sum(map(len, self.trees.trees)),
            "labels": len(self.model.labels) if self.model.labels else 0,
            "padding": 0.0,
            HELD_OUT: len(self.dev_trees),
            **{
                f"{name}_unknown": _unknown(data)
                for name, data in others.items()
                if data is not None
            },
            **self.found,
        }

    def dev(self) -> Dev:
        """How many development roots are right, or how large the error is."""
        return dev_measure(self.model, self.dev_trees)

    @cached_property
    def baselines(self) -> Baselines | None:
        """The mean of embeddings and the linear model, fitted on the training phrases."""
        if self.model.labels is None:
            return None
        size, seed = len(self.model.encoder.words), self.seed
        return fit_baselines(self.trees, self.model.labels, vocabulary_size=size, seed=seed)

    def with_baselines(self) -> TreeModel:
        """The model and their tables."""
        return replace(self.model, baselines=self.baselines)

    def reports(self, model: TreeModel) -> Reports:
        """Scores of a finished model on the dev data and, where there are any, the test data."""
        files = {"dev": self.dev_trees, "test": self.test_trees}
        return Reports({name: evaluate_trees(model, data) for name, data in files.items() if data})


def _root_alone(targets: NDArray[np.int64]) -> NDArray[np.int64]:
    alone = np.full_like(targets, -1)
    alone[-1] = targets[-1]
    return alone


TARGETS: Mapping[str, Callable[[NDArray[np.int64]], NDArray[np.int64]]] = {
    "nodes": lambda targets: targets,
    "root": _root_alone,
    "sentence": lambda targets: np.full_like(targets, targets[-1]),
}


def _unknown(data: ReadyTrees) -> int:
    return sum(int(np.sum(each.word == UNK)) for each in data.nodes)


def tree_job(settings: TreeRun, data: Mapping[str, Trees]) -> TreeJob:
    """Words and labels come from the training trees alone."""
    train = data["train"]
    _check(settings, train)
    labels = labels_of(train.trees, source=train.source)
    given, data = data, with_dev(data, settings.train.holdout, settings.seed)
    vectors = _vectors(settings, data["train"])
    encoder = build_encoder(settings, data["train"], vectors)
    words = sum(len(each.words) for each in data["train"].trees)
    settings = with_batch_tokens(settings, words)
    model = TreeModel.create(settings, encoder, labels)
    ready = {name: model.ready_to_judge(split) for name, split in data.items()}
    keep_root_shares(model, ready["train"])
    found: dict[str, float] = in_training(
        given, lambda split: (" ".join(each.words) for each in split.trees)
    )
    if vectors is not None:
        found = {"vectors_found": model.use_vectors(vectors), **found}
    return TreeJob(model, ready["train"], ready["dev"], ready.get("test"), found)


def build_encoder(settings: TreeRun, data: Trees, vectors: WordVectors | None) -> WordEncoder:
    """The vocabulary of the training trees, and of the words that have pretrained vectors."""
    tokens = settings.tokens
    return WordEncoder.build(
        (each.words for each in data.trees),
        lowercase=tokens.lowercase,
        min_count=tokens.min_count,
        max_size=tokens.max_size,
        more=() if vectors is None else vectors.words,
    )


def _vectors(settings: TreeRun, data: Trees) -> WordVectors | None:
    model = settings.model
    if model.vectors is None:
        return None
    words = {word for each in data.trees for word in each.words}
    wanted = words | {word.lower() for word in words}
    most, encoding = model.vector_words, data.encoding
    return pretrained(model.vectors, wanted=wanted, most=most, encoding=encoding)


def _check(settings: TreeRun, train: Trees) -> None:
    """Refuse what cannot be learned from."""
    if not train.labelled and settings.model.composition != "autoencoder":
        raise ConfigError(
            f"{train.source} has no labels, and without them only an autoencoder learns; "
            f'model.composition is "{settings.model.composition}". Set it to "autoencoder", or '
            "give labels: bracketed trees, or label, tab and text on each line."
        )
    if settings.model.freeze_vectors and settings.model.vectors is None and train.labelled:
        raise ConfigError(
            "model.freeze_vectors is true, but there are no vectors to freeze. Name a file with "
            "model.vectors."
        )
    for each in train.trees:
        if len(each.words) > MAX_WORDS:
            raise DataError(
                train.source,
                f"the tree that begins here has {len(each.words):,} words, but one that is learned "
                f"from may have {MAX_WORDS:,}.",
                line=each.line,
            )
