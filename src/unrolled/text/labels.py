"""The labels that a classifier chooses from: fixed when built and saved with the model."""

import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from reprlib import repr as short

import numpy as np
from numpy.typing import NDArray

from unrolled.errors import DataError
from unrolled.text.labelled import BETWEEN, Example
from unrolled.text.vocabulary import parse_object

LABELS_FILE = "labels.json"
MAX_LABELS = 10_000
NO_LABEL = "(none)"
Targets = NDArray[
    np.int64
]  # (N,) which label, or, where a text may have several, (N, K) of 0 and 1


@dataclass(frozen=True)
class Labels:
    """Names in code point order, and how many training examples have each.

    Where a training example has no label or more than one (`multi_label`), each label is a
    question of its own, yes or no; otherwise one label excludes the others.
    """

    names: tuple[str, ...]
    counts: tuple[int, ...]
    examples: int
    multi_label: bool

    @classmethod
    def build(
        cls, examples: Sequence[Example], *, source: Path | str, multi_label: bool = False
    ) -> "Labels":
        """The labels of the training examples; `multi_label`: a text may have any number."""
        counts = Counter(label for example in examples for label in example.labels)
        multi_label = multi_label or any(len(example.labels) != 1 for example in examples)
        if len(counts) < 2 - multi_label:
            which = f"the label {short(next(iter(counts)))}" if counts else "no label"
            raise DataError(
                source,
                f"all {len(examples)} examples have {which}, but a classifier chooses between 2 "
                "or more. Add examples of others.",
            )
        if len(counts) > MAX_LABELS:
            raise DataError(
                source,
                f"has {len(counts)} different labels, but at most {MAX_LABELS} are allowed. "
                "Check that the label comes first and the text second.",
            )
        names = sorted(counts)
        return cls(tuple(names), tuple(counts[name] for name in names), len(examples), multi_label)

    def __len__(self) -> int:
        return len(self.names)

    def unseen(self, examples: Sequence[Example]) -> tuple[str, ...]:
        """The labels of examples that the training data do not have, in code point order."""
        found = {label for example in examples for label in self._said(example)}
        return tuple(sorted(found.difference(self.names)))

    def _said(self, example: Example) -> tuple[str, ...]:
        """What is to be said of an example. Where one label excludes others, several are one more,
        which the training data do not have; so is none."""
        if self.multi_label or len(example.labels) == 1:
            return example.labels
        return (BETWEEN.join(example.labels) or NO_LABEL,)

    def targets(self, examples: Sequence[Example], *, source: Path | str) -> Targets:
        """What a model is to say of examples: (N,), or (N, K) where a text may have several.

        Labels that the training data do not have, which no model can say, follow behind the K.
        """
        names = [*self.names, *self.unseen(examples)]
        ids = {name: number for number, name in enumerate(names)}
        self._check_known(examples, source)
        if not self.multi_label:
            return np.array([ids[self._said(example)[0]] for example in examples], dtype=np.int64)
        targets = np.zeros((len(examples), len(names)), dtype=np.int64)
        for row, example in enumerate(examples):
            targets[row, [ids[label] for label in example.labels]] = 1
        return targets

    def _check_known(self, examples: Sequence[Example], source: Path | str) -> None:
        """Refuse examples of which none has a label of the training data."""
        found = {label for example in examples for label in self._said(example)}
        if found and found.isdisjoint(self.names):
            raise DataError(
                source,
                f"has the labels {short(sorted(found))}, but the training data have others alone: "
                f"{short(list(self.names))}. Check the columns: --label-column and --text-column.",
                line=examples[0].line,
            )

    @property
    def shares(self) -> NDArray[np.float64]:
        """The share of the training examples that have each label (K,)."""
        return np.asarray(self.counts, dtype=np.float64) / self.examples

    def to_json(self) -> str:
        """The same text for the same labels, always."""
        value = {"labels": self.names, "counts": self.counts, "examples": self.examples}
        return json.dumps(value | {"several": self.multi_label}, ensure_ascii=False) + "\n"

    @classmethod
    def from_json(cls, text: str) -> "Labels":
        """What `to_json` wrote; ValueError with the reason for anything else."""
        value = parse_object(text, keys={"labels", "counts", "examples", "several"})
        names, counts, examples = value["labels"], value["counts"], value["examples"]
        _check_names(names)
        if type(examples) is not int or not 1 <= examples < 2**53:
            raise ValueError(f"the number of examples is {short(examples)}, but must be 1 or more")
        if not isinstance(counts, list) or len(counts) != len(names):
            raise ValueError(f"there must be one count for each of {len(names)} labels")
        for count in counts:
            if type(count) is not int or not 1 <= count <= examples:
                raise ValueError(f"a count is {short(count)}, but must be in 1..{examples}")
        if type(value["several"]) is not bool:
            raise ValueError(f"several is {short(value['several'])}, but must be true or false")
        return cls(tuple(names), tuple(counts), examples, value["several"])


def _check_names(names: object) -> None:
    if not isinstance(names, list) or not 1 <= len(names) <= MAX_LABELS:
        raise ValueError(f"the labels must be a list of 1 to {MAX_LABELS} strings")
    if any(type(name) is not str or not name for name in names) or names != sorted(set(names)):
        raise ValueError("the labels must be strings in code point order, each once")
