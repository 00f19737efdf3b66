"""Trees: read as they are, or texts of which trees are made; split, and made ready for a model."""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain, islice
from pathlib import Path
from typing import NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from unrolled.errors import DataError, shown
from unrolled.nn.trees import Tree, tree
from unrolled.tasks.tree.settings import RATES, SMALL_RATE, TreeData, TreeRun
from unrolled.text.brackets import read_tree, read_trees, written
from unrolled.text.formats import HEAD, recognise
from unrolled.text.holdout import cut_last, draw_stratified
from unrolled.text.labelled import FORMATS as LABELLED
from unrolled.text.labelled import Labelled, read_labelled
from unrolled.text.labels import Labels
from unrolled.text.source import Fingerprint, Source
from unrolled.text.tokens import END, SPECIALS
from unrolled.text.trees import Label, WordTree, binary, folded
from unrolled.text.word_encoder import WordEncoder
from unrolled.text.words import JOINER, WordTokeniser

FORMATS = ("trees", "text", *LABELLED)
SIGNS = ("negative", "positive")
MAX_WORDS = 1_000_000  # of one tree that is learned from


class LabelCheck:
    """Whether labels are what the settings say, and all numbers or all names."""

    def __init__(self, data: TreeData) -> None:
        self.data, self.numbers = data, data.neutral is not None or data.label_count is not None
        self.sure, self.first = self.numbers, ""

    def __call__(self, label: str) -> str:
        """What is wrong with a label, if anything."""
        is_number = label.isdecimal()
        if not self.sure:
            self.numbers, self.sure, self.first = is_number, True, label
        if is_number != self.numbers:
            before = f"{shown(self.first)} came first" if self.first else "numbers are expected"
            return (
                f"the label is {shown(label)}, but {before}: labels are all numbers or all names. "
                "What stands right behind a bracket is a label; put a space before a word."
            )
        count = self.data.label_count
        if count is not None and int(label[:9]) >= count:
            return f"the label is {shown(label)}, but must be in 0..{count - 1} (data.label_count)."
        return ""


@dataclass(frozen=True, eq=False)
class Trees:
    """The trees of a source; where they are made of texts, `given` says that they are not its."""

    trees: Sequence[WordTree]
    source: Path | str
    known_by: Fingerprint
    given: bool
    encoding: str = "utf-8"
    left_out: int = 0  # trees whose root is neutral
    labelled_texts: Labelled | None = None  # what trees were made of

    @classmethod
    def read(cls, source: Source, settings: TreeRun) -> Self:
        """All trees of a file."""
        lines = source.lines()
        found = read_any(lines, settings, source=source.path)
        trees = [relabelled(each, settings.data.neutral) for each in found.trees]
        kept = [each for each in trees if each is not None]
        if not kept:
            raise DataError(source.path, "holds no tree and no text, but there must be some.")
        return cls(
            kept,
            source.path,
            lines.fingerprint(),
            found.given,
            source.encoding,
            len(trees) - len(kept),
            found.labelled,
        )

    def fingerprint(self) -> Fingerprint:
        """By what to know the file again."""
        return self.known_by

    @property
    def labelled(self) -> bool:
        """Whether there is any label."""
        return any(label is not None for each in self.trees for label in each.labels)

    @property
    def labelled_inside(self) -> bool:
        """Whether a node that is no root has a label."""
        return any(label is not None for each in self.trees for label in each.labels[:-1])

    def split(self, share: float, seed: int) -> tuple[Self, Self]:
        """Draw a share of the trees, the same of each root's label; without labels the last."""
        if len(self.trees) < 2:
            raise DataError(
                self.source,
                "holds one tree, so none can be kept for development. Give more, or name --dev.",
            )
        roots = [each.label for each in self.trees]
        drawn = set(draw_stratified(roots, share, seed)) if self.labelled else set()
        if not drawn:
            kept, dev = cut_last(self.trees, share)
        else:
            kept = [each for number, each in enumerate(self.trees) if number not in drawn]
            dev = [self.trees[number] for number in sorted(drawn)]
        return replace(self, trees=kept), replace(self, trees=dev)


