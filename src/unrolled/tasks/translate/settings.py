"""Settings of `unrolled train translate`."""

from typing import ClassVar, Literal, Self

from pydantic import Field, model_validator

from unrolled.config.data import PairedTexts
from unrolled.config.sections import (
    RecurrentSettings,
    Section,
    Size,
    TextRun,
    TokenSettings,
    TrainSettings,
)
from unrolled.errors import ConfigError, shown

ATTENTIONS = Literal[
    "none", "additive", "concat", "cosine", "dot", "general", "location", "reduced", "scaled"
]


class Languages(Section):
    """What the two sides are called: the endings of parallel files."""

    source: str | None = Field(
        None, min_length=1, max_length=100, description="Parallel files: the ending of the source."
    )
    target: str | None = Field(
        None, min_length=1, max_length=100, description="Parallel files: the ending of the target."
    )

    @model_validator(mode="after")
    def _are_two(self) -> Self:
        if (self.source is None) != (self.target is None) or (
            self.source is not None and self.source == self.target
        ):
            raise ConfigError(
                f"languages.source is {shown(self.source)} and languages.target is "
                f"{shown(self.target)}, but parallel files have two different names. Give both "
                "(--from de --to en), or neither for one file with a tab between the sides."
            )
        return self

    @property
    def pair(self) -> tuple[str, str] | None:
        """Both, where they are given."""
        return (self.source, self.target) if self.source and self.target else None


def checked_pair(source: str | None, target: str | None) -> tuple[str, str] | None:
    """Both languages as they were given on the command line, or none."""
    if source and target:
        return source, target
    if source or target:
        raise ConfigError(
            f"--from is {shown(source)} and --to is {shown(target)}, but they belong together: "
            "give both, as in --from de --to en, or neither."
        )
    return None


class TranslateTokens(TokenSettings):
    """How the two sides become tokens."""

    level: Literal["char", "word", "bpe"] = "bpe"
    joint: bool = Field(False, description="One vocabulary and one embedding for both sides.")
    pretokenised: bool = Field(
        False, description="The text is tokenised already: BLEU counts its words as they stand."
    )


class TranslateSettings(RecurrentSettings):
    """An encoder, a decoder and what passes between them.

    decoder_input  "all" is the token before and the encoder's last state: with the decoder's own
                   state, three inputs
    placement      "luong": s_t asks, and what it gets goes to the softmax with s_t; "bahdanau":
                   s_{t−1} asks, and what it gets enters s_t
    """

    embedding_size: int | None = Field(
        None,
        ge=1,
        le=16_384,
        description="Numbers in a token's vector; hidden_size where it is left out.",
    )
    hidden_size: int = Field(256, ge=1, le=16_384)
    bidirectional: bool = Field(True, description="The encoder reads in both directions.")
    shared: bool = Field(False, description="One recurrent stack both reads and writes.")
    reverse_source: bool = Field(False, description="Read the source from its end.")
    decoder_input: Literal["token", "none", "all"] = Field(
        "token",
        description="What a decoder step sees: the token before, nothing, or also the source.",
    )
    attention: ATTENTIONS = Field(
        "general", description="The score by which the decoder looks at the source."
    )
    placement: Literal["luong", "bahdanau"] = Field(
        "luong",
        description="Where attention acts: after the state (Luong) or before it (Bahdanau).",
    )
    feed: bool = Field(
        False, description="Input feeding: what went to the softmax enters the next step."
    )
    attention_size: int = Field(
        128, ge=1, le=16_384, description="Units of the additive, concat and reduced scores."
    )
    attention_span: int = Field(
        100, ge=1, le=20_000, description="The longest source of the location score."
    )
    tied: bool = Field(True, description="One matrix for the target's embedding and the softmax.")
    dropout: float = Field(0.3, ge=0.0, lt=1.0)
    label_smoothing: float = Field(
        0.1,
        ge=0.0,
        lt=1.0,
        description="Share of probability that is spread over all tokens in training.",
    )
    sampling: float = Field(
        0.0,
        ge=0.0,
        le=1.0,
        description="Share of own predictions that the decoder is fed in training.",
    )

    source_vectors: str | None = Field(
        None, description="Pretrained word vectors of the source: a file, or a folder."
    )
    target_vectors: str | None = Field(
        None, description="Pretrained word vectors of the target: a file, or a folder."
    )
    freeze_vectors: bool = Field(False, description="Leave the pretrained vectors as they are.")

    @property
    def embedding(self) -> int:
        """The embedding size in force."""
        return self.embedding_size or self.hidden_size

    @property
    def steps_alone(self) -> bool:
        """Whether a step of the decoder needs what attention gave the step before."""
        return self.attention != "none" and (self.feed or self.placement == "bahdanau")

    @model_validator(mode="after")
    def _vectors_are_there_to_freeze(self) -> Self:
        if self.freeze_vectors and self.source_vectors is None and self.target_vectors is None:
            raise ConfigError(
                "model.freeze_vectors is true, but there are no vectors to freeze. Name a file "
                "with model.source_vectors or model.target_vectors."
            )
        return self

    @model_validator(mode="after")
    def _parts_fit(self) -> Self:
        if self.attention == "none" and (self.feed or self.placement == "bahdanau"):
            option = "feed is true" if self.feed else 'placement is "bahdanau"'
            raise ConfigError(
                f'model.{option}, but model.attention is "none", so there is nothing to place. '
                "Choose an attention, or leave the other out."
            )
        if self.feed and self.placement == "bahdanau":
            raise ConfigError(
                'model.feed is true and model.placement is "bahdanau", whose context enters the '
                'state already. Set feed to false, or placement to "luong".'
            )
        if self.shared and (self.bidirectional or self.steps_alone or self.decoder_input == "all"):
            raise ConfigError(
                "model.shared is true, but one stack that reads and writes has one direction and "
                "one kind of input. Set model.bidirectional and feed to false, placement to "
                '"luong" and decoder_input to "token" or "none".'
            )
        if self.tied and self.attention == "none" and self.embedding != self.hidden_size:
            raise ConfigError(
                f"model.embedding_size is {self.embedding} and model.hidden_size is "
                f"{self.hidden_size}, but model.tied shares one matrix between them. "
                "Make them equal or set model.tied to false."
            )
        return self


