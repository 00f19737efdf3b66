"""Settings of `unrolled train classify`."""

from typing import ClassVar, Literal, Self

from pydantic import Field, model_validator

from unrolled.config.data import LabelledTexts
from unrolled.config.sections import (
    RecurrentSettings,
    Section,
    Size,
    TextRun,
    TokenSettings,
    TrainSettings,
    VectorSettings,
)
from unrolled.errors import ConfigError


class ClassifyTokens(TokenSettings):
    """How a text to be labelled becomes tokens: as a reader would part it, whatever its case."""

    splitter: Literal["space", "unicode"] = "unicode"
    lowercase: bool = True


class ClassifySettings(RecurrentSettings, VectorSettings):
    """A classifier: embeddings, recurrent stack, one vector for the text, softmax.

    Without the stack (kind "mean") the vector is the mean of the embeddings.
    """

    kind: Literal["recurrent", "mean"] = Field(
        "recurrent", description="A recurrent stack, or the mean of the embeddings."
    )
    pooling: Literal["last", "mean", "max", "attention"] = Field(
        "attention", description="How the states of a text become one vector."
    )
    embedding_size: int = Field(300, ge=1, le=16_384, description="Numbers in a token's vector.")
    characters: Literal["none", "suffix", "lstm"] = Field(
        "none", description="What a word's characters add to its vector."
    )
    character_embedding_size: int = Field(
        25, ge=1, le=4096, description="Numbers in a character's vector."
    )
    character_hidden_size: int = Field(
        25, ge=1, le=4096, description="Units that read the characters, each way."
    )
    word_dropout: float = Field(
        1.0,
        ge=0.0,
        description="α: in training a token seen n times is unknown with chance α / (α + n).",
    )
    positions: int = Field(
        0, ge=0, le=20_000, description="How many of the first tokens add their place."
    )
    class_weights: Literal["none", "balanced"] = Field(
        "none", description="Whether rare labels count as much as frequent ones."
    )
    hidden_size: int = Field(100, ge=1, le=16_384)
    bidirectional: bool = True
    dropout: float = Field(0.5, ge=0.0, lt=1.0)


class ClassifyTrain(TrainSettings):
    """How a classifier is trained."""

    most_batch_tokens: ClassVar[int] = 512

    learning_rate: float = Field(0.002, gt=0.0)
    holdout: float = Field(0.1, gt=0.0, lt=1.0)


class PredictOptions(Section):
    """What is shown of an answer."""

    explain: bool = Field(False, description="Show each token's share in the answer.")
    all_labels: bool = Field(False, description="List all labels with their probabilities.")

    @model_validator(mode="after")
    def _shows_one_thing(self) -> Self:
        if self.explain and self.all_labels:
            raise ConfigError(
                "--explain and --all-labels were given, but one speaks of a single label and the "
                "other lists them all. Leave one out."
            )
        return self


class ClassifyRun(TextRun):
    """Settings of `unrolled train classify`."""

    sizes: ClassVar[tuple[Size, ...]] = (
        Size({"model.hidden_size": 100, "model.embedding_size": 300}, 4.0, 20),
        Size({"model.hidden_size": 64, "model.embedding_size": 100}, 2.0, 20),
        Size({"model.hidden_size": 32, "model.embedding_size": 50}, 1.0, 20),
    )

    task: Literal["classify"] = "classify"
    data: LabelledTexts = LabelledTexts()
    tokens: ClassifyTokens = ClassifyTokens()
    model: ClassifySettings = ClassifySettings()
    train: ClassifyTrain = ClassifyTrain()

    @model_validator(mode="after")
    def _words_have_characters(self) -> Self:
        if self.model.characters != "none" and self.tokens.level != "word":
            raise ConfigError(
                f'model.characters is "{self.model.characters}", but it reads the characters of '
                f'words and tokens.level is "{self.tokens.level}". Set it to "none", or '
                'tokens.level to "word".'
            )
        return self