class Found(NamedTuple):
    """The trees of a file, as they come."""

    trees: Iterator[WordTree]
    given: bool  # by the file itself
    labelled: Labelled | None = None  # where they are made of labelled texts


def read_any(lines: Iterable[str], settings: TreeRun, *, source: Path | str) -> Found:
    """Trees of a file: bracketed, or folded texts with or without labels.

    Its name, its content and the settings say how to read it.
    """
    waiting, data = iter(lines), settings.data
    head = list(islice(waiting, HEAD))
    layout = recognise(head, name=source, among=FORMATS, wanted=data.format)
    every, check = chain(head, waiting), LabelCheck(data)
    if layout.format == "trees":
        return Found(read_trees(every, source=source, check=check), given=True)
    maker = TreeMaker.of(settings, source)
    if layout.format == "text":
        numbered = ((n, line) for n, line in enumerate(every, 1) if line.strip())
        return Found((maker.tree(line, None, n) for n, line in numbered), maker.given)
    found = read_labelled(every, source=source, data=data)
    return Found(_from_examples(found, maker, check), maker.given, found)


def _from_examples(found: Labelled, maker: "TreeMaker", check: "LabelCheck") -> Iterator[WordTree]:
    for labels, text, line in found.examples:
        if len(labels) != 1:
            raise DataError(
                maker.source, f"has {len(labels)} labels, but a tree's root has one.", line=line
            )
        if wrong := check(labels[0]):
            raise DataError(maker.source, wrong, line=line)
        yield maker.tree(text, labels[0], line)


class TreeMaker(NamedTuple):
    """Makes trees of texts: each is a tree itself, or its words are folded."""

    tokeniser: WordTokeniser
    how: str  # given, or how words are folded
    source: Path | str

    @classmethod
    def of(cls, settings: TreeRun, source: Path | str) -> Self:
        """What the settings say; a fold from the right stands where it is still to be said."""
        return cls(WordTokeniser(settings.tokens.splitter), settings.model.tree or "right", source)

    @property
    def given(self) -> bool:
        """Whether texts are trees."""
        return self.how == "given"

    def tree(self, text: str, label: Label, line: int) -> WordTree:
        """The tree of a text, with a label at its root."""
        if self.given:
            found = read_tree(text, source=self.source, line=line)
            labels = found.labels if label is None else (*found.labels[:-1], label)
            return replace(found, labels=labels)
        how = "right" if self.how == "greedy" else self.how
        return folded(self.words(text), how, label=label, line=line)

    def words(self, text: str) -> list[str]:
        """The words of a text; of an empty one its end."""
        found = self.tokeniser.split(text)
        plain = (word.removeprefix(JOINER) or word for word in found)
        return [written(word) for word in plain] or [SPECIALS[END]]


def relabelled(tree: WordTree, neutral: int | None) -> WordTree | None:
    """The tree with labels above and below the neutral one; None: its root has that one."""
    if neutral is None:
        return tree
    signs = {label: _sign(label, neutral) for label in {*tree.labels}}
    if tree.label is not None and signs[tree.label] is None:
        return None
    return replace(tree, labels=tuple(signs[label] for label in tree.labels))


def _sign(label: Label, neutral: int) -> Label:
    if label is None or int(label) == neutral:
        return None
    return SIGNS[int(label) > neutral]


def labels_of(trees: Sequence[WordTree], *, source: Path | str) -> Labels | None:
    """All labels of training trees, with how many nodes have each; None where there are none."""
    counts = Counter(label for each in trees for label in each.labels if label is not None)
    if not counts:
        return None
    if len(counts) < 2:
        raise DataError(
            source,
            f"all labels are {shown(next(iter(counts)))}, but a network chooses between 2 or more. "
            "Add trees with others.",
        )
    names = sorted(counts)
    return Labels(tuple(names), tuple(counts[name] for name in names), counts.total(), False)