class TranslateTrain(TrainSettings):
    """How it is trained; pairs with a longer side, or sides of too unlike length, are left out."""

    most_batch_tokens: ClassVar[int] = 2048

    learning_rate: float = Field(0.002, gt=0.0)
    max_length: int = Field(
        200, ge=1, le=20_000, description="Pairs with a longer side are left out of training."
    )
    max_ratio: float = Field(
        20.0,
        ge=1.0,
        description="Pairs whose sides differ more in length are left out of training.",
    )


STOPS = Literal["ahead", "best", "count", "limit"]


class SearchOptions(Section):
    """How outputs are looked for."""

    beam: int = Field(5, ge=1, le=1000, description="Hypotheses kept at each step; 1 is greedy.")
    alpha: float = Field(
        0.7,
        ge=0.0,
        le=10.0,
        description="Length exponent: 0 sums log-probabilities, 1 takes the mean.",
    )
    stop: STOPS = Field(
        "ahead",
        description=(
            "When a search ends: ahead is quick and may miss a longer output of a higher score, "
            "best never misses one and takes some three times as long; count, limit."
        ),
    )


class PredictOptions(SearchOptions):
    """How outputs are looked for, or drawn."""

    nbest: int = Field(1, ge=1, description="Outputs for each text.")
    sentences: bool = Field(False, description="Part each text into sentences first.")
    max_length: int | None = Field(None, ge=1, description="Tokens that an output may have.")
    temperature: float | None = Field(
        None, description="Draw outputs at this temperature instead of searching."
    )
    seed: int | None = Field(
        None, ge=0, lt=2**63, description="Where chance begins: the same seed, the same result."
    )

    @model_validator(mode="after")
    def _searches_or_draws(self) -> Self:
        searching = self.model_fields_set & {"beam", "alpha", "stop", "nbest"}
        if self.temperature is not None and searching:
            raise ConfigError(
                f"--{min(searching)} was given, but a model that draws its outputs (--temperature) "
                "has no such option. Leave it away."
            )
        if self.sentences and self.nbest > 1:
            raise ConfigError(
                f"--nbest is {self.nbest} and --sentences was given, but of several sentences the "
                "best output is joined alone. Leave one of them away."
            )
        return self


class ScoringOptions(SearchOptions):
    """Which files are read, how outputs are looked for, and what is shown of them."""

    source: str | None = Field(
        None, alias="from", description="Parallel files: the ending of the source."
    )
    target: str | None = Field(
        None, alias="to", description="Parallel files: the ending of the target."
    )
    audit: bool = Field(False, description="Blame model or search for wrong outputs, by width.")
    explain_bleu: int | None = Field(
        None, ge=1, description="Show BLEU step by step for the pair of this number."
    )


class TraceInput(Section):
    """A text, and what to look at where the model writes it."""

    text: str = Field(description="The text to read.")
    output: str | None = Field(None, description="An output to look at instead of the model's own.")


class TraceOptions(Section):
    """Which picture is drawn of which search."""

    view: Literal["attention", "links", "beam"] = Field(
        "attention", description="The picture: attention, links or beam."
    )
    threshold: float = Field(0.3, ge=0.01, le=1.0, description="Weights from here on are links.")
    beam: int = Field(5, ge=1, le=1000, description="Hypotheses kept at each step; 1 is greedy.")
    alpha: float = Field(
        0.7,
        ge=0.0,
        le=10.0,
        description="Length exponent: 0 sums log-probabilities, 1 takes the mean.",
    )
    max_length: int | None = Field(None, ge=1, description="Tokens that an output may have.")


def _small(hidden_size: int, *, learning_rate: float) -> dict[str, float]:
    """What learns most from pairs that are read a few times: long steps, and nothing left out."""
    return {
        "model.hidden_size": hidden_size,
        "model.dropout": 0.0,
        "model.label_smoothing": 0.0,
        "train.learning_rate": learning_rate,
        "train.batch_tokens": 512,
    }


class TranslateRun(TextRun):
    """Settings of `unrolled train translate`."""

    sizes: ClassVar[tuple[Size, ...]] = (
        Size({"model.hidden_size": 256, "train.batch_tokens": 512}, 5.0, 30),
        Size(_small(128, learning_rate=0.01), 1.5, 30),
        Size(_small(64, learning_rate=0.015), 0.7, 30),
    )

    task: Literal["translate"] = "translate"
    languages: Languages = Languages()
    data: PairedTexts = PairedTexts()
    tokens: TranslateTokens = TranslateTokens()
    model: TranslateSettings = TranslateSettings()
    train: TranslateTrain = TranslateTrain()
