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


class BpttOptions(Section):
    """Of `lab bptt`."""

    text: str = Field(description="The characters that are read and predicted.")
    cell: str = Field("rnn", description="rnn, gru or lstm; variants as in “gru before write”.")
    hidden: int = Field(2, ge=1, le=64, description="Units of the network.")
    seed: int = Field(1, ge=0, lt=2**63, description="Where chance begins.")


def _bptt(options: BpttOptions, tell: Tell) -> Shown:
    from unrolled.lab.bptt import Shown, small_run

    run = small_run(options.text, options.cell, hidden=options.hidden, seed=options.seed)
    return Shown(run)


class GraphOptions(Section):
    """Of `lab graph`."""

    seed: int = Field(3, ge=0, lt=2**63, description="Where chance begins.")


def _graph(options: GraphOptions, tell: Tell) -> Shown:
    from unrolled.lab.graph import ShownGraph
    from unrolled.lab.net import small_net

    return ShownGraph(small_net(seed=options.seed))


STUDIES: Mapping[str, Study] = {
    "equations": Study(
        "Run every equation of the notes and show every erratum by a number.",
        EquationOptions,
        _equations,
    ),
    "bptt": Study(
        "Back-propagation through time of a text, factor by factor, to check by pencil.",
        BpttOptions,
        _bptt,
    ),
    "graph": Study(
        "The computation graph of a net of three layers: values and adjoints.",
        GraphOptions,
        _graph,
    ),
}
