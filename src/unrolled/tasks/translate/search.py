"""How outputs are looked for."""

from dataclasses import dataclass, fields

from unrolled.config.sections import Section


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


DEFAULT = Search()


def chosen_search(options: Section) -> Search:
    """The search that the options of a use ask for."""
    values = {"width" if name == "beam" else name: value for name, value in options}
    known = {field.name for field in fields(Search)}
    return Search(**{name: value for name, value in values.items() if name in known})
