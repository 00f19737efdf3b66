"""Settings that tasks share, one class a stage."""

import math
from collections.abc import Mapping
from typing import Any, ClassVar, Literal, NamedTuple, Self

from pydantic import BaseModel, ConfigDict, Field, model_validator

from unrolled.errors import ConfigError

CELL_VARIANTS = {
    "rnn": ("activation",),
    "gru": ("reset", "update"),
    "lstm": ("output", "peephole"),
}


class Section(BaseModel):
    """Base of every settings class: frozen, checked, no silent keys."""

    model_config = ConfigDict(
        extra="forbid", frozen=True, allow_inf_nan=False, protected_namespaces=(), defer_build=True
    )


class TokenSettings(Section):
    """How text becomes tokens."""

    level: Literal["char", "word", "bpe"] = Field(
        "word", description="What a token is: a character, a word or a byte pair."
    )
    splitter: Literal["space", "unicode"] = Field(
        "space",
        description="Where words part: at white space, or as Unicode parts words and punctuation.",
    )
    lowercase: bool = Field(False, description="Read capitals as small letters.")
    min_count: int = Field(1, ge=1, description="Tokens rarer than this are unknown.")
    max_size: int | None = Field(
        None,
        ge=1,
        le=5_000_000,
        description="Tokens in the vocabulary at most, the most frequent ones.",
    )


class RecurrentSettings(Section):
    """A stack of recurrent layers; a variant left out is the cell's own default."""

    cell: Literal["rnn", "gru", "lstm"] = Field("lstm", description="The recurrent cell.")
    activation: Literal["tanh", "sigmoid", "relu", "leaky_relu", "identity"] | None = Field(
        None, description="Of an RNN cell; tanh where it is left out."
    )
    output: Literal["tanh", "linear"] | None = Field(
        None, description="How an LSTM cell shows its memory; tanh where it is left out."
    )
    peephole: Literal["none", "output", "full"] | None = Field(
        None, description="Which gates of an LSTM see its memory; none where it is left out."
    )
    reset: Literal["after", "before", "none"] | None = Field(
        None,
        description="Whether a GRU resets after or before its product; after where it is left out.",
    )
    update: Literal["keep", "write"] | None = Field(
        None,
        description="What the update gate of a GRU scales, old or new; keep where it is left out.",
    )
    hidden_size: int = Field(256, ge=1, le=16_384, description="Units of a recurrent layer.")
    layers: int = Field(1, ge=1, le=32, description="Recurrent layers, one on the other.")
    bidirectional: bool = Field(False, description="Read in both directions.")
    combine: Literal["concat", "mean"] = Field(
        "concat", description="How the two directions of a layer are joined."
    )
    dropout: float = Field(
        0.2, ge=0.0, lt=1.0, description="Share of the units that are left out in training."
    )
    variational: bool = Field(True, description="Leave the same units out at every step of a row.")
    first_state: Literal["zero", "learned"] = Field(
        "zero", description="The state before the first token."
    )
    init: Literal["uniform", "orthogonal", "identity"] = Field(
        "uniform", description="How recurrent weights begin."
    )
    bias: bool = Field(True, description="Whether cells add biases.")
    forget_bias: float | None = Field(
        None,
        ge=-20.0,
        le=20.0,
        description="What the forget gates of an LSTM begin with; drawn as the rest if left out.",
    )

    @model_validator(mode="after")
    def _variant_fits_cell(self) -> Self:
        for cell, names in CELL_VARIANTS.items():
            for name in names:
                if cell != self.cell and getattr(self, name) is not None:
                    raise ConfigError(
                        f"model.{name} is {getattr(self, name)!r}, but it is a variant of the "
                        f"{cell} cell and model.cell is {self.cell!r}. Leave one of them out."
                    )
        if self.forget_bias is not None and not (self.cell == "lstm" and self.bias):
            raise ConfigError(
                f"model.forget_bias is {self.forget_bias:g}, but it is a bias of the lstm cell; "
                f"model.cell is {self.cell!r} and model.bias {str(self.bias).lower()}. "
                "Leave it out."
            )
        if self.combine == "mean" and not self.bidirectional:
            raise ConfigError(
                'model.combine is "mean", but model.bidirectional is false, so there is one '
                "direction and nothing to combine. Leave one of them out."
            )
        return self

    @property
    def variant(self) -> dict[str, str]:
        """The variant settings that were given, by name."""
        values = {name: getattr(self, name) for name in CELL_VARIANTS[self.cell]}
        return {name: value for name, value in values.items() if value is not None}