@dataclass(frozen=True, eq=False)
class ReadyTrees:
    """Trees as a model reads them: words as ids, labels as numbers.

    A label that the training data do not have is a number behind theirs; −1: a node without one.
    """

    trees: Sequence[WordTree]
    nodes: Sequence[Tree]  # the same as arrays
    targets: Sequence[NDArray[np.int64]]  # (n,) of each
    unseen: tuple[str, ...] = ()

    def __len__(self) -> int:
        return len(self.trees)

    @property
    def lengths(self) -> NDArray[np.int64]:
        """Words of each tree."""
        return np.array([len(each.words) for each in self.trees])

    @property
    def roots(self) -> NDArray[np.int64]:
        """The targets of the roots."""
        return np.array([each[-1] for each in self.targets])

    @classmethod
    def of(
        cls,
        trees: Sequence[WordTree],
        encoder: WordEncoder,
        labels: Labels | None,
        *,
        is_binary: bool,
    ) -> Self:
        """Made ready for a model of these words and labels."""
        shaped = [binary(each) for each in trees] if is_binary else list(trees)
        encoded = encoder.encode([each.words for each in shaped])
        starts, nodes = encoded.ends - encoded.lengths, []
        for each, start in zip(shaped, starts, strict=True):
            word = np.full(len(each), -1)
            word[each.leaves] = encoded.words[start : start + len(each.words)]
            nodes.append(tree(each.parents, word))
        if labels is None:
            return cls(shaped, nodes, [np.full(len(each), -1) for each in shaped])
        found = {label for each in shaped for label in each.labels if label is not None}
        unseen = tuple(sorted(found.difference(labels.names)))
        ids: dict[Label, int] = {name: k for k, name in enumerate((*labels.names, *unseen))}
        ids[None] = -1
        targets = [np.array([ids[label] for label in each.labels]) for each in shaped]
        return cls(shaped, nodes, targets, unseen)


def settled(settings: TreeRun, train: Trees) -> TreeRun:
    """The settings, with what the training data say where something was left open."""
    model, data = settings.model, settings.data
    update: dict[str, object] = {}
    if model.tree is None:
        own = "greedy" if model.composition == "autoencoder" else "right"
        update["tree"] = "given" if train.given else own
    if model.labels is None:
        spread = "sentence" if model.composition == "autoencoder" else "root"
        update["labels"] = "nodes" if train.labelled_inside else spread
    if train.labelled_texts is not None:
        read = train.labelled_texts.settled(data)
        data = data.model_copy(update=read.model_dump(exclude_unset=True))
    if data.label_count is None and (count := _range(train)) is not None:
        data = data.model_copy(update={"label_count": count})
    chosen = model.model_copy(update=update) if update else model
    train_settings = settings.train
    if not {"train.learning_rate", "train.optimizer"} & settings.given():
        rate = RATES.get(model.composition, SMALL_RATE)
        train_settings = train_settings.model_copy(update={"learning_rate": rate})
    return settings.model_copy(update={"model": chosen, "data": data, "train": train_settings})


def _range(train: Trees) -> int | None:
    """How many labels there are where training labels are numbers from 0 on without a gap."""
    names = {label for each in train.trees for label in each.labels if label is not None}
    if not all(name.isdecimal() for name in names):
        return None
    numbers = {int(name) for name in names}
    return len(names) if len(names) > 1 and numbers == {*range(len(names))} else None


def check_known(ready: ReadyTrees, labels: Labels, data: Trees) -> None:
    """Refuse trees none of whose labels the training data have."""
    every = np.concatenate(list(ready.targets))
    if not ((every >= 0) & (every < len(labels))).any():
        seen = f"the labels {', '.join(ready.unseen[:10])}" if ready.unseen else "no labels"
        raise DataError(
            data.source,
            f"has {seen}, but must have some of the training data's: "
            f"{', '.join(labels.names[:10])}.",
            line=data.trees[0].line,
        )
