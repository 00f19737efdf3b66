"""What every result can do: be read, be parsed, be looked at."""

from typing import Any, Protocol


class Shown(Protocol):
    """A report, an answer, an audit, BLEU step by step: any result."""

    def text(self) -> str:
        """For people; may be many lines."""
        ...

    def as_json(self) -> Any:
        """For programs: plain values."""
        ...

    def chart(self) -> Any:
        """For the eye: a chart; ConfigError where there is no picture of it."""
        ...


def columns(lines: list[list[str]]) -> str:
    """The first column to the left, the others to the right; never cut, never wrapped."""
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    return "\n".join(
        "  ".join(
            [
                first.ljust(widths[0]),
                *(text.rjust(width) for text, width in zip(others, widths[1:], strict=True)),
            ]
        )
        for first, *others in lines
    )


WIDTH = 79  # of a terminal, at least


def blocks_of_columns(lines: list[list[str]]) -> str:
    """The same; columns that would not fit side by side stand below, the first one beside them."""
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    blocks: list[list[int]] = []
    for column, width in enumerate(widths[1:], 1):
        taken = widths[0] + sum(2 + widths[k] for k in (blocks[-1] if blocks else []))
        if not blocks or taken + 2 + width > WIDTH:
            blocks.append([])
        blocks[-1].append(column)
    tables = [[[line[0], *(line[k] for k in block)] for line in lines] for block in blocks]
    return "\n".join(map(columns, tables or [lines]))


def visible(token: str) -> str:
    """The token; in quotes and escaped where it could not be seen."""
    return token if token.isprintable() and token.strip() == token != "" else repr(token)