class VectorSettings(Section):
    """Word vectors that a model begins with."""

    vectors: str | None = Field(
        None, description="Pretrained word vectors: a file, or a folder of train embed."
    )
    freeze_vectors: bool = Field(False, description="Leave the pretrained vectors as they are.")

    @model_validator(mode="after")
    def _vectors_are_there_to_freeze(self) -> Self:
        if self.freeze_vectors and self.vectors is None:
            raise ConfigError(
                "model.freeze_vectors is true, but there are no vectors to freeze. Name a file "
                "with model.vectors."
            )
        return self


class TrainSettings(Section):
    """How a model is trained."""

    most_batch_tokens: ClassVar[int] = 1024  # that are chosen, however much data there are

    optimizer: Literal["sgd", "adam", "adamw", "adagrad"] = Field(
        "adamw", description="What turns gradients into steps."
    )
    learning_rate: float = Field(0.005, gt=0.0, description="Length of a step at its largest.")
    weight_decay: float = Field(0.0, ge=0.0, description="How strongly weights are drawn to zero.")
    schedule: Literal["constant", "cosine", "decay", "plateau", "linear"] = Field(
        "cosine", description="How the learning rate falls."
    )
    decay: float = Field(
        0.5, gt=0.0, lt=1.0, description="Factor by which decay and plateau lower the rate."
    )
    decay_after: int = Field(4, ge=0, description="Epochs at the full rate before decay sets in.")
    patience: int = Field(
        1, ge=1, description="Epochs without gain before plateau lowers the rate."
    )
    early_stop: int | None = Field(
        None, ge=1, description="Epochs without gain before training ends."
    )
    clip: float = Field(1.0, gt=0.0, description="The gradients' global norm at most.")
    epochs: int = Field(10, ge=1, description="How often the data are read.")
    minutes: float | None = Field(
        None,
        gt=0.0,
        description="How long the whole run may take, instead of epochs; the schedule follows.",
    )
    max_epochs: int | None = Field(
        None, ge=1, description="With minutes: how often the data are read at most."
    )
    baselines: bool = Field(
        True, description="Fit what the model is to be compared with, where that takes time."
    )
    batch_tokens: int = Field(
        0,
        ge=0,
        le=4_194_304,
        description="Tokens of a batch, padding included; 0: as suits the amount of data.",
    )
    steps: int = Field(
        64, ge=1, le=65_536, description="Tokens through which gradients flow back in a stream."
    )
    holdout: float = Field(
        0.05, gt=0.0, lt=1.0, description="Share of the data held out where no dev data are given."
    )
    checkpoint_seconds: float = Field(
        60.0, ge=0.0, description="Seconds between two checkpoints; no number depends on it."
    )
    threads: int = Field(0, ge=0, le=1024, description="Cores to use; 0 is all.")


class Size(NamedTuple):
    """A size that a model may have, by dotted names, and how much it must read for it."""

    values: Mapping[str, Any]
    reads: float  # of the data at least, to be of use
    most_reads: int  # after which it would only learn by heart
    enough: float = math.inf  # tokens that will do, however small a part of the data they are

    @property
    def settings(self) -> dict[str, Any]:
        """All that it sets."""
        return {**self.values, "train.max_epochs": self.most_reads}

    def least_reads(self, tokens: float) -> float:
        """How often it must read data of so many tokens."""
        return min(self.reads, self.enough / tokens)


SIZES = {  # whoever sets one of these knows what they want
    *("model.hidden_size", "model.layers", "model.embedding_size", "model.vectors"),
    *("train.batch_tokens", "train.schedule", "train.max_epochs"),
}


class RunSettings(Section):
    """All that makes a run: the same settings, data and machine give the same bytes."""

    sizes: ClassVar[tuple[Size, ...]] = ()  # to choose from where minutes are given; largest first

    task: str
    seed: int = Field(
        1, ge=0, lt=2**63, description="Where chance begins: the same seed, the same result."
    )

    def given(self) -> set[str]:
        """The dotted names of the settings that somebody has set."""
        inner = ((name, value) for name, value in self if isinstance(value, Section))
        return {f"{name}.{key}" for name, section in inner for key in section.model_fields_set}

    @property
    def takes_size_from_time(self) -> bool:
        """Whether minutes are set and no size is."""
        minutes = getattr(getattr(self, "train", None), "minutes", None)
        return minutes is not None and bool(self.sizes) and not SIZES & self.given()

    def left_open(self) -> set[str]:
        """What the run itself chooses, and keeps when it is resumed."""
        train = getattr(self, "train", None)
        chosen = {"train.batch_tokens"} if getattr(train, "batch_tokens", None) == 0 else set()
        if self.takes_size_from_time:
            chosen |= {name for size in self.sizes for name in size.settings} - self.given()
        return chosen


class TextRun(RunSettings):
    """Settings of a run that reads text and is trained step by step."""

    tokens: TokenSettings = TokenSettings()
    train: TrainSettings = TrainSettings()
