"""The glossary and the conventions as a result."""

from typing import Any

from unrolled.errors import ConfigError
from unrolled.evaluate.shown import columns
from unrolled.lab.equations.conventions import CONVENTIONS, GLOSSARY, NOTES


class Glossary:
    """What each note calls each part, and which setting chooses where they disagree."""

    def text(self) -> str:
        """Two tables; all columns to the left."""
        names = [["", *NOTES], *([part, *called] for part, called in GLOSSARY.items())]
        width = max(len(part) for row in names for part in row[1:])
        left = [[row[0], *(part.ljust(width) for part in row[1:])] for row in names]
        chosen = [f"{row.id:<4} {row.topic}: {row.setting}. {row.default}." for row in CONVENTIONS]
        return "\n".join([columns(left), "", *chosen])

    def as_json(self) -> dict[str, Any]:
        """Both tables."""
        names = {part: dict(zip(NOTES, row, strict=True)) for part, row in GLOSSARY.items()}
        return {"glossary": names, "conventions": [row._asdict() for row in CONVENTIONS]}

    def chart(self) -> Any:
        """There is none."""
        raise ConfigError("a glossary has no picture. Leave --out away, or name a .json file.")
