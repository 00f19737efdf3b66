"""Settings, one class a stage: read TOML, override, check, write back.

A setting has the same name in a TOML file, in `--set section.key=value` and in Python. A misspelt
name or a value out of bounds is a ConfigError that says what is allowed; nothing is ignored.
"""

import re
import tomllib
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Literal, Self

import tomli_w
from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from unrolled.errors import ConfigError, StorageError, UnrolledError, not_one_of

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


class LanguageSettings(RecurrentSettings):
    """A recurrent language model: embedding, stack, softmax."""

    embedding_size: int | None = Field(None, ge=1, le=16_384)  # None: hidden_size
    tied: bool = True
    context: Literal["stream", "line"] = "stream"
    direction: Literal["forward", "pair"] = "forward"
    first_input: Literal["start", "zero"] = "start"  # of a line: the START token, or a zero vector

    @model_validator(mode="after")
    def _is_a_language_model(self) -> Self:
        if self.bidirectional:
            raise ConfigError(
                "model.bidirectional is true, but a next-token model that reads both ways has "
                "already seen the token it must predict: its perplexity would mean nothing. Set it "
                'to false, or model.direction to "pair" for two models of opposite direction.'
            )
        if self.tied and self.embedding_size not in (None, self.hidden_size):
            raise ConfigError(
                f"model.embedding_size is {self.embedding_size} and model.hidden_size is "
                f"{self.hidden_size}, but model.tied shares one matrix between them. "
                "Make them equal or set model.tied to false."
            )
        if self.direction == "pair" and self.context == "stream":
            raise ConfigError(
                'model.direction is "pair", but the backward model needs the end of each text '
                'first. Set model.context to "line".'
            )
        return self

    @property
    def embedding(self) -> int:
        """The embedding size in force."""
        return self.embedding_size or self.hidden_size


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
    tokens: TokenSettings = TokenSettings()
    train: TrainSettings = TrainSettings()


class LanguageRun(RunSettings):
    """Settings of `unrolled train lm`."""

    task: Literal["lm"] = "lm"
    model: LanguageSettings = LanguageSettings()


RUNS: dict[str, type[RunSettings]] = {"lm": LanguageRun}


def run_class(task: str) -> type[RunSettings]:
    """The settings class of a task."""
    if task not in RUNS:
        raise not_one_of("task", task, RUNS)
    return RUNS[task]


def settings_for(
    task: str, *, file: Path | None = None, overrides: Mapping[str, Any] | None = None
) -> RunSettings:
    """The task's defaults, then the file's values, then the overrides by dotted name."""
    values = read_toml(file) if file else {}
    if values.get("task", task) != task:
        raise ConfigError(f"{file}: task is {values['task']!r}, but {task!r} was asked for.")
    for name, value in (overrides or {}).items():
        _put(values, name, value)
    return checked(run_class(task), values | {"task": task})


def read_toml(file: Path) -> dict[str, Any]:
    """The tables of a TOML file."""
    try:
        return tomllib.loads(file.read_text(encoding="utf-8"))
    except OSError as error:
        raise StorageError(file, f"cannot be read: {error.strerror}.") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ConfigError(f"{file}: is not valid TOML: {error}.") from error


def parse_overrides(items: Iterable[str]) -> dict[str, Any]:
    """`section.key=value` strings as a mapping; a value is TOML, or a plain word."""
    values = {}
    for item in items:
        name, equals, text = item.partition("=")
        if not equals or not name.strip():
            raise ConfigError(f"--set {item!r} is not of the form section.key=value.")
        values[name.strip()] = _toml_value(text.strip())
    return values


def checked(kind: type[RunSettings], values: Mapping[str, Any]) -> RunSettings:
    """An instance of `kind`, or a ConfigError about the first thing that is wrong."""
    try:
        return kind.model_validate(dict(values))
    except ValidationError as error:
        raise _config_error(kind, error) from None


def to_toml(settings: RunSettings) -> str:
    """The settings as TOML; reading it back gives an equal value."""
    return tomli_w.dumps(settings.model_dump(exclude_none=True))


def _toml_value(text: str) -> Any:
    try:
        return tomllib.loads(f"value = {text}")["value"]
    except tomllib.TOMLDecodeError:
        return text


def _put(values: dict[str, Any], name: str, value: Any) -> None:
    *sections, key = name.split(".")
    for section in sections:
        values = values.setdefault(section, {})
        if not isinstance(values, dict):
            raise ConfigError(f"--set {name}: {section} is a value, not a section.")
    values[key] = value


def _config_error(kind: type[RunSettings], error: ValidationError) -> UnrolledError:
    first = error.errors(include_url=False)[0]
    cause = first.get("ctx", {}).get("error")
    if isinstance(cause, UnrolledError):
        return cause
    name = ".".join(str(part) for part in first["loc"])
    if first["type"] == "extra_forbidden":
        return _unknown_key(kind, [str(part) for part in first["loc"]])
    if first["type"] == "literal_error":
        return not_one_of(name, first["input"], re.findall(r"'([^']*)'", first["ctx"]["expected"]))
    allowed = first["msg"].replace("Input should", "must")
    return ConfigError(f"{name} is {first['input']!r}, but {allowed}.")


def _unknown_key(kind: type[BaseModel], path: list[str]) -> ConfigError:
    for section in path[:-1]:
        annotation = kind.model_fields[section].annotation
        assert isinstance(annotation, type)
        kind = annotation
    where = f"setting in section {'.'.join(path[:-1])}" if path[:-1] else "setting"
    return not_one_of(where, path[-1], kind.model_fields)
