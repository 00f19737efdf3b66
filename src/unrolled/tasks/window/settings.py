"""Settings of `unrolled train window`."""

from typing import ClassVar, Literal, Self

from pydantic import Field, model_validator

from unrolled.config.data import PlainTextRun
from unrolled.config.sections import Size, TrainSettings, VectorSettings
from unrolled.errors import ConfigError


class WindowSettings(VectorSettings):
    """A model that sees the last `window` tokens: embeddings, one hidden layer, softmax."""

    window: int = Field(
        4, ge=1, le=1024, description="Tokens that are seen before the one that is predicted."
    )
    direct: bool = Field(False, description="Connect the embeddings straight to the softmax, too.")
    hidden_size: int = Field(200, ge=1, le=16_384, description="Units of the hidden layer.")
    embedding_size: int | None = Field(
        None,
        ge=1,
        le=16_384,
        description="Numbers in a token's vector; hidden_size where it is left out.",
    )
    tied: bool = Field(False, description="One matrix for embedding and softmax.")
    dropout: float = Field(
        0.2, ge=0.0, lt=1.0, description="Share of the hidden units that are left out in training."
    )
    input_dropout: float = Field(
        0.1, ge=0.0, lt=1.0, description="Share of the embeddings that is left out in training."
    )
    context: Literal["line", "stream"] = Field(
        "line", description="Lines that each stand alone, or one long text."
    )

    @model_validator(mode="after")
    def _sizes_fit(self) -> Self:
        if self.tied and self.embedding_size not in (None, self.hidden_size):
            raise ConfigError(
                f"model.embedding_size is {self.embedding_size} and model.hidden_size is "
                f"{self.hidden_size}, but model.tied shares one matrix between them. "
                "Make them equal or set model.tied to false."
            )
        return self

    @property
    def embedding(self) -> int:
        """The embedding size in force."""
        return self.embedding_size or self.hidden_size

    @property
    def direction(self) -> Literal["forward"]:
        """A window lies before the token that is predicted."""
        return "forward"


class WindowTraining(TrainSettings):
    """Training of a window model: a high rate with decay of the weights."""

    learning_rate: float = Field(0.008, gt=0.0)
    weight_decay: float = Field(0.2, ge=0.0)


class WindowRun(PlainTextRun):
    """Settings of `unrolled train window`."""

    sizes: ClassVar[tuple[Size, ...]] = (
        Size({"model.hidden_size": 200}, 4.0, 40),
        Size({"model.hidden_size": 100}, 2.0, 40),
        Size({"model.hidden_size": 50}, 0.5, 40),
    )

    task: Literal["window"] = "window"
    model: WindowSettings = WindowSettings()
    train: WindowTraining = WindowTraining()
