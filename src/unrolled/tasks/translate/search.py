"""How outputs are looked for."""

from dataclasses import dataclass, fields

from unrolled.config.sections import Section
from unrolled.errors import ConfigError, shown, whole

LONGEST = 1_000_000  # tokens that may be asked for


@dataclass(frozen=True, kw_only=True)
class Search:
    """How outputs are looked for.

    width      hypotheses kept at each step; 1 is greedy search
    alpha      a hypothesis of n tokens and log-probability p is worth p / n^alpha
    stop       "ahead": when no open hypothesis is ahead of the finished ones, which gives up a
               longer one that would have come to a higher score; "best": when none can still win,
               exactly, in some three times the time; or "count" or "limit": see docs/search.md
    nbest      how many to give for each text
    copy       write for an unknown word the source word that attention looked at most
    """

    width: int = 5
    alpha: float = 0.7
    stop: str = "ahead"
    nbest: int = 1
    copy: bool = True
    max_length: int | None = None  # tokens of an output, its END among them

    def __post_init__(self) -> None:
        if self.max_length is not None and not 1 <= whole("max_length", self.max_length) <= LONGEST:
            raise ConfigError(
                f"max_length is {shown(self.max_length)}, but must be at least 1 and at most "
                f"{LONGEST:,}."
            )


DEFAULT = Search()
SEARCHED = tuple(field.name for field in fields(Search))


def chosen_search(options: Section) -> Search:
    """The search that the options of a use ask for."""
    values = {"width" if name == "beam" else name: value for name, value in options}
    return Search(**{name: value for name, value in values.items() if name in SEARCHED})
