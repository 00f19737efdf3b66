"""Settings of `unrolled train classify`."""

from typing import Literal, Self

from pydantic import Field, model_validator

from unrolled.config.sections import (
    RecurrentSettings,
    Section,
    TextRun,
    TokenSettings,
    TrainSettings,
)
from unrolled.errors import ConfigError


class ClassifyTokens(TokenSettings):
    """How a text to be labelled becomes tokens: as a reader would part it, whatever its case."""

    splitter: Literal["space", "unicode"] = "unicode"
    lowercase: bool = True


class ClassifySettings(RecurrentSettings):
    """A classifier: embeddings, recurrent stack, one vector for the text, softmax.

    Without the stack (kind "mean") the vector is the mean of the embeddings.
    """

    kind: Literal["recurrent", "mean"] = "recurrent"
    pooling: Literal["last", "mean", "max", "attention"] = "attention"
    embedding_size: int = Field(300, ge=1, le=16_384)
    characters: Literal["none", "suffix", "lstm"] = "none"  # of each word, beside its embedding
    character_embedding_size: int = Field(25, ge=1, le=4096)
    character_hidden_size: int = Field(25, ge=1, le=4096)
    word_dropout: float = Field(1.0, ge=0.0)  # α: a token that occurs n times is unknown α/(α+n)
    positions: int = Field(0, ge=0, le=20_000)  # how many of the first tokens add their place
    class_weights: Literal["none", "balanced"] = "none"
    hidden_size: int = Field(100, ge=1, le=16_384)
    bidirectional: bool = True
    dropout: float = Field(0.5, ge=0.0, lt=1.0)


class ClassifyTrain(TrainSettings):
    """How a classifier is trained."""

    learning_rate: float = Field(0.002, gt=0.0)
    batch_tokens: int = Field(512, ge=1, le=4_194_304)
    holdout: float = Field(0.1, gt=0.0, lt=1.0)  # share of the examples, where no dev data is given


class PredictOptions(Section):
    """What is shown of an answer."""

    explain: bool = Field(False, description="Show each token's share in the answer.")


class ClassifyRun(TextRun):
    """Settings of `unrolled train classify`."""

    task: Literal["classify"] = "classify"
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
