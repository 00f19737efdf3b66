"""What every language model can do: score lines, suggest the next token, write text."""

from typing import Any

from pydantic import Field

from unrolled.config.sections import Section
from unrolled.tasks.task import Use, View

EXAMPLES = ("generate FOLDER --tokens 300", "score FOLDER text.txt")


class MixOptions(Section):
    """Whether the n-gram model beside a trained one has a say."""

    mix: bool = Field(False, description="Mix with the n-gram model kept beside it.")


class ScoreOptions(MixOptions):
    """How scores are listed."""

    rank: bool = Field(False, description="Likeliest line first.")


class NextOptions(MixOptions):
    """How many suggestions there are."""

    top: int = Field(10, description="How many to list.")


class PromptInput(Section):
    """What is to be continued."""

    prompt: str = Field("", description="Text to continue.")


class TextBefore(Section):
    """What stands before."""

    text: str = Field(description="What stands before.")


class GenerateOptions(MixOptions):
    """How a text is drawn, and how many."""

    tokens: int = Field(200, description="At most this many further tokens.")
    temperature: float = Field(1.0, description="0 takes the likeliest token.")
    top_k: int | None = Field(None, description="Draw from the K likeliest.")
    top_p: float | None = Field(None, description="Draw from this share of probability.")
    count: int = Field(1, description="How many texts.")
    seed: int | None = Field(
        None, ge=0, lt=2**63, description="Where chance begins: the same seed, the same result."
    )


def scores_document(answers: list[Any]) -> Any:
    """Each line's score, and that of all."""
    *lines, total = answers
    return {"lines": lines, "all": total}


LANGUAGE_USES = {
    "score": Use(
        "Say how likely each line is: log-probability, perplexity, tokens, unknown tokens, text.",
        options=ScoreOptions,
        document=scores_document,
    ),
    "generate": Use(
        "Write text that continues the prompt.",
        input=PromptInput,
        options=GenerateOptions,
        by_line=False,
        document=lambda answers: {"texts": answers},
    ),
    "next": Use(
        "List the likeliest next tokens with their probabilities.",
        input=TextBefore,
        options=NextOptions,
        by_line=False,
        document=lambda answers: {"next": answers},
    ),
}


TEXT_VIEWS = {
    "lengths": View("Perplexity by the length of the line."),
    "surprise": View("What surprises the model at the beginning of the text."),
}
RUN_VIEWS = {
    "loss": View("The loss of every step and on the dev data.", of_run=True, same_unit=True)
}
