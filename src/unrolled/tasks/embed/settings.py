"""Settings of `unrolled train embed`."""

from typing import Literal

from pydantic import Field

from unrolled.config.sections import RunSettings, Section, TrainSettings


class EmbedTokens(Section):
    """What counts as a word."""

    splitter: Literal["letters", "space"] = Field(
        "letters", description="A word is a run of letters, or what white space parts."
    )
    lowercase: bool = Field(True, description="Read capitals as small letters.")
    min_count: int = Field(5, ge=1, description="Words rarer than this are left out.")
    max_size: int | None = Field(
        None, ge=2, le=5_000_000, description="Words at most, the most frequent ones."
    )


class EmbedModelSettings(Section):
    """What is predicted from what, and by which output layer."""

    objective: Literal["skip-gram", "cbow", "glove"] = Field(
        "skip-gram",
        description="Each neighbour from the word, the word from the mean of its neighbours, or "
        "how often two words come together.",
    )
    output: Literal["negative", "hierarchical", "softmax"] = Field(
        "negative",
        description="What predicts: negative sampling, a tree of decisions, or the full softmax.",
    )
    tree: Literal["huffman", "balanced"] = Field(
        "huffman", description="The tree of a hierarchical softmax."
    )
    embedding_size: int = Field(100, ge=1, le=4096, description="Numbers of a word's vector.")
    window: int = Field(
        5, ge=1, le=100, description="Words on either side at most; how many, chance decides."
    )


class EmbedTrain(TrainSettings):
    """How vectors are trained."""

    optimizer: Literal["sgd"] = Field("sgd", description="What turns gradients into steps.")
    learning_rate: float = Field(
        0.04, gt=0.0, description="Length of a step at its largest; CBOW takes 0.2 well."
    )
    schedule: Literal["constant", "cosine", "decay", "plateau", "linear"] = Field(
        "linear", description="How the learning rate falls."
    )
    epochs: int = Field(5, ge=1, description="How often the data are read.")
    batch_tokens: int = Field(
        400_000,
        ge=1,
        le=100_000_000,
        description="Words after which the threads' changes are summed.",
    )
    negatives: int = Field(
        5, ge=1, le=1000, description="Negatives a pair; 5 to 20 for small texts, 2 to 5 for large."
    )
    noise_power: float = Field(
        0.75, ge=0.0, le=1.0, description="Negatives are drawn by count to this power."
    )
    subsample: float = Field(
        1e-3, ge=0.0, le=1.0, description="Share above which frequent words are skipped; 0: none."
    )
    block: int = Field(
        16, ge=1, le=64, description="Words that are learned from at once, fewer if few are known."
    )
    shared_negatives: int = Field(
        32,
        ge=16,
        le=64,
        multiple_of=16,
        description="Negatives that a block shares; 16 is faster and a little less accurate.",
    )
    x_max: float = Field(
        100.0, gt=0.0, description="GloVe: pairs that come together so often count in full."
    )
    weight_power: float = Field(
        0.75, gt=0.0, le=1.0, description="GloVe: rarer ones count by their share to this power."
    )
    deterministic: bool = Field(
        True, description="The same bytes every time for a number of threads; else a little faster."
    )


class EmbedRun(RunSettings):
    """Settings of `unrolled train embed`."""

    task: Literal["embed"] = "embed"
    tokens: EmbedTokens = EmbedTokens()
    model: EmbedModelSettings = EmbedModelSettings()
    train: EmbedTrain = EmbedTrain()
