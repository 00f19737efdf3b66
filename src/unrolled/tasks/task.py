"""A task: what differs from one kind of model to the next. Nothing else asks which one it has.

The class attributes of a task import no torch, so that `--help` is quick; each method imports its
own file when it is called, so that loading a model imports no training.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import (
    TYPE_CHECKING,
    Any,
    ClassVar,
    Generic,
    NamedTuple,
    Protocol,
    Self,
    TypeVar,
    runtime_checkable,
)

from unrolled.config.data import TextData
from unrolled.config.sections import RunSettings, Section
from unrolled.evaluate.shown import Shown
from unrolled.text.columns import text_wanted
from unrolled.text.records import Record
from unrolled.text.source import ArrivingLines, Fingerprint, Source
from unrolled.text.texts import Texts, arriving_texts

if TYPE_CHECKING:
    from torch import Tensor, nn

    from unrolled.evaluate.measure import Measure
    from unrolled.store.manifest import Content
    from unrolled.training.job import Job


class Data(Protocol):
    """One source, read and checked; it may stream: neither length nor lines are assumed."""

    def fingerprint(self) -> Fingerprint:
        """By what to know it again."""
        ...


class Answer(Shown, Protocol):
    """What a model says of one input."""

    @property
    def row(self) -> int:
        """The input that it answers, from 1; 0: all of them."""
        ...

    @property
    def remarks(self) -> Sequence[str]:
        """What is to be known of it, if anything: told once for all answers that share it."""
        ...


@runtime_checkable
class Beside(Answer, Protocol):
    """An answer that can be written beside its input."""

    def beside(self) -> Mapping[str, Any]:
        """What is written, by the names of its columns."""
        ...


class TextInput(Section):
    """A text, as it is typed."""

    text: str


class NoOptions(Section):
    """Nothing to choose."""


class Use(NamedTuple):
    """Something that a model can do: a command, and whatever else asks it for answers.

    input     the parts of one input
    options   what may be chosen, with bounds and descriptions
    by_line   the command reads a file, an input a line; else one input from the command line
    document  how `--json` joins what the answers give to one document; None: an object a line
    in_words  its answers have a text for people; else they are numbers, or a picture of them
    """

    help: str
    input: type[Section] = TextInput
    options: type[Section] = NoOptions
    by_line: bool = True
    document: Callable[[list[Any]], Any] | None = None
    in_words: bool = True


class View(NamedTuple):
    """A picture of a model: of its run, or of what it makes of data.

    of_run     drawn from what the run wrote down; else the model is asked about data
    same_unit  of a run: its cost on the dev data is a loss like the training loss
    """

    help: str
    of_run: bool = False
    same_unit: bool = False


Blocks = Iterable[Sequence[Any]]  # inputs as they arrive, some at a time
Inputs = Iterator[tuple[Section, Record]]  # each with the record that it stands in
PLAIN = TextData()


class Model(Protocol):
    """A trained model: what its folder keeps, and what it says."""

    @property
    def settings(self) -> RunSettings: ...

    @property
    def network(self) -> "nn.Module": ...

    @classmethod
    def restore(cls, settings: Any, files: Mapping[str, bytes]) -> Self:
        """The model that a folder's files describe, its tensors still to be read."""
        ...

    def tensors(self) -> "dict[str, Tensor]":
        """Weights and what lies beside them, by their names on disk."""
        ...

    def load_tensors(self, tensors: "Mapping[str, Tensor]", *, assign: bool = False) -> None:
        """Take over what `tensors` gave; `assign`: as they are, not copied."""
        ...

    def weights(self) -> "Content":
        """The tensors as the bytes of a safetensors file."""
        ...

    def files(self) -> dict[str, bytes]:
        """What there is beside settings and tensors: vocabularies, labels."""
        ...

    def about(self) -> dict[str, Any]:
        """Sizes that a user would ask for, by name."""
        ...

    def caution(self, use: str) -> str:
        """What a reader of its answers must know, if anything."""
        ...

    def answers(
        self, use: str, blocks: Blocks, options: Any, *, source: Path | str = "<input>"
    ) -> Iterator[Answer]:
        """Answers in the order of the inputs; errors name the source."""
        ...


S = TypeVar("S", bound=RunSettings)
D = TypeVar("D", bound=Data)
M = TypeVar("M", bound=Model)


class Format(NamedTuple, Generic[M]):
    """Another tool's form of a model."""

    write: Callable[[M, Path], str]  # what is to be known of the file, if anything
    read: Callable[[Source], tuple[M, str]]  # the model, and how it came about


def text_inputs(texts: Texts) -> Inputs:
    """Texts as inputs."""
    return ((TextInput.model_construct(text=text), record) for text, record in texts)


class Task(ABC, Generic[S, D, M]):
    """What makes a task: its settings, its data, its model, how it is trained, judged and used."""

    name: ClassVar[str]
    noun: ClassVar[str]  # what its model is called
    settings: type[S]
    uses: ClassVar[Mapping[str, Use]]
    views: ClassVar[Mapping[str, View]] = {}
    scoring: ClassVar[type[Section]] = NoOptions  # options of evaluate
    examples: ClassVar[tuple[str, ...]]  # commands for the card, FOLDER being the model's

    @abstractmethod
    def read(self, source: Source, settings: S, options: Section | None = None) -> D:
        """The data of a source; `options` are those of evaluate."""

    @abstractmethod
    def job(self, settings: S, data: Mapping[str, D]) -> "Job[Any]":
        """Made ready for training on the train data; dev and test where they are given."""

    @abstractmethod
    def model(self) -> type[M]:
        """The class of its models."""

    @abstractmethod
    def evaluate(self, model: M, data: D, options: Any) -> Shown:
        """Scores beside the baselines', or what else the options ask for."""

    def measures(self, model: M, data: D) -> "list[Measure]":
        """The model's scores with what they are made of, example by example: to be compared.

        None where they cannot be taken apart.
        """
        return []

    def view(self, name: str, model: M, data: D) -> Shown:
        """One of its views that needs data."""
        raise NotImplementedError(f"{self.name} has no view {name}")

    def remarks(self, data: D) -> Sequence[str]:
        """What is to be known of how data were read, if anything."""
        return ()

    def settled(self, settings: S, train: D) -> S:
        """The settings with what was found out about the training data, for all later commands."""
        return settings

    def inputs(self, lines: ArrivingLines, use: str, settings: S, options: Any) -> Inputs:
        """The inputs of a use that stand in a file, as they come: one a line."""
        data = getattr(settings, "data", PLAIN)
        wanted = text_wanted(data.text_column)
        return text_inputs(arriving_texts(lines, wanted, written=data.format))

    def formats(self) -> Mapping[str, Format[M]]:
        """What its models can be exported to and imported from, by name."""
        return {}

    def sentence(self, facts: Mapping[str, float]) -> str:
        """What a model learned from, as a sentence."""
        others = ", ".join(
            f"{name.replace('_', ' ')} {value:,}"
            for name, value in facts.items()
            if name not in TOLD
        )
        return (
            f"Learned from {facts['lines']:,} lines, {facts['tokens']:,} tokens, "
            f"{facts['unknown']:,} of them unknown; vocabulary {facts['vocabulary']:,}; "
            f"{facts['padding']:.1%} padding." + (f" Also: {others}." if others else "")
        )


TOLD = ("lines", "tokens", "unknown", "vocabulary", "padding", "dev_lines")  # told elsewhere
