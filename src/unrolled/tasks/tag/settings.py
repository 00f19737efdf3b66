"""Settings of `unrolled train tag`."""

from typing import ClassVar, Literal

from pydantic import Field

from unrolled.config.data import TaggedWords
from unrolled.config.sections import (
    RecurrentSettings,
    Section,
    Size,
    TextRun,
    TokenSettings,
    TrainSettings,
    VectorSettings,
)


class TagTokens(TokenSettings):
    """How tagged sentences are read, and how plain text is parted into words."""

    level: Literal["word"] = Field("word", description="What a token is: a word.")
    splitter: Literal["space", "unicode"] = "unicode"
    lowercase: bool = Field(
        True,
        description="Read capitals as small letters, but for the characters of a word.",
    )
    zero_digits: bool = Field(True, description="Read every digit as 0.")
    column: Literal["upos", "xpos", "feats"] = Field(
        "upos", description="Which column of a CoNLL-U file has the tags."
    )
    scheme: Literal["auto", "iob1", "iob2", "iobes", "none"] = Field(
        "auto", description="How tags mark spans; auto looks at the tags."
    )


class TagSettings(RecurrentSettings, VectorSettings):
    """A tagger: words with their characters, recurrent stack, softmax or CRF."""

    embedding_size: int = Field(100, ge=1, le=16_384, description="Numbers in a word's vector.")
    characters: Literal["none", "suffix", "lstm"] = Field(
        "lstm", description="What a word's characters add to its vector."
    )
    character_embedding_size: int = Field(
        25, ge=1, le=4096, description="Numbers in a character's vector."
    )
    character_hidden_size: int = Field(
        50, ge=1, le=4096, description="Units that read the characters, each way."
    )
    word_dropout: float = Field(
        1.0,
        ge=0.0,
        description="α: in training a word seen n times is unknown with chance α / (α + n).",
    )
    hidden_size: int = Field(200, ge=1, le=16_384)
    bidirectional: bool = True
    dropout: float = Field(0.5, ge=0.0, lt=1.0)
    decoder: Literal["auto", "softmax", "crf"] = Field(
        "auto",
        description="How tags are chosen: each alone, or as a chain; auto takes a CRF for spans.",
    )
    vector_words: int = Field(
        100_000,
        ge=0,
        le=5_000_000,
        description="How many of the file's first words are known, too.",
    )


class TagTrain(TrainSettings):
    """How a tagger is trained."""

    most_batch_tokens: ClassVar[int] = 512

    learning_rate: float = Field(0.003, gt=0.0)
    epochs: int = Field(10, ge=1)
    clip: float = Field(5.0, gt=0.0)


class PredictOptions(Section):
    """How the input is read."""

    tokens: bool = Field(False, description="The input has a word a line, a blank line between.")
    sentences: bool = Field(False, description="Part each text into sentences first.")


class TaggedInput(Section):
    """Plain text, or its words."""

    sentence: str | list[str]


class TagRun(TextRun):
    """Settings of `unrolled train tag`."""

    sizes: ClassVar[tuple[Size, ...]] = (
        Size({"model.hidden_size": 200, "model.character_hidden_size": 50}, 5.0, 30),
        Size({"model.hidden_size": 100, "model.character_hidden_size": 25}, 2.0, 30),
        Size({"model.hidden_size": 50, "model.character_hidden_size": 15}, 1.0, 30),
    )

    task: Literal["tag"] = "tag"
    data: TaggedWords = TaggedWords()
    tokens: TagTokens = TagTokens()
    model: TagSettings = TagSettings()
    train: TagTrain = TagTrain()
