"""Settings of `unrolled train tree`."""

from typing import ClassVar, Literal, Self

from pydantic import Field, model_validator

from unrolled.config.data import LabelledTexts
from unrolled.config.sections import Section, Size, TextRun, TokenSettings, TrainSettings
from unrolled.errors import ConfigError

NODES = {  # how many numbers a node has where nobody says
    **{"treelstm": 150, "childsum": 150, "rntn": 30, "rnn": 50, "mvrnn": 25, "autoencoder": 50},
}
DROPOUT = {"treelstm": 0.5, "childsum": 0.5, "rnn": 0.0, "rntn": 0.0}
SMALL_DROPOUT = 0.1  # of the others
RATES = {"treelstm": 0.05, "childsum": 0.05, "rnn": 0.02, "rntn": 0.02}
SMALL_RATE = 0.01  # of the others
WORDS = {"treelstm": 300, "childsum": 300}  # and a word, where it is not as large as a node


class TreeData(LabelledTexts):
    """Where trees, or texts and labels, stand, and what their labels mean."""

    neutral: int | None = Field(
        None,
        description="Labels below it are negative, above it positive; it itself is no label.",
    )
    label_count: int | None = Field(
        None,
        ge=2,
        le=10_000,
        description="How many labels there are, as numbers from 0; others are refused.",
    )


class TreeTokens(TokenSettings):
    """How the words of trees are read, and how plain text is parted into words."""

    level: Literal["word"] = Field("word", description="What a token is: a word.")
    splitter: Literal["space", "unicode"] = "unicode"
    lowercase: bool = True


class TreeSettings(Section):
    """A network over trees: words, how two nodes make one, softmax."""

    composition: Literal["treelstm", "childsum", "rntn", "rnn", "mvrnn", "autoencoder"] = Field(
        "treelstm", description="How the vector of a node is made of those of its children."
    )
    tree: Literal["given", "right", "left", "balanced", "greedy"] | None = Field(
        None,
        description="Where trees come from: data, a fold, or an autoencoder; else the data tell.",
    )
    labels: Literal["nodes", "root", "sentence"] | None = Field(
        None,
        description="Whose labels are learned: all nodes', the root's, or the root's everywhere.",
    )
    pooling: Literal["root", "mean"] = Field(
        "root", description="What stands for a sentence: its root, or the mean of all nodes."
    )
    hidden_size: int | None = Field(
        None, ge=1, le=4096, description="Numbers of a node; left out, as suits the composition."
    )
    embedding_size: int | None = Field(
        None, ge=1, le=4096, description="Numbers of a word; left out, as suits the composition."
    )
    alpha: float = Field(
        0.2, ge=0.0, le=1.0, description="Share of an autoencoder's error in what is learned."
    )
    dropout: float | None = Field(
        None,
        ge=0.0,
        lt=1.0,
        description="Share of numbers left out in training; left out, as suits the composition.",
    )
    word_dropout: float = Field(
        1.0,
        ge=0.0,
        description="α: in training a word seen n times is unknown with chance α / (α + n).",
    )
    vectors: str | None = Field(
        None, description="Pretrained word vectors: a file, or a folder of train embed."
    )
    freeze_vectors: bool = Field(False, description="Leave the words' vectors as they begin.")
    vector_words: int = Field(
        100_000,
        ge=0,
        le=5_000_000,
        description="How many of the file's first words are known, too.",
    )

    @model_validator(mode="after")
    def _greedy_needs_an_autoencoder(self) -> Self:
        if self.tree == "greedy" and self.composition != "autoencoder":
            raise ConfigError(
                f'model.tree is "greedy", but only the error of an autoencoder says which words to '
                f'join, and model.composition is "{self.composition}". Set it to "autoencoder".'
            )
        return self

    @property
    def node_size(self) -> int:
        """Numbers of a node."""
        return self.hidden_size or NODES[self.composition]

    @property
    def dropped(self) -> float:
        """Share of the numbers that are left out in training."""
        own = DROPOUT.get(self.composition, SMALL_DROPOUT)
        return own if self.dropout is None else self.dropout

    @property
    def is_binary(self) -> bool:
        """Whether every inner node must have two children."""
        return self.composition != "childsum"


class TreeTrain(TrainSettings):
    """How a network over trees is trained."""

    most_batch_tokens: ClassVar[int] = 512

    optimizer: Literal["sgd", "adam", "adamw", "adagrad"] = Field(
        "adagrad", description="What turns gradients into steps."
    )
    learning_rate: float = Field(0.05, gt=0.0)  # where nobody says, as suits the composition
    epochs: int = Field(8, ge=1)
    clip: float = Field(5.0, gt=0.0)
    holdout: float = Field(0.1, gt=0.0, lt=1.0)


class PredictOptions(Section):
    """What is shown of an answer."""

    show_vectors: bool = Field(False, description="Show the vector of each sentence, too.")


class TreeInput(Section):
    """A text, or a bracketed tree."""

    text: str = Field(description="A text, or a bracketed tree.")


class TreeRun(TextRun):
    """Settings of `unrolled train tree`."""

    sizes: ClassVar[tuple[Size, ...]] = ()

    task: Literal["tree"] = "tree"
    data: TreeData = TreeData()
    tokens: TreeTokens = TreeTokens()
    model: TreeSettings = TreeSettings()
    train: TreeTrain = TreeTrain()
