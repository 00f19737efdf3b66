"""Settings that tasks share, one class a stage."""

from typing import Literal, Self

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
        extra="forbid", frozen=True, allow_inf_nan=False, protected_namespaces=()
    )


class TokenSettings(Section):
    """How text becomes tokens."""

    level: Literal["char", "word", "bpe"] = "word"
    splitter: Literal["space", "unicode"] = "space"
    lowercase: bool = False
    min_count: int = Field(1, ge=1)
    max_size: int | None = Field(None, ge=1, le=5_000_000)


class RecurrentSettings(Section):
    """A stack of recurrent layers; a variant left out is the cell's own default."""

    cell: Literal["rnn", "gru", "lstm"] = "lstm"
    activation: Literal["tanh", "sigmoid", "relu", "leaky_relu", "identity"] | None = None
    output: Literal["tanh", "linear"] | None = None
    peephole: Literal["none", "output", "full"] | None = None
    reset: Literal["after", "before", "none"] | None = None
    update: Literal["keep", "write"] | None = None
    hidden_size: int = Field(256, ge=1, le=16_384)
    layers: int = Field(1, ge=1, le=32)
    bidirectional: bool = False
    dropout: float = Field(0.2, ge=0.0, lt=1.0)
    variational: bool = True
    first_state: Literal["zero", "learned"] = "zero"
    init: Literal["uniform", "orthogonal", "identity"] = "uniform"
    bias: bool = True

    @model_validator(mode="after")
    def _variant_fits_cell(self) -> Self:
        for cell, names in CELL_VARIANTS.items():
            for name in names:
                if cell != self.cell and getattr(self, name) is not None:
                    raise ConfigError(
                        f"model.{name} is {getattr(self, name)!r}, but it is a variant of the "
                        f"{cell} cell and model.cell is {self.cell!r}. Leave one of them out."
                    )
        return self

    @property
    def variant(self) -> dict[str, str]:
        """The variant settings that were given, by name."""
        values = {name: getattr(self, name) for name in CELL_VARIANTS[self.cell]}
        return {name: value for name, value in values.items() if value is not None}


class TrainSettings(Section):
    """How a model is trained."""

    optimizer: Literal["sgd", "adam", "adamw"] = "adamw"
    learning_rate: float = Field(0.005, gt=0.0)
    weight_decay: float = Field(0.0, ge=0.0)
    schedule: Literal["constant", "cosine", "decay", "plateau"] = "cosine"
    decay: float = Field(0.5, gt=0.0, lt=1.0)  # factor of the decay and plateau schedules
    decay_after: int = Field(4, ge=0)  # epochs at the full rate before decay sets in
    patience: int = Field(1, ge=1)  # epochs without gain before plateau lowers the rate
    early_stop: int | None = Field(None, ge=1)  # epochs without gain before training ends
    clip: float = Field(1.0, gt=0.0)
    epochs: int = Field(10, ge=1)
    minutes: float | None = Field(None, gt=0.0)
    batch_tokens: int = Field(1024, ge=1, le=4_194_304)
    steps: int = Field(64, ge=1, le=65_536)  # how far back gradients flow in a stream
    holdout: float = Field(0.05, gt=0.0, lt=1.0)  # share of the lines, where no dev text is given
    checkpoint_seconds: float = Field(60.0, ge=0.0)
    threads: int = Field(0, ge=0, le=1024)  # 0: as many as there are cores


class RunSettings(Section):
    """All that makes a run: the same settings, data and machine give the same bytes."""

    task: str
    seed: int = Field(1, ge=0, lt=2**63)


class TextRun(RunSettings):
    """Settings of a run that reads text and is trained step by step."""

    tokens: TokenSettings = TokenSettings()
    train: TrainSettings = TrainSettings()
