"""Settings of `unrolled train lm`."""

from typing import ClassVar, Literal, Self

from pydantic import Field, model_validator

from unrolled.config.data import PlainTextRun
from unrolled.config.sections import RecurrentSettings, Size, VectorSettings
from unrolled.errors import ConfigError


class LanguageSettings(RecurrentSettings, VectorSettings):
    """A recurrent language model: embedding, stack, softmax."""

    embedding_size: int | None = Field(
        None,
        ge=1,
        le=16_384,
        description="Numbers in a token's vector; hidden_size where it is left out.",
    )
    tied: bool = Field(True, description="One matrix for embedding and softmax.")
    context: Literal["stream", "line"] = Field(
        "stream", description="One long text, or lines that each stand alone."
    )
    direction: Literal["forward", "pair"] = Field(
        "forward", description="One model, or two that read in opposite directions."
    )
    first_input: Literal["start", "zero"] = Field(
        "start", description="Before a text: START (in a stream the line end), or a zero vector."
    )

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


class LanguageRun(PlainTextRun):
    """Settings of `unrolled train lm`."""

    sizes: ClassVar[tuple[Size, ...]] = (
        Size({"model.hidden_size": 512, "train.learning_rate": 0.003}, 12.0, 40, 12e6),
        Size({"model.hidden_size": 256}, 4.0, 40, 4e6),
        Size({"model.hidden_size": 128}, 2.0, 40, 2e6),
        Size({"model.hidden_size": 64, "train.learning_rate": 0.01}, 0.5, 40, 0.5e6),
    )

    task: Literal["lm"] = "lm"
    model: LanguageSettings = LanguageSettings()
