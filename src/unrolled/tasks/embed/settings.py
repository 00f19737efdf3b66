"""Settings of `unrolled train embed`."""

from collections.abc import Mapping
from typing import Any, Literal, Self

from pydantic import Field, model_validator

from unrolled.config.sections import RunSettings, Section, TrainSettings
from unrolled.errors import ConfigError

SUITS: Mapping[str, Mapping[str, Any]] = {  # what 0 stands for
    "skip-gram": {"learning_rate": 0.04, "block": 32, "shared_negatives": 32},
    "cbow": {"learning_rate": 0.06, "block": 16, "shared_negatives": 32},
}
GLOVE = {"epochs": 15, "schedule": "constant", "x_max": 10.0}  # what suits it where nobody says
WITH_SUBWORDS = {"batch_tokens": 400_000, "block": 32}  # more rows to sum, and to read again
WITHOUT = {"batch_tokens": 100_000}
OTHERWISE = {"learning_rate": 0.05, "block": 16, "shared_negatives": 16}
WITHOUT_EFFECT = ("weight_decay", "clip", "steps", "holdout", "early_stop", "patience")


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
        description="Neighbours from the word, the word from its neighbours, or pairs' counts.",
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
        5,
        ge=1,
        le=100,
        description="Words on either side at most; how many, chance decides, but not in GloVe.",
    )
    subwords: bool = Field(
        False,
        description="Make vectors of character n-grams too, so that unseen words have one.",
    )
    least_ngram: int = Field(3, ge=1, le=100, description="Characters of an n-gram at least.")
    most_ngram: int = Field(6, ge=1, le=100, description="Characters of an n-gram at most.")
    buckets: int = Field(
        2_000_000,
        ge=1,
        lt=2**31,
        description="Numbers that n-grams are hashed to; only those of known words take memory.",
    )

    @model_validator(mode="after")
    def _ngrams_have_lengths(self) -> Self:
        if self.least_ngram > self.most_ngram:
            raise ConfigError(
                f"model.least_ngram is {self.least_ngram}, but model.most_ngram is "
                f"{self.most_ngram}: no n-gram is that long and that short."
            )
        if self.subwords and self.objective == "glove":
            raise ConfigError(
                'model.subwords is true, but GloVe counts whole words; model.objective is "glove". '
                'Take "skip-gram" or "cbow", or leave subwords out.'
            )
        return self


class EmbedTrain(TrainSettings):
    """How vectors are trained."""

    optimizer: Literal["sgd"] = Field("sgd", description="What turns gradients into steps.")
    learning_rate: float = Field(
        0.0, ge=0.0, description="Length of a step at its largest; 0: as suits the objective."
    )
    schedule: Literal["constant", "cosine", "decay", "plateau", "linear"] = Field(
        "linear", description="How the learning rate falls."
    )
    epochs: int = Field(5, ge=1, description="How often the data are read.")
    batch_tokens: int = Field(
        0,
        ge=0,
        le=100_000_000,
        description="Words after which the threads' changes are summed; 0: as suits the model.",
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
        0,
        ge=0,
        le=64,
        description="Words learned from at once, fewer if few are known; 0: as suits the model.",
    )
    shared_negatives: int = Field(
        0,
        ge=0,
        le=64,
        multiple_of=16,
        description="Negatives that a block shares, the fewer the faster; 0: as suits the model.",
    )
    x_max: float = Field(
        100.0, gt=0.0, description="GloVe: pairs that come together so often count in full."
    )
    weight_power: float = Field(
        0.75, gt=0.0, le=1.0, description="GloVe: rarer ones count by their share to this power."
    )
    deterministic: bool = Field(
        True, description="The same bytes every time for a number of threads."
    )

    @model_validator(mode="after")
    def _has_effect(self) -> Self:
        for name in WITHOUT_EFFECT:
            if getattr(self, name) != EmbedTrain.model_fields[name].default:
                raise ConfigError(
                    f"train.{name} is {getattr(self, name)!r}, but it has no effect on word "
                    "vectors. Leave it out."
                )
        if self.schedule == "plateau":
            raise ConfigError(
                'train.schedule is "plateau", but word vectors have no dev loss that could stop '
                "falling. Take linear, cosine, decay or constant."
            )
        return self


class EmbedRun(RunSettings):
    """Settings of `unrolled train embed`."""

    task: Literal["embed"] = "embed"
    tokens: EmbedTokens = EmbedTokens()
    model: EmbedModelSettings = EmbedModelSettings()
    train: EmbedTrain = EmbedTrain()

    @model_validator(mode="after")
    def _as_suits_the_objective(self) -> Self:
        suits = {
            **SUITS.get(self.model.objective, OTHERWISE),
            **(WITH_SUBWORDS if self.model.subwords else WITHOUT),
        }
        chosen = {name: value for name, value in suits.items() if not getattr(self.train, name)}
        given = self.train.model_fields_set
        if self.model.objective == "glove":
            chosen |= {name: value for name, value in GLOVE.items() if name not in given}
        self.__dict__["train"] = self.train.model_copy(update=chosen)
        self.train.__pydantic_fields_set__ = set(given)
        return self
