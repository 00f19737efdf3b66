"""What a study is, and what several of them ask."""

from collections.abc import Callable
from typing import Any, NamedTuple

from pydantic import Field

from unrolled.config.sections import Section
from unrolled.evaluate.shown import Shown

Tell = Callable[[str], None]  # is told of every part that is done


class Study(NamedTuple):
    """One study."""

    help: str
    options: type[Section]
    run: Callable[[Any, Tell], Shown]


SEED = Field(1, ge=0, lt=2**63 - 2, description="Where chance begins.")


def three_seeds(seed: int) -> tuple[int, int, int]:
    """The one that is given and the next two."""
    return seed, seed + 1, seed + 2
