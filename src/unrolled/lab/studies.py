"""The list of studies: what each is about, and what can be asked of it.

Nothing here imports torch: the list and its help must be quick. A study imports its own file when
it is run, and gives back something that can be shown.
"""

from collections.abc import Callable, Mapping
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


class EquationOptions(Section):
    """Of `lab equations`."""

    note: str | None = Field(None, description="Only the entries of this note: 000 to 004.")
    id: str | None = Field(None, description="Only this entry, all of it: F7, E37 …")
    glossary: bool = Field(False, description="What each note calls each gate, instead.")


def _equations(options: EquationOptions, tell: Tell) -> Shown:
    from unrolled.lab.equations.catalogue import entries, verdicts
    from unrolled.lab.equations.glossary import Glossary

    if options.glossary:
        return Glossary()
    return verdicts(entries(note=options.note, id=options.id), tell)


STUDIES: Mapping[str, Study] = {
    "equations": Study(
        "Run every equation of the notes and show every erratum by a number.",
        EquationOptions,
        _equations,
    ),
}
