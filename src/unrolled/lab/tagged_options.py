"""The studies on tagged sentences: what can be asked of them. Nothing here imports torch."""

from typing import Annotated, Any, Literal

from pydantic import Field

from unrolled.config.sections import Section
from unrolled.errors import ConfigError
from unrolled.evaluate.shown import Shown
from unrolled.lab.study import SEED, Tell, three_seeds

DATA = Field(
    None, description="Tagged words of your own, CoNLL-U or columns, instead of made-up ones."
)
TEST = Field(None, description="What is asked; left out, the last fifth of --data.")
Column = Annotated[
    Literal["upos", "xpos", "feats"],
    Field(description="Which column of a CoNLL-U file has the tags."),
]
ENCODING = Field("utf-8", description="The files' encoding.")
MADE_UP = 1000  # sentences


class DirectionOptions(Section):
    """Of `lab directions`."""

    data: str | None = DATA
    test: str | None = TEST
    column: Column = "upos"
    encoding: str = ENCODING
    hidden: int = Field(32, ge=1, le=1024, description="Units of a direction.")
    epochs: int = Field(4, ge=1, le=100, description="How often the data are read.")
    seed: int = SEED


def run_directions(options: DirectionOptions, tell: Tell) -> Shown:
    from unrolled.lab.directions import directions

    return directions(
        _tagged(options),
        hidden=options.hidden,
        epochs=options.epochs,
        seeds=three_seeds(options.seed),
        tell=tell,
    )


class PaddingOptions(Section):
    """Of `lab padding`."""

    data: str | None = DATA
    test: str | None = TEST
    column: Column = "upos"
    encoding: str = ENCODING
    hidden: int = Field(32, ge=1, le=1024, description="Units of a direction.")
    updates: int = Field(50, ge=1, le=100_000, description="Batches of 32 sentences to learn.")
    seed: int = SEED


def run_padding(options: PaddingOptions, tell: Tell) -> Shown:
    from unrolled.lab.padding import padding

    own = options.data is not None
    return padding(
        _tagged(options),
        classify=not own,
        factors=(1, 2) if own else (1, 2, 4, 8),
        hidden=options.hidden,
        updates=options.updates,
        seeds=three_seeds(options.seed),
        tell=tell,
    )


def _tagged(options: DirectionOptions | PaddingOptions) -> Any:
    from unrolled.lab.tagged_text import from_files, made_up

    if options.data is not None:
        return from_files(
            options.data, options.test, column=options.column, encoding=options.encoding
        )
    if options.test is not None:
        raise ConfigError("--test was given but no --data. Give both, or neither.")
    return made_up(MADE_UP, seed=options.seed)
