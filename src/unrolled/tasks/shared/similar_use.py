"""What is asked of a model that finds near sentences: light, for the list of tasks has it."""

from pydantic import Field

from unrolled.config.sections import Section
from unrolled.tasks.task import TextInput, Use


class SimilarOptions(Section):
    """Among what to look, and how much to show."""

    among: str | None = Field(
        None, description="A file of texts to look among: one a line, or a table of them."
    )
    encoding: str = Field("utf-8", description="The encoding of that file.")
    column: str | None = Field(None, description="The column of texts, by name or number from 1.")
    nearest: int = Field(10, ge=1, le=1_000_000, description="How many to show.")


SIMILAR = Use(
    "List the sentences of a file that are nearest to a text.",
    input=TextInput,
    options=SimilarOptions,
    by_line=False,
    document=lambda answers: answers[0],
)
